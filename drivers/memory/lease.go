package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// Extend implements core.Store (Q5, Q21). Nothing is ever Busy: no row is held between calls.
func (s *Store) Extend(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
	if d < 0 {
		return core.Extended{}, &core.InvalidError{Field: "d", Reason: "must not be negative"}
	}
	now, err := s.enter(ctx)
	if err != nil {
		return core.Extended{}, err
	}
	defer s.mu.Unlock()
	end := core.Micros(now.Add(d)).UnixMicro()
	var out core.Extended
	for _, l := range leases {
		j := s.jobs[l.ID]
		if j == nil || !j.holds(l.Token) {
			out.Lost = append(out.Lost, l)
			continue
		}
		j.suspect = false
		if end > j.until {
			j.until = end
			s.leases.rekey(j.pos, end, j.rec.Ref)
		}
		if j.rec.CancelRequested {
			out.CancelRequested = append(out.CancelRequested, l)
		}
	}
	return out, nil
}

// sweepLimit is RecoverRequest.Limit where it is 0.
const sweepLimit = 1000

// RecoverStalled implements core.Store (Q7). Suspicion is cast on every ended lease, whatever the Limit.
func (s *Store) RecoverStalled(ctx context.Context, req core.RecoverRequest) ([]core.Recovered, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	limit := cmp.Or(req.Limit, sweepLimit)
	at := now.UnixMicro()
	var out []core.Recovered
	for _, j := range s.ended(at) {
		if !j.suspect {
			j.suspect, j.suspectAt = true, at
		}
		if len(out) == limit || time.Duration(at-j.suspectAt)*time.Microsecond < req.Confirm {
			continue
		}
		s.takeBack(j, req.MaxStalls, now)
		out = append(out, core.Recovered{ID: j.rec.ID, Name: j.rec.Name, Queue: j.rec.Queue, State: j.rec.State})
	}
	return out, nil
}

// ended lists the jobs whose lease has ended, the oldest end first. It descends into the heap only where it must,
// so leases that still run cost nothing.
func (s *Store) ended(at int64) []*job {
	var jobs []*job
	var visit func(i int)
	visit = func(i int) {
		if i >= s.leases.len() || s.leases.nodes[i].hi > at {
			return
		}
		jobs = append(jobs, s.leases.nodes[i].item)
		for c := 4*i + 1; c <= 4*i+4; c++ {
			visit(c)
		}
	}
	visit(0)
	slices.SortFunc(jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.rec.Ref, b.rec.Ref))
	})
	return jobs
}

// takeBack ends a stalled lease.
func (s *Store) takeBack(j *job, maxStalls int, now time.Time) {
	if j.rec.CancelRequested {
		s.end(j, core.StateCancelled, entry{Attempt: core.Attempt{Outcome: core.OutcomeCancel}}, now)
		return
	}
	j.rec.Stalls++
	e := entry{Attempt: core.Attempt{Outcome: core.OutcomeStalled}}
	if limit := stallLimit(j.rec.MaxStalls, maxStalls); j.rec.Stalls > limit {
		e.Failure = &core.Failure{
			Type:    "stalled",
			Message: fmt.Sprintf("stalled %d times, more than the limit of %d", j.rec.Stalls, limit),
		}
		j.rec.Failure = e.Failure
		s.end(j, core.StateFailed, e, now)
		return
	}
	e.state = core.StateDelayed
	j.write(e, now)
	s.pend(j, core.Micros(now.Add(core.StallDelay(j.rec.Stalls))), now)
	s.ring(j.lane.queue)
}

// stallLimit is how many stalls a job may have: its own limit, or the sweeper's where it has none.
func stallLimit(own, sweepers int) int {
	if own == 0 {
		return max(sweepers, 0)
	}
	return max(own, 0)
}
