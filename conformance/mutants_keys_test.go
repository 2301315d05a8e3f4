package conformance

import (
	"context"
	"maps"
	"time"

	"github.com/stintmq/stint/core"
)

// keyVerbMutants are those of what an operator does about keys.
func keyVerbMutants() []mutant {
	return []mutant{
		retryMutant("retries do not take the key", func(*modelStore, *modelJob, time.Time) error { return nil }),
		retryMutant("retries take the key from others", func(m *modelStore, j *modelJob, _ time.Time) error {
			m.keys[modelKey{j.Name, j.DedupeKey}] = &modelEntry{job: j}
			return nil
		}),
		retryMutant("retries close their window", func(m *modelStore, j *modelJob, now time.Time) error {
			if e := m.keys[modelKey{j.Name, j.DedupeKey}]; e != nil && e.job == j {
				e.end = time.Time{}
			}
			return m.retake(j, now)
		}),
		retryMutant("retries keep a window that ended", func(m *modelStore, j *modelJob, now time.Time) error {
			if e := m.keys[modelKey{j.Name, j.DedupeKey}]; e != nil && e.job == j {
				return nil
			}
			return m.retake(j, now)
		}),
		retryMutant("retries yield to dead entries", func(m *modelStore, j *modelJob, now time.Time) error {
			if e := m.keys[modelKey{j.Name, j.DedupeKey}]; e != nil && e.job != j {
				return &core.ConflictError{Name: j.Name, Key: j.DedupeKey, ID: e.job.ID}
			}
			return m.retake(j, now)
		}),
		retryMutant("retries look at no window of others", func(m *modelStore, j *modelJob, now time.Time) error {
			if e := m.keys[modelKey{j.Name, j.DedupeKey}]; e != nil && e.job != j && !e.job.State.Pending() {
				delete(m.keys, modelKey{j.Name, j.DedupeKey})
			}
			return m.retake(j, now)
		}),
		retryMutant("a conflict names the job itself", func(m *modelStore, j *modelJob, now time.Time) error {
			err := m.retake(j, now)
			if err != nil {
				return &core.ConflictError{Name: j.Name, Key: j.DedupeKey, ID: j.ID}
			}
			return nil
		}),
		broken("pruned jobs free their window", func(h *hooked) {
			h.prune = func(ctx context.Context, _ core.PruneRequest) (int, error) {
				p, err := h.Store.List(ctx, core.Query{Limit: core.MaxListLimit})
				n := 0
				for _, j := range p.Jobs {
					if !j.State.Terminal() {
						continue
					}
					if removed, _ := h.Store.Remove(ctx, j.ID); removed {
						n++
					}
				}
				return n, err
			}
		}),
		spoilt("removed jobs keep their window", func(m *modelStore) core.Store { return &removing{m, true} }),
		spoilt("Remove frees the key of whoever has it", func(m *modelStore) core.Store { return &removing{m, false} }),
		byKeyMutant("CancelByKey of what ended is true", func(_ *modelStore, e *modelEntry, done bool) bool { return e != nil }),
		byKeyMutant("CancelByKey of an active job is false", func(_ *modelStore, e *modelEntry, done bool) bool {
			return done && e.job.State != core.StateActive
		}),
		broken("CancelByKey does nothing", func(h *hooked) {
			h.byKey = func(ctx context.Context, name, key string) (bool, error) {
				p, err := h.Store.List(ctx, core.Query{Name: name, Limit: core.MaxListLimit})
				for _, j := range p.Jobs {
					if j.DedupeKey == key && j.State.Pending() {
						return true, err
					}
				}
				return false, err
			}
		}),
		broken("CancelByKey looks at no name", func(h *hooked) {
			byKey := h.byKey
			h.byKey = func(ctx context.Context, _, key string) (bool, error) { return byKey(ctx, theName, key) }
		}),
		spoilt("CancelByKey looks at the window", func(m *modelStore) core.Store { return &windowOnly{m} }),
		broken("a bad key is cancelled with an error", func(h *hooked) {
			byKey := h.byKey
			h.byKey = func(ctx context.Context, name, key string) (bool, error) {
				if key == "a\x00" {
					return false, &core.InvalidError{Field: "key"}
				}
				return byKey(ctx, name, key)
			}
		}),
	}
}

// retryMutant retries with another rule about the job's key.
func retryMutant(fault string, retake func(*modelStore, *modelJob, time.Time) error) mutant {
	return spoilt(fault, func(m *modelStore) core.Store {
		m.retakes = func(j *modelJob, now time.Time) error {
			if j.DedupeKey == "" {
				return nil
			}
			return retake(m, j, now)
		}
		return m
	})
}

// byKeyMutant changes what CancelByKey answers.
func byKeyMutant(fault string, answer func(m *modelStore, e *modelEntry, done bool) bool) mutant {
	return spoilt(fault, func(m *modelStore) core.Store { return &answeringByKey{m, answer} })
}

type answeringByKey struct {
	*modelStore
	answer func(*modelStore, *modelEntry, bool) bool
}

func (s *answeringByKey) CancelByKey(ctx context.Context, name, key string) (bool, error) {
	done, err := s.modelStore.CancelByKey(ctx, name, key)
	s.lock()
	defer s.mu.Unlock()
	return s.answer(s.modelStore, s.keys[modelKey{name, key}], done), err
}

// windowOnly cancels by key only while the window is open.
type windowOnly struct{ *modelStore }

func (s *windowOnly) CancelByKey(ctx context.Context, name, key string) (bool, error) {
	now := s.lock()
	e := s.keys[modelKey{name, key}]
	alive := e != nil && e.alive(now)
	s.mu.Unlock()
	if !alive {
		return false, nil
	}
	return s.modelStore.CancelByKey(ctx, name, key)
}

// removing frees the key of a removed job never, or whoever has it.
type removing struct {
	*modelStore
	never bool
}

func (s *removing) Remove(ctx context.Context, id string) (bool, error) {
	s.lock()
	j, before := s.find(id), maps.Clone(s.keys)
	s.mu.Unlock()
	done, err := s.modelStore.Remove(ctx, id)
	s.lock()
	defer s.mu.Unlock()
	if s.never {
		s.keys = before
	} else if j != nil && done {
		delete(s.keys, modelKey{j.Name, j.DedupeKey})
	}
	return done, err
}
