package filestore

import (
	"context"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// Ack ends leases, one after the other as if each were a call of its own (Q5, Q6).
func (s *Store) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	out := make([]core.AckResult, len(acks))
	err := s.update(ctx, func(st *state, now time.Time) (woken []string) {
		for i, a := range acks {
			if err := a.Validate(s.opts.Limits); err != nil {
				out[i].Err = err
				continue
			}
			switch j := st.jobs[a.Lease.ID]; {
			case j == nil:
				out[i].Err = core.ErrNotFound
			case j.heldUnder(a.Lease.Token):
				st.end(j, a, now)
				out[i].State = j.State
				if j.State.Pending() {
					woken = append(woken, j.Queue) // again, now or later (Q15)
				}
			default:
				out[i] = j.recall(a)
			}
		}
		return woken
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// end does what the outcome asks for (Q6). Nobody can ask for a cancel here, there being no Admin, so no pending
// cancel ever changes that.
func (st *state) end(j *job, a core.Ack, now time.Time) {
	var e entry
	switch a.Outcome {
	case core.OutcomeComplete:
		j.Attempts++
		j.State = core.StateCompleted
		j.Result, e.Result = slices.Clone(a.Result), slices.Clone(a.Result)
	case core.OutcomeFail:
		j.Attempts++
		j.State = core.StateFailed
		j.Failure, e.Failure = copyOf(a.Failure), copyOf(a.Failure)
	case core.OutcomeCancel:
		j.State = core.StateCancelled
	case core.OutcomeRetry:
		j.Attempts++
		st.requeue(j, a.Delay, now)
		e.Failure = copyOf(a.Failure)
	case core.OutcomeSnooze:
		j.Snoozes++
		st.requeue(j, a.Delay, now)
	case core.OutcomeRelease:
		j.State = core.StateWaiting // place and RunAt stay
	}
	if a.Outcome != core.OutcomeSnooze && a.Outcome != core.OutcomeRelease {
		e.Outcome, e.Asked, e.Token = a.Outcome, a.Outcome, a.Lease.Token
		j.log(e, now)
	}
	j.letGo(now)
}

// requeue puts the job at the end of its queue, now or later (Q2).
func (st *state) requeue(j *job, delay time.Duration, now time.Time) {
	j.Place = st.next()
	j.runAt(now.Add(delay), now)
}

// recall answers an ack whose lease is not current: as the first time if it is a repeat, whose reply may have been
// lost, and otherwise ErrLeaseLost (Q5).
func (j *job) recall(a core.Ack) core.AckResult {
	for _, e := range j.Ledger {
		if e.Token != "" && e.Token == a.Lease.Token && e.Asked == a.Outcome {
			return core.AckResult{State: e.State}
		}
	}
	return core.AckResult{Err: core.ErrLeaseLost}
}
