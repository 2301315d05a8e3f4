package pgsql

import (
	"context"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	// Who has the row ticks it, or puts something else there: nobody waits for him.
	sqlTickLock = `select ` + scheduleColumns + ` from {}.schedules where key = $1::text and next_at = $2::timestamptz
		for update skip locked`

	sqlTickMove = `update {}.schedules set next_at = $2::timestamptz, last_slot = $3::timestamptz, last_id = nullif($4::text, ''),
		last_error = null, retry_at = null, failures = 0 where key = $1::text`

	// A schedule that is put off already stays as it is.
	sqlTickPutOff = `with ` + moment + `
		update {}.schedules set last_error = $3::text, failures = failures + 1,
			retry_at = (select now from t) + ($4::bigint / 1000000) * interval '1 second' + ($4::bigint % 1000000) * interval '1 microsecond'
		where key = $2::text and (retry_at is null or retry_at <= (select now from t))`

	sqlIsPending = `select 1 from {}.jobs j where id = $1::text and (
		select seq from {}.finished where seq between j.seq and j.seq order by seq limit 1) is null`
)

// Ticked answers TickSchedule. Laneless is a request whose lane has to be made once the transaction is committed: see
// Session.Laneless.
type Ticked struct {
	Done     bool
	Laneless []core.EnqueueRequest
}

// TickSchedule implements core.Scheduler (Q26), inside a transaction of the store's own. The lock on the schedule's row
// makes it one step: whoever inserts jobs of its slots has it.
func (s *Session) TickSchedule(ctx context.Context, t core.Tick, notify Notify) (Ticked, error) {
	if err := t.Validate(); err != nil || !sane(t.Key) {
		return Ticked{}, err
	}
	var row scheduleRow
	found, err := sqlexec.One(ctx, s.x, row.columns(), sqlTickLock, t.Key, core.Micros(t.Expect))
	if err != nil || !found {
		return Ticked{}, err
	}
	r := row.record()
	if t.Err != "" {
		n, err := s.x.Exec(ctx, sqlTickPutOff, s.now, t.Key, t.Err, int64(t.RetryIn/time.Microsecond))
		return Ticked{Done: n > 0 && err == nil}, err
	}
	if err := r.ValidateRequest(s.limits); err != nil {
		return Ticked{}, err
	}
	reqs, err := s.slots(ctx, &r, t.Slots)
	if err != nil {
		return Ticked{}, err
	}
	if err := s.insertSlots(ctx, reqs, notify); err != nil {
		return Ticked{}, err
	}
	if _, err := s.x.Exec(ctx, sqlTickMove, t.Key, core.Micros(t.Next), core.Micros(t.Passed), r.LastID); err != nil {
		return Ticked{}, err
	}
	out := Ticked{Done: true}
	if s.laneless {
		out.Laneless = reqs
	}
	return out, nil
}

// slots are the requests of the slots that get a job, and notes the last. With OverlapSkip that is one at most: the
// first that finds nobody at work.
func (s *Session) slots(ctx context.Context, r *core.ScheduleRecord, slots []time.Time) ([]core.EnqueueRequest, error) {
	reqs, ids := make([]core.EnqueueRequest, len(slots)), make([]string, len(slots))
	for i, slot := range slots {
		reqs[i] = r.SlotRequest(slot)
		ids[i] = reqs[i].ID
	}
	if len(slots) == 0 {
		return nil, nil
	}
	if r.Overlap != core.OverlapSkip {
		r.LastID = ids[len(ids)-1] // made now or there already
		return reqs, nil
	}
	held, err := s.holders(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, id := range slices.Concat([]string{r.LastID}, ids) {
		if i > 0 {
			r.LastID = id
			if _, there := held[id]; !there {
				return reqs[i-1 : i], nil
			}
		}
		var one int
		if pending, err := sqlexec.One(ctx, s.x, []any{&one}, sqlIsPending, id); err != nil || pending {
			return nil, err
		}
	}
	return nil, nil
}

// insertSlots inserts jobs of slots, whose ids Enqueue refuses, but for those that are there.
func (s *Session) insertSlots(ctx context.Context, reqs []core.EnqueueRequest, notify Notify) error {
	if len(reqs) == 0 {
		return nil
	}
	e := enqueueing{s: s, reqs: reqs, results: make([]core.EnqueueResult, len(reqs)), notify: notify, first: map[string]int{},
		patient: "1s", slots: true}
	_, err := e.run(ctx)
	return err
}
