package memstore

import (
	"bytes"
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/stintmq/stint/core"
)

// Enqueue implements core.Enqueuer (Q10 to Q13).
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
		d := reqs[i].Dedupe
		if d != nil {
			if met, done := s.meet(keyName{reqs[i].Name, d.Key}, &reqs[i], now); done {
				results[i] = met
				continue
			}
		}
		j, err := s.build(&reqs[i], id, now)
		if err != nil {
			results[i].Err = err
			continue
		}
		s.insert(j, now)
		if d != nil {
			s.take(keyName{reqs[i].Name, d.Key}, j, d.WindowEnd(now))
		}
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

// due is when a valid request is to run.
func due(r *core.EnqueueRequest, now time.Time) (time.Time, error) {
	if r.Delay > 0 {
		at := core.Micros(now.Add(r.Delay))
		if at.Year() > 9999 {
			return at, &core.InvalidError{Field: "Delay", Reason: "leads past the year 9999"}
		}
		return at, nil
	}
	if at := core.Micros(r.RunAt); at.After(now) {
		return at, nil
	}
	return now, nil
}

// build makes the job that a valid request asks for, with its insertion number, but does not place it yet.
func (s *Store) build(r *core.EnqueueRequest, id string, now time.Time) (*job, error) {
	runAt, err := due(r, now)
	if err != nil {
		return nil, err
	}
	s.serial++
	if id == "" {
		id = string(strconv.AppendInt([]byte{'#'}, s.serial, 10))
	}
	j := &job{rec: core.Record{ID: id, Name: r.Name, Queue: r.Queue, Ref: s.serial, EnqueuedAt: now, RunAt: runAt}}
	if r.Dedupe != nil {
		j.rec.DedupeKey = r.Dedupe.Key
	}
	overwrite(&j.rec, r)
	return j, nil
}

// overwrite gives a record what a Replace changes of it, but for the time (Q12).
func overwrite(rec *core.Record, r *core.EnqueueRequest) {
	rec.Payload, rec.Metadata, rec.Trace = bytes.Clone(r.Payload), nil, clone(r.Trace)
	if len(r.Metadata) > 0 {
		rec.Metadata = maps.Clone(r.Metadata)
	}
	rec.Priority, rec.MaxAttempts, rec.MaxStalls = r.Priority, r.MaxAttempts, r.MaxStalls
	rec.Backoff, rec.Keep, rec.Timeout = r.Backoff, r.Keep, r.Timeout
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
