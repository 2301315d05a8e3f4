package conformance

import (
	"context"

	"github.com/stintmq/stint/core"
)

// What the model tells of a job.

func (m *modelStore) Get(ctx context.Context, id string) (core.Record, error) {
	if _, err := m.enter(ctx); err != nil {
		return core.Record{}, err
	}
	defer m.mu.Unlock()
	if j := m.find(id); j != nil {
		return j.copy(), nil
	}
	return core.Record{}, core.ErrNotFound
}

func (m *modelStore) Attempts(ctx context.Context, id string) ([]core.Attempt, error) {
	if _, err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var as []core.Attempt
	if j := m.find(id); j != nil {
		for _, e := range j.ledger {
			as = append(as, e.Attempt)
		}
	}
	return as, nil
}
