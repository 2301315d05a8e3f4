package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// find begins a method about one job: like enter, and a job that is due has joined, for it must look and act like a
// waiting one (Q27). An unknown id is an error.
func (s *Store) find(ctx context.Context, id string) (*job, time.Time, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	j := s.jobs[id]
	if j == nil {
		s.mu.Unlock()
		return nil, time.Time{}, core.ErrNotFound
	}
	if j.rec.State == core.StateDelayed {
		s.joinAllDue(j.rec.Queue, now)
	}
	return j, now, nil
}

// Retry implements core.Admin (Q8).
func (s *Store) Retry(ctx context.Context, id string) error {
	j, now, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	r := &j.rec
	if r.State != core.StateFailed && r.State != core.StateCancelled {
		return &core.StateError{ID: id, State: r.State, Op: "retry"}
	}
	if err := s.retake(j, now); err != nil {
		return err
	}
	r.Attempts, r.Stalls = 0, 0
	r.Result, r.Failure = nil, nil
	r.CancelRequested = false
	s.pend(j, now, now)
	r.FinishedAt = time.Time{} // by which it was found until now
	s.ring(j.lane.queue)
	return nil
}

// Cancel implements core.Admin (Q8).
func (s *Store) Cancel(ctx context.Context, id string) (core.State, error) {
	j, now, err := s.find(ctx, id)
	if err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	if j.rec.State.Terminal() {
		return "", &core.StateError{ID: id, State: j.rec.State, Op: "cancel"}
	}
	s.cancel(j, now)
	return j.rec.State, nil
}

// cancel ends a pending job, or asks it to end.
func (s *Store) cancel(j *job, now time.Time) {
	if j.rec.State == core.StateActive {
		j.rec.CancelRequested = true
		s.ringControl()
		return
	}
	s.end(j, core.StateCancelled, entry{Attempt: core.Attempt{Outcome: core.OutcomeCancel}}, now)
}

// Promote implements core.Admin (Q8).
func (s *Store) Promote(ctx context.Context, id string) error {
	j, now, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if j.rec.State != core.StateDelayed {
		return &core.StateError{ID: id, State: j.rec.State, Op: "promote"}
	}
	s.pend(j, now, now)
	s.ring(j.lane.queue)
	return nil
}

// Remove implements core.Admin (Q8).
func (s *Store) Remove(ctx context.Context, id string) (bool, error) {
	if _, err := s.enter(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	j := s.jobs[id]
	if j == nil || j.rec.State == core.StateActive {
		return false, nil
	}
	s.free(j)
	s.forget(j)
	return true, nil
}

// Pause implements core.Admin (Q8). It lasts as long as the store.
func (s *Store) Pause(ctx context.Context, queue string) error {
	return s.setPaused(ctx, queue, true)
}

// Resume implements core.Admin (Q8).
func (s *Store) Resume(ctx context.Context, queue string) error {
	return s.setPaused(ctx, queue, false)
}

func (s *Store) setPaused(ctx context.Context, name string, paused bool) error {
	if err := core.ValidateQueue("queue", name); err != nil {
		return err
	}
	if _, err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	q := s.queue(name)
	q.paused = paused
	if !paused {
		s.ring(q)
	}
	return nil
}

// Paused implements core.Admin.
func (s *Store) Paused(ctx context.Context) ([]string, error) {
	if _, err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var names []string
	for _, q := range s.queues {
		if q.paused {
			names = append(names, q.name)
		}
	}
	slices.Sort(names)
	return names, nil
}
