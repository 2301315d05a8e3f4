package filestore

import (
	"context"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// Enqueue inserts jobs, each on its own account (Q10, Q11).
func (s *Store) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	out := make([]core.EnqueueResult, len(reqs))
	err := s.update(ctx, func(st *state, now time.Time) (woken []string) {
		for i, req := range reqs {
			out[i] = st.enqueue(req, s.opts.Limits, now)
			if out[i].Err == nil && !out[i].Duplicate {
				woken = append(woken, req.Queue) // delayed or not: idle workers must learn the new time (Q15)
			}
		}
		return woken
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (st *state) enqueue(req core.EnqueueRequest, limits core.Limits, now time.Time) core.EnqueueResult {
	if err := req.Validate(limits); err != nil {
		return core.EnqueueResult{Err: err}
	}
	if req.Dedupe != nil { // refuse what we cannot do, never pretend (Q12)
		return core.EnqueueResult{Err: &core.UnsupportedError{Op: "Dedupe"}}
	}
	id := req.ResolvedID()
	if j := st.jobs[id]; j != nil { // in any state (Q10)
		if j.Name != req.Name {
			return core.EnqueueResult{Err: &core.ConflictError{Name: j.Name, ID: id}}
		}
		return core.EnqueueResult{ID: id, Duplicate: true}
	}
	n := st.next()
	if id == "" {
		id = fmt.Sprintf("#%d", n) // no user's id begins with # (Q10)
	}
	st.jobs[id] = newJob(req, id, n, now)
	return core.EnqueueResult{ID: id}
}

// newJob applies no defaults: a request is complete (Q11).
func newJob(req core.EnqueueRequest, id string, n int64, now time.Time) *job {
	j := &job{Place: n, Record: copyRecord(core.Record{
		ID: id, Ref: n, Name: req.Name, Queue: req.Queue, Payload: req.Payload, Metadata: req.Metadata,
		Priority: req.Priority, MaxAttempts: req.MaxAttempts, MaxStalls: req.MaxStalls,
		Backoff: req.Backoff, Keep: req.Keep, Timeout: req.Timeout, Trace: req.Trace,
		EnqueuedAt: now,
	})}
	at := req.RunAt
	if at.IsZero() {
		at = now.Add(req.Delay)
	}
	j.runAt(at, now)
	return j
}

// runAt makes the job delayed until at, or waiting if that is not in the future.
func (j *job) runAt(at, now time.Time) {
	j.State, j.RunAt = core.StateDelayed, core.Micros(at)
	if !j.RunAt.After(now) {
		j.State, j.RunAt = core.StateWaiting, now
	}
}
