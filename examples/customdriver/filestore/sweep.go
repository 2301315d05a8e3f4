package filestore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// Extend moves the ends of leases, never to an earlier time (Q5, Q21). With one writer at a time no row is ever
// Busy, and without an Admin none has a pending cancel.
func (s *Store) Extend(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
	if d < 0 {
		return core.Extended{}, &core.InvalidError{Field: "d", Reason: "must not be negative"}
	}
	var out core.Extended
	err := s.update(ctx, func(st *state, now time.Time) []string {
		for _, l := range leases {
			j := st.jobs[l.ID]
			if j == nil || !j.heldUnder(l.Token) {
				out.Lost = append(out.Lost, l)
				continue
			}
			if end := now.Add(d); end.After(j.Until) {
				j.Until = end
			}
			j.Suspect = time.Time{} // its holder lives (Q7)
			j.touch()
		}
		return nil
	})
	if err != nil {
		return core.Extended{}, err
	}
	return out, nil
}

// RecoverStalled takes back leases whose holders are gone, those that ended first first (Q7).
func (s *Store) RecoverStalled(ctx context.Context, req core.RecoverRequest) ([]core.Recovered, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	limit := cmp.Or(req.Limit, 1000)
	var out []core.Recovered
	err := s.update(ctx, func(st *state, now time.Time) (woken []string) {
		ended := func(j *job) bool { return j.State == core.StateActive && !j.Until.After(now) }
		for _, j := range st.list(ended, byUntil) {
			if j.Suspect.IsZero() {
				j.Suspect = now
				j.touch()
			}
			if now.Before(j.Suspect.Add(req.Confirm)) || len(out) == limit {
				continue
			}
			st.takeBack(j, req.MaxStalls, now)
			out = append(out, core.Recovered{ID: j.ID, Name: j.Name, Queue: j.Queue, State: j.State})
			if j.State.Pending() {
				woken = append(woken, j.Queue) // the time of the next job may have changed (Q15)
			}
		}
		return woken
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// takeBack ends a lease without its holder. That costs a stall, not an attempt.
func (st *state) takeBack(j *job, limit int, now time.Time) {
	if j.MaxStalls != 0 {
		limit = j.MaxStalls
	}
	limit = max(limit, 0) // negative: none tolerated
	j.Stalls++
	e := entry{Attempt: core.Attempt{Outcome: core.OutcomeStalled}}
	if j.Stalls > limit {
		j.State = core.StateFailed
		j.Failure = &core.Failure{
			Type:    "stalled",
			Message: fmt.Sprintf("stalled %d times, more than the limit of %d", j.Stalls, limit),
		}
		e.Failure = copyOf(j.Failure)
	} else {
		j.State, j.RunAt = core.StateDelayed, core.Micros(now.Add(core.StallDelay(j.Stalls)))
	}
	j.log(e, now)
	j.letGo(now)
}

func byUntil(a, b *job) int {
	return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Ref, b.Ref))
}
