package memstore

import (
	"bytes"
	"context"
	"time"

	"github.com/stintmq/stint/core"
)

// Ack implements core.Store (Q5, Q6).
func (s *Store) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	results := make([]core.AckResult, len(acks))
	for i := range acks {
		results[i].State, results[i].Err = s.ack(&acks[i], now)
	}
	return results, nil
}

func (s *Store) ack(a *core.Ack, now time.Time) (core.State, error) {
	if err := a.Validate(s.limits); err != nil {
		return "", err
	}
	j := s.jobs[a.Lease.ID]
	if j == nil {
		return "", core.ErrNotFound
	}
	if j.holds(a.Lease.Token) {
		s.settle(j, a, now)
		return j.rec.State, nil
	}
	if st, ok := j.answered(a.Lease.Token, a.Outcome); ok {
		return st, nil
	}
	return "", core.ErrLeaseLost
}

// settle ends the current lease of a job (Q6). A pending cancel wins over everything that would have the job run
// again, and loses against a run that came to its end.
func (s *Store) settle(j *job, a *core.Ack, now time.Time) {
	e := entry{asked: a.Outcome, Attempt: core.Attempt{Outcome: a.Outcome}}
	switch a.Outcome {
	case core.OutcomeComplete:
		e.Result = bytes.Clone(a.Result)
		j.rec.Attempts++
		j.rec.Result = e.Result
		s.end(j, core.StateCompleted, e, now)
		return
	case core.OutcomeFail:
		e.Failure = clone(a.Failure)
		j.rec.Attempts++
		j.rec.Failure = e.Failure
		s.end(j, core.StateFailed, e, now)
		return
	}
	if a.Outcome == core.OutcomeCancel || j.rec.CancelRequested {
		e.Outcome = core.OutcomeCancel
		s.end(j, core.StateCancelled, e, now)
		return
	}
	s.again(j, a, e, now)
	s.ring(j.lane.queue)
}

// again makes the job of an ended lease pending.
func (s *Store) again(j *job, a *core.Ack, e entry, now time.Time) {
	runAt := core.Micros(now.Add(a.Delay))
	switch a.Outcome {
	case core.OutcomeRetry:
		j.rec.Attempts++
		e.Failure = clone(a.Failure)
		e.state = core.StateWaiting
		if runAt.After(now) {
			e.state = core.StateDelayed
		}
		j.write(e, now)
		s.pend(j, runAt, now)
	case core.OutcomeSnooze:
		j.rec.Snoozes++
		s.pend(j, runAt, now)
	default: // release: the old place and RunAt, as if never claimed
		j.dropLease()
		j.rec.ClaimedAt = time.Time{}
		s.move(j, core.StateWaiting)
	}
}
