package conformance

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// The model's admin verbs.

var _ core.Admin = (*modelStore)(nil)

func (m *modelStore) Retry(ctx context.Context, id string) error {
	now, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	j := m.find(id)
	if j == nil {
		return core.ErrNotFound
	}
	if j.State != core.StateFailed && j.State != core.StateCancelled {
		return &core.StateError{ID: id, State: j.State, Op: "retry"}
	}
	if err := m.retakes(j, now); err != nil {
		return err
	}
	j.Attempts, j.Stalls, j.Result, j.Failure, j.FinishedAt = 0, 0, nil, nil, time.Time{}
	m.pend(j, now, now)
	return nil
}

func (m *modelStore) Cancel(ctx context.Context, id string) (core.State, error) {
	now, err := m.enter(ctx)
	if err != nil {
		return "", err
	}
	defer m.mu.Unlock()
	j := m.find(id)
	switch {
	case j == nil:
		return "", core.ErrNotFound
	case j.State.Terminal():
		return "", &core.StateError{ID: id, State: j.State, Op: "cancel"}
	}
	m.cancel(j, now)
	return j.State, nil
}

// cancel ends a pending job, or asks it to end.
func (m *modelStore) cancel(j *modelJob, now time.Time) {
	if j.State == core.StateActive {
		j.CancelRequested = true
		return
	}
	m.end(j, core.StateCancelled, now)
	j.record(core.Attempt{Outcome: core.OutcomeCancel, FinishedAt: now}, "", "", "")
}

func (m *modelStore) Promote(ctx context.Context, id string) error {
	now, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	j := m.find(id)
	if j == nil {
		return core.ErrNotFound
	}
	if j.State != core.StateDelayed {
		return &core.StateError{ID: id, State: j.State, Op: "promote"}
	}
	m.pend(j, now, now)
	return nil
}

func (m *modelStore) Remove(ctx context.Context, id string) (bool, error) {
	if _, err := m.enter(ctx); err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	j := m.find(id)
	if j == nil || j.State == core.StateActive {
		return false, nil
	}
	m.jobs = slices.DeleteFunc(m.jobs, func(o *modelJob) bool { return o == j })
	maps.DeleteFunc(m.keys, func(_ modelKey, e *modelEntry) bool { return e.job == j })
	return true, nil
}

func (m *modelStore) Pause(ctx context.Context, queue string) error {
	if _, err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if err := core.ValidateQueue("Queue", queue); err != nil {
		return err
	}
	m.paused[queue] = true
	return nil
}

func (m *modelStore) Resume(ctx context.Context, queue string) error {
	if _, err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if err := core.ValidateQueue("Queue", queue); err != nil {
		return err
	}
	delete(m.paused, queue)
	return nil
}

func (m *modelStore) Paused(ctx context.Context) ([]string, error) {
	if _, err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.paused)), nil
}
