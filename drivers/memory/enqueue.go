package memstore

import (
	"bytes"
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/stintmq/stint/core"
)

// Enqueue implements core.Enqueuer (Q10, Q11, Q13). Items that ask for dedupe get an *core.UnsupportedError.
func (s *Store) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	results := s.vet(reqs)
	now, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for i := range reqs {
		if results[i].Err != nil {
			continue
		}
		id := reqs[i].ResolvedID()
		if holder := s.jobs[id]; holder != nil {
			results[i] = taken(holder, reqs[i].Name)
			continue
		}
		j, err := s.build(&reqs[i], id, now)
		if err != nil {
			results[i].Err = err
			continue
		}
		s.insert(j, now)
		results[i].ID = j.rec.ID
	}
	return results, nil
}

// vet answers the items that can be refused without the store.
func (s *Store) vet(reqs []core.EnqueueRequest) []core.EnqueueResult {
	results := make([]core.EnqueueResult, len(reqs))
	for i := range reqs {
		if err := reqs[i].Validate(s.limits); err != nil {
			results[i].Err = err
		} else if reqs[i].Dedupe != nil {
			results[i].Err = &core.UnsupportedError{Op: "dedupe", Reason: "the memory store has none"}
		}
	}
	return results
}

// taken answers an item whose id a job holds already, in whatever state (Q10).
func taken(holder *job, name string) core.EnqueueResult {
	if holder.rec.Name != name {
		return core.EnqueueResult{Err: &core.ConflictError{Name: holder.rec.Name, ID: holder.rec.ID}}
	}
	return core.EnqueueResult{ID: holder.rec.ID, Duplicate: true}
}

// build makes the job that a valid request asks for, with its insertion number, but does not place it yet.
func (s *Store) build(r *core.EnqueueRequest, id string, now time.Time) (*job, error) {
	runAt := now
	if r.Delay > 0 {
		if runAt = core.Micros(now.Add(r.Delay)); runAt.Year() > 9999 {
			return nil, &core.InvalidError{Field: "Delay", Reason: "leads past the year 9999"}
		}
	} else if at := core.Micros(r.RunAt); at.After(now) {
		runAt = at
	}
	s.serial++
	if id == "" {
		id = string(strconv.AppendInt([]byte{'#'}, s.serial, 10))
	}
	j := &job{rec: core.Record{
		ID: id, Name: r.Name, Queue: r.Queue, Ref: s.serial,
		Payload:     bytes.Clone(r.Payload),
		Priority:    r.Priority,
		MaxAttempts: r.MaxAttempts, MaxStalls: r.MaxStalls,
		Backoff: r.Backoff, Keep: r.Keep, Timeout: r.Timeout,
		Trace:      clone(r.Trace),
		EnqueuedAt: now, RunAt: runAt,
	}}
	if len(r.Metadata) > 0 {
		j.rec.Metadata = maps.Clone(r.Metadata)
	}
	return j, nil
}

// insert places a built job and wakes its queue: a delayed one too, since it may be due before what the idle wait
// for (Q15).
func (s *Store) insert(j *job, now time.Time) {
	q := s.queue(j.rec.Queue)
	j.lane = q.lane(j.rec.Name)
	s.jobs[j.rec.ID] = j
	if j.rec.RunAt.After(now) {
		s.move(j, core.StateDelayed)
	} else {
		s.join(j)
	}
	s.ring(q)
}
