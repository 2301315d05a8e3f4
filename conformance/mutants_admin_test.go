package conformance

import (
	"context"
	"errors"
	"slices"

	"github.com/stintmq/stint/core"
)

func adminMutants() []mutant {
	lenient := func(verb func(context.Context, string) error) func(context.Context, string) error {
		return func(ctx context.Context, id string) error {
			err := verb(ctx, id)
			if _, ok := errors.AsType[*core.StateError](err); ok {
				return nil
			}
			return err
		}
	}
	return []mutant{
		broken("retry of anything", func(h *hooked) { h.retry = lenient(h.retry) }),
		broken("promote of anything", func(h *hooked) { h.promote = lenient(h.promote) }),
		broken("cancel of anything", func(h *hooked) {
			cancel := h.cancel
			h.cancel = func(ctx context.Context, id string) (core.State, error) {
				state, err := cancel(ctx, id)
				if e, ok := errors.AsType[*core.StateError](err); ok {
					return e.State, nil
				}
				return state, err
			}
		}),
		broken("cancel answers cancelled for active jobs", func(h *hooked) {
			cancel := h.cancel
			h.cancel = func(ctx context.Context, id string) (core.State, error) {
				state, err := cancel(ctx, id)
				if err == nil {
					state = core.StateCancelled
				}
				return state, err
			}
		}),
		broken("unknown id is a state error", func(h *hooked) {
			retry := h.retry
			h.retry = func(ctx context.Context, id string) error {
				err := retry(ctx, id)
				if errors.Is(err, core.ErrNotFound) {
					return &core.StateError{ID: id, Op: "retry"}
				}
				return err
			}
		}),
		broken("remove of nothing is true", func(h *hooked) {
			remove := h.remove
			h.remove = func(ctx context.Context, id string) (bool, error) {
				_, err := remove(ctx, id)
				return true, err
			}
		}),
		broken("remove of an unknown id is an error", func(h *hooked) {
			remove := h.remove
			h.remove = func(ctx context.Context, id string) (bool, error) {
				ok, err := remove(ctx, id)
				if _, gone := h.Store.Get(ctx, id); err == nil && !ok && gone != nil {
					return false, core.ErrNotFound
				}
				return ok, err
			}
		}),
		broken("pause twice is an error", func(h *hooked) {
			pause := h.pause
			h.pause = func(ctx context.Context, queue string) error {
				paused, _ := h.Paused(ctx)
				if slices.Contains(paused, queue) {
					return errors.New("paused already")
				}
				return pause(ctx, queue)
			}
		}),
		spoilt("cancelled jobs cannot be retried", func(m *modelStore) core.Store { return &noSecondChance{m} }),
		spoilt("retry keeps the stalls", func(m *modelStore) core.Store { return &keptStalls{m} }),
		spoilt("promote keeps the time", func(m *modelStore) core.Store { return &timelessPromote{m} }),
	}
}

// noSecondChance refuses to retry cancelled jobs.
type noSecondChance struct{ *modelStore }

func (n *noSecondChance) Retry(ctx context.Context, id string) error {
	if r, err := n.Get(ctx, id); err == nil && r.State == core.StateCancelled {
		return &core.StateError{ID: id, State: r.State, Op: "retry"}
	}
	return n.modelStore.Retry(ctx, id)
}

// keptStalls retries without a fresh budget of stalls.
type keptStalls struct{ *modelStore }

func (s *keptStalls) Retry(ctx context.Context, id string) error {
	before, _ := s.Get(ctx, id)
	err := s.modelStore.Retry(ctx, id)
	s.lock()
	defer s.mu.Unlock()
	if j := s.find(id); j != nil && err == nil {
		j.Stalls = before.Stalls
	}
	return err
}

// timelessPromote makes a job waiting and leaves its RunAt in the future.
type timelessPromote struct{ *modelStore }

func (p *timelessPromote) Promote(ctx context.Context, id string) error {
	before, _ := p.Get(ctx, id)
	err := p.modelStore.Promote(ctx, id)
	p.lock()
	defer p.mu.Unlock()
	if j := p.find(id); j != nil && err == nil {
		j.RunAt = before.RunAt
	}
	return err
}
