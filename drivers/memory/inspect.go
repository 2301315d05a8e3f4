package memstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/stintmq/stint/core"
)

// Get implements core.Inspector (Q27).
func (s *Store) Get(ctx context.Context, id string) (core.Record, error) {
	j, _, err := s.find(ctx, id)
	if err != nil {
		return core.Record{}, err
	}
	defer s.mu.Unlock()
	return j.copyOut(), nil
}

// Attempts implements core.Inspector (Q9).
func (s *Store) Attempts(ctx context.Context, id string) ([]core.Attempt, error) {
	if _, err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	j := s.jobs[id]
	if j == nil {
		return nil, nil
	}
	attempts := make([]core.Attempt, len(j.ledger))
	for i := range j.ledger {
		a := j.ledger[i].Attempt
		a.Result = bytes.Clone(a.Result)
		a.Failure = clone(a.Failure)
		attempts[i] = a
	}
	return attempts, nil
}

// Counts implements core.Inspector (Q27).
func (s *Store) Counts(ctx context.Context, queue string) (map[core.State]int64, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	s.joinAllDue(queue, now)
	counts := make(map[core.State]int64, len(states))
	for _, st := range states {
		counts[st] = 0
	}
	for q := range s.matching(queue) {
		for i, st := range states {
			counts[st] += q.counts[i]
		}
	}
	return counts, nil
}

// Stranded implements core.Inspector (Q27).
func (s *Store) Stranded(ctx context.Context, known []string) ([]core.Stranded, error) {
	if _, err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	handled := make(map[string]bool, len(known))
	for _, name := range known {
		handled[name] = true
	}
	var out []core.Stranded
	for _, q := range s.queues {
		for _, l := range q.lanes {
			if l.pending > 0 && !handled[l.name] {
				out = append(out, core.Stranded{Queue: q.name, Name: l.name, Count: l.pending})
			}
		}
	}
	slices.SortFunc(out, func(a, b core.Stranded) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Explain implements core.Inspector (Q27).
func (s *Store) Explain(ctx context.Context, id string) (core.Explanation, error) {
	j, now, err := s.find(ctx, id)
	if err != nil {
		return core.Explanation{}, err
	}
	defer s.mu.Unlock()
	e := core.Explanation{ID: id, State: j.rec.State}
	switch {
	case j.rec.State.Terminal():
		e.Reason = core.ReasonFinished
	case j.rec.State == core.StateActive:
		e.Reason = core.ReasonLeased
		e.Worker = j.worker
		e.LeaseFor = until(j.until, now)
	case j.rec.State == core.StateDelayed:
		e.Reason = core.ReasonDelayed
		e.DueIn = until(j.rec.RunAt.UnixMicro(), now)
	case j.lane.queue.paused:
		e.Reason = core.ReasonPaused
	default:
		e.Reason = core.ReasonQueued
		s.joinAllDue(j.rec.Queue, now) // they may come first
		e.Ahead = j.ahead()
	}
	return e, nil
}

// ahead counts the waiting jobs of the queue that come before j (Q2).
func (j *job) ahead() int64 {
	var n int64
	for _, l := range j.lane.queue.lanes {
		for _, b := range [...]*bin{&l.fresh, &l.stalled} {
			for i := range b.nodes {
				if b.nodes[i].before(int64(-j.rec.Priority), j.place) {
					n++
				}
			}
		}
	}
	return n
}
