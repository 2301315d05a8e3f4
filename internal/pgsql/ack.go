package pgsql

import (
	"context"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// Ack implements core.Store (Q5, Q6). Acks of different jobs are one statement; those of one job follow each other,
// as if in calls of their own.
func (s *Session) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	results := make([]core.AckResult, len(acks))
	leases := make([]core.Lease, len(acks))
	for i := range acks {
		leases[i] = acks[i].Lease
		results[i].Err = acks[i].Validate(s.limits)
	}
	seqs, err := s.guess(ctx, leases)
	if err != nil {
		return nil, err
	}
	for _, part := range rounds(leases, seqs, func(i int) bool { return results[i].Err == nil }) {
		if err := s.ackRound(ctx, acks, leases, part, results); err != nil {
			if slices.ContainsFunc(results, func(r core.AckResult) bool { return r.State != "" }) {
				err = s.partly(err)
			}
			return nil, err
		}
	}
	return results, nil
}

// ackRound ends leases of jobs each of which occurs once. What did not end is looked at by a new statement: if
// that says that the lease is current, somebody held its row, or wrote it just then, and it is tried again.
func (s *Session) ackRound(ctx context.Context, acks []core.Ack, leases []core.Lease, part round, results []core.AckResult) error {
	for try := 0; len(part.at) > 0; try++ {
		ends := make([]settlement, 0, len(part.at))
		for n, i := range part.at {
			if part.seqs[n] != 0 && sane(acks[i].Lease.ID) && core.ValidateToken("Token", acks[i].Lease.Token) == nil {
				ends = append(ends, settlementOf(part.seqs[n], &acks[i]))
			}
		}
		var done map[int64]settled
		if len(ends) > 0 {
			var err error
			if done, err = s.settle(ctx, ends, nil); err != nil {
				return err
			}
		}
		var missing round
		for n, i := range part.at {
			if e, ok := done[part.seqs[n]]; ok {
				results[i].State = stateName(e.state)
			} else {
				missing.add(i, part.seqs[n])
			}
		}
		if len(missing.at) == 0 {
			return nil
		}
		right, err := s.resolve(ctx, leases, missing)
		if err != nil {
			return err
		}
		held, err := s.answer(ctx, acks, right, results)
		if err != nil {
			return err
		}
		if try == lockTries || len(held.at) > 0 && !sleep(ctx, lockPause<<try) {
			for _, i := range held.at {
				results[i].Err = core.ErrUnavailable // whoever holds the row may take long
			}
			return nil
		}
		part = held
	}
	return nil
}

// Rows that a heartbeat or a sweep holds are free within milliseconds, and tried again, at growing intervals; what
// an application's transaction holds the worker is told to offer again: its neighbours must not wait for it.
const (
	lockTries = 6
	lockPause = time.Millisecond
)

// sleep reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func settlementOf(seq int64, ack *core.Ack) settlement {
	e := settlement{seq: seq, id: ack.Lease.ID, token: ack.Lease.Token, outcome: ack.Outcome, asked: ack.Outcome}
	switch ack.Outcome {
	case core.OutcomeComplete:
		e.state, e.counts, e.result = completed, countsAttempt, ack.Result
		return e
	case core.OutcomeFail:
		e.state, e.counts, e.failure = failed, countsAttempt, ack.Failure
		return e
	case core.OutcomeCancel:
		e.state = cancelled
		return e
	case core.OutcomeRetry:
		e.counts, e.failure = countsAttempt, ack.Failure
	case core.OutcomeSnooze:
		e.counts = countsSnooze
	default: // release
		e.state, e.yields = back, true
		return e
	}
	e.yields, e.delay, e.state = true, micros(ack.Delay), waiting
	if e.delay > 0 {
		e.state = delayed
	}
	return e
}

// Complete is Ack with OutcomeComplete for one lease in the caller's transaction, but that a repeat is
// core.ErrLeaseLost: what else the transaction writes must not be written twice (Q14).
func (s *Session) Complete(ctx context.Context, l core.Lease, result []byte) error {
	ack := core.Ack{Lease: l, Outcome: core.OutcomeComplete, Result: result}
	if err := ack.Validate(s.limits); err != nil {
		return err
	}
	leases := []core.Lease{l}
	seqs, err := s.guess(ctx, leases)
	if err != nil {
		return err
	}
	part := round{[]int{0}, seqs}
	for range 2 { // by Ref, then by the id
		if part.seqs[0] != 0 && sane(l.ID) && core.ValidateToken("Token", l.Token) == nil {
			done, err := s.settle(ctx, []settlement{settlementOf(part.seqs[0], &ack)}, nil)
			if err != nil || len(done) > 0 {
				return err
			}
		}
		guessed := part.seqs[0]
		if part, err = s.resolve(ctx, leases, part); err != nil {
			return err
		}
		if part.seqs[0] == guessed {
			break
		}
	}
	if part.seqs[0] == 0 {
		return core.ErrNotFound
	}
	return core.ErrLeaseLost
}
