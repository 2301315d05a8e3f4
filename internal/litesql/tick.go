package litesql

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
	"github.com/stintmq/stint/internal/sqlexec"
)

// TickSchedule implements core.Scheduler (Q26). The write lock makes it one step.
func (s *Session) TickSchedule(ctx context.Context, t core.Tick) (bool, error) {
	if err := t.Validate(); err != nil || !sane(t.Key) {
		return false, err
	}
	r, found, err := s.schedule(ctx, t.Key)
	if err != nil || !found || !r.NextAt.Equal(core.Micros(t.Expect)) {
		return false, err
	}
	if t.Err != "" {
		if r.RetryAt.UnixMicro() > s.now {
			return false, nil
		}
		_, err := s.x.Exec(ctx, sqlPutOff, t.Err, s.now+int64(t.RetryIn/time.Microsecond), r.Key)
		return err == nil, err
	}
	if err := r.ValidateRequest(s.limits); err != nil {
		return false, err
	}
	if err := s.slots(ctx, &r, t.Slots); err != nil {
		return false, err
	}
	if _, err := s.x.Exec(ctx, sqlMoveSchedule, core.Micros(t.Next).UnixMicro(), core.Micros(t.Passed).UnixMicro(),
		text(r.LastID), r.Key); err != nil {
		return false, err
	}
	return true, s.flush(ctx)
}

// slots makes the jobs of slots, but for those that are there already and those that would overlap, and notes the last.
func (s *Session) slots(ctx context.Context, r *core.ScheduleRecord, slots []time.Time) error {
	reqs, ids := make([]core.EnqueueRequest, len(slots)), make([]string, len(slots))
	for i, slot := range slots {
		reqs[i] = r.SlotRequest(slot)
		ids[i] = reqs[i].ID
	}
	held, err := s.holders(ctx, ids)
	if err != nil {
		return err
	}
	skips := r.Overlap == core.OverlapSkip
	busy := false
	if skips && len(slots) > 0 {
		if busy, err = s.pending(ctx, r.LastID); err != nil {
			return err
		}
	}
	var fresh []int
	for i, id := range ids {
		if busy {
			break // and it stays so: nothing ends meanwhile
		}
		r.LastID = id
		if _, there := held[id]; !there {
			fresh = append(fresh, i)
			busy = skips
		} else if skips {
			if busy, err = s.pending(ctx, id); err != nil {
				return err
			}
		}
	}
	_, err = s.insert(ctx, reqs, keyplan.Make(reqs, fresh, s.moment(), nil, nil))
	return err
}

func (s *Session) pending(ctx context.Context, id string) (bool, error) {
	var one int
	return sqlexec.One(ctx, s.x, []any{&one}, sqlIsPending, id)
}
