package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/stintmq/stint/core"
)

// tokens remembers who holds what, for mutants that pass one token off as another.
func (h *hooked) tokens() func(id string) string {
	var mu sync.Mutex
	current := map[string]string{}
	h.claimed(func(r core.ClaimRequest, c *core.Claimed) {
		mu.Lock()
		defer mu.Unlock()
		for _, j := range c.Jobs {
			current[j.ID] = r.Token
		}
	})
	return func(id string) string {
		mu.Lock()
		defer mu.Unlock()
		return current[id]
	}
}

// instead lets a mutant answer acks one by one.
func (h *hooked) instead(answer func(ctx context.Context, a core.Ack, ack func(core.Ack) core.AckResult) core.AckResult) {
	real := h.ack
	h.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
		if res, err := real(ctx, nil); err != nil {
			return res, err // the call's own: the context ended, or the store is closed
		}
		res := make([]core.AckResult, len(acks))
		for i, a := range acks {
			res[i] = answer(ctx, a, func(a core.Ack) core.AckResult {
				r, err := real(ctx, []core.Ack{a})
				if err != nil {
					return core.AckResult{Err: err}
				}
				return r[0]
			})
		}
		return res, nil
	}
}

// refs remembers which job a Ref is of, for mutants that go by it.
func (h *hooked) refs() func(core.Lease) core.Lease {
	var mu sync.Mutex
	ids := map[int64]string{}
	h.claimed(func(_ core.ClaimRequest, c *core.Claimed) {
		mu.Lock()
		defer mu.Unlock()
		for _, j := range c.Jobs {
			ids[j.Ref] = j.ID
		}
	})
	return func(l core.Lease) core.Lease {
		mu.Lock()
		defer mu.Unlock()
		if id, ok := ids[l.Ref]; ok {
			l.ID = id
		}
		return l
	}
}

func ackMutants() []mutant {
	return []mutant{
		broken("ack goes by Ref", func(h *hooked) {
			of := h.refs()
			h.asked(func(a *core.Ack) { a.Lease = of(a.Lease) })
		}),
		broken("no fencing on ack", func(h *hooked) {
			token := h.tokens()
			h.asked(func(a *core.Ack) {
				if t := token(a.Lease.ID); t != "" {
					a.Lease.Token = t
				}
			})
		}),
		broken("stale acks answered as done", func(h *hooked) {
			h.instead(func(ctx context.Context, a core.Ack, ack func(core.Ack) core.AckResult) core.AckResult {
				r := ack(a)
				if errors.Is(r.Err, core.ErrLeaseLost) {
					j, _ := h.Store.Get(ctx, a.Lease.ID)
					return core.AckResult{State: j.State}
				}
				return r
			})
		}),
		broken("unknown id answered as lost", func(h *hooked) {
			h.instead(func(_ context.Context, a core.Ack, ack func(core.Ack) core.AckResult) core.AckResult {
				r := ack(a)
				if errors.Is(r.Err, core.ErrNotFound) {
					r.Err = core.ErrLeaseLost
				}
				return r
			})
		}),
		broken("repeated ack refused", func(h *hooked) {
			var mu sync.Mutex
			done := map[core.Lease]bool{}
			h.instead(func(_ context.Context, a core.Ack, ack func(core.Ack) core.AckResult) core.AckResult {
				mu.Lock()
				defer mu.Unlock()
				if done[a.Lease] {
					return core.AckResult{Err: core.ErrLeaseLost}
				}
				r := ack(a)
				done[a.Lease] = r.Err == nil
				return r
			})
		}),
		broken("repeat answers the present state", func(h *hooked) {
			h.instead(func(ctx context.Context, a core.Ack, ack func(core.Ack) core.AckResult) core.AckResult {
				r := ack(a)
				if j, err := h.Store.Get(ctx, a.Lease.ID); err == nil && r.Err == nil {
					r.State = j.State
				}
				return r
			})
		}),
		broken("ack results out of order", func(h *hooked) {
			ack := h.ack
			h.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
				res, err := ack(ctx, acks)
				slices.Reverse(res)
				return res, err
			}
		}),
		broken("one lost lease fails the batch", func(h *hooked) {
			ack := h.ack
			h.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
				res, err := ack(ctx, acks)
				for _, r := range res {
					if r.Err != nil && len(res) > 1 {
						return nil, r.Err
					}
				}
				return res, err
			}
		}),
		broken("released to the tail", func(h *hooked) {
			h.asked(func(a *core.Ack) {
				if a.Outcome == core.OutcomeRelease {
					a.Outcome, a.Delay = core.OutcomeSnooze, 0
				}
			})
			h.seen(func(r *core.Record) { r.Snoozes = 0 })
		}),
		broken("release costs an attempt", func(h *hooked) {
			h.asked(func(a *core.Ack) {
				if a.Outcome == core.OutcomeRelease {
					a.Outcome, a.Delay = core.OutcomeRetry, 0
				}
			})
		}),
		broken("snooze costs an attempt", func(h *hooked) {
			h.seen(func(r *core.Record) { r.Attempts += r.Snoozes })
		}),
		broken("cancelling costs an attempt", func(h *hooked) {
			h.seen(func(r *core.Record) {
				if r.State == core.StateCancelled {
					r.Attempts++
				}
			})
		}),
		broken("delays of retries ignored", func(h *hooked) { h.asked(func(a *core.Ack) { a.Delay = min(a.Delay, 0) }) }),
		broken("null result lost", func(h *hooked) {
			h.asked(func(a *core.Ack) {
				if string(a.Result) == "null" {
					a.Result = nil
				}
			})
		}),
		broken("no result made empty", func(h *hooked) {
			h.asked(func(a *core.Ack) { a.Result = append([]byte{}, a.Result...) })
		}),
		broken("empty result lost", func(h *hooked) {
			h.asked(func(a *core.Ack) { a.Result = append([]byte(nil), a.Result...) })
		}),
		broken("result of a failure kept", func(h *hooked) {
			h.seen(func(r *core.Record) {
				if r.State == core.StateFailed {
					r.Result = []byte("r")
				}
			})
		}),
		broken("stack lost", func(h *hooked) {
			h.asked(func(a *core.Ack) {
				if a.Validate(core.Limits{}) == nil && a.Failure != nil {
					f := *a.Failure
					f.Stack, a.Failure = "", &f
				}
			})
		}),
		broken("cancel beats complete", func(h *hooked) {
			h.instead(func(ctx context.Context, a core.Ack, ack func(core.Ack) core.AckResult) core.AckResult {
				if j, err := h.Store.Get(ctx, a.Lease.ID); err == nil && j.CancelRequested && a.Outcome == core.OutcomeComplete {
					a.Outcome = core.OutcomeCancel
				}
				return ack(a)
			})
		}),
		broken("ledger without the worker", func(h *hooked) {
			attempts := h.attempts
			h.attempts = func(ctx context.Context, id string) ([]core.Attempt, error) {
				as, err := attempts(ctx, id)
				for i := range as {
					as[i].Worker = ""
				}
				return as, err
			}
		}),
		broken("ledger newest first", func(h *hooked) {
			attempts := h.attempts
			h.attempts = func(ctx context.Context, id string) ([]core.Attempt, error) {
				as, err := attempts(ctx, id)
				slices.Reverse(as)
				return as, err
			}
		}),
		broken("ledger restarts on retry", func(h *hooked) {
			before := map[string]int{}
			retry, attempts := h.retry, h.attempts
			h.retry = func(ctx context.Context, id string) error {
				as, _ := attempts(ctx, id)
				before[id] = len(as)
				return retry(ctx, id)
			}
			h.attempts = func(ctx context.Context, id string) ([]core.Attempt, error) {
				as, err := attempts(ctx, id)
				return as[min(len(as), before[id]):], err
			}
		}),
		broken("ledger of ninety-nine", func(h *hooked) {
			attempts := h.attempts
			h.attempts = func(ctx context.Context, id string) ([]core.Attempt, error) {
				as, err := attempts(ctx, id)
				return as[max(0, len(as)-core.LedgerLimit+1):], err
			}
		}),
		bare("repeats known for fifty runs", func(m *modelStore) core.Store { return &shortMemory{m, 50} }),
		bare("repeats known for ninety-nine runs", func(m *modelStore) core.Store { return &shortMemory{m, 99} }),
		spoilt("expired lease refused", func(m *modelStore) core.Store { return &strictLease{m} }),
		spoilt("cancel ignored by retry", func(m *modelStore) core.Store { return &deafRetry{m} }),
		spoilt("retry keeps its place", func(m *modelStore) core.Store { return &keptPlace{m} }),
	}
}

// shortMemory forgets ledger entries too soon.
type shortMemory struct {
	*modelStore
	keeps int
}

func (s *shortMemory) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	res, err := s.modelStore.Ack(ctx, acks)
	s.lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		j.ledger = j.ledger[max(0, len(j.ledger)-s.keeps):]
	}
	return res, err
}

// strictLease refuses acks of leases that ended, although no sweep took them back.
type strictLease struct{ *modelStore }

func (s *strictLease) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	now := s.lock()
	for _, a := range acks {
		if j := s.find(a.Lease.ID); j != nil && j.State == core.StateActive && !j.until.After(now) {
			j.token = ""
		}
	}
	s.mu.Unlock()
	return s.modelStore.Ack(ctx, acks)
}

// deafRetry forgets a pending cancel when a job is retried.
type deafRetry struct{ *modelStore }

func (d *deafRetry) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	d.lock()
	for _, a := range acks {
		if j := d.find(a.Lease.ID); j != nil && a.Outcome == core.OutcomeRetry {
			j.CancelRequested = false
		}
	}
	d.mu.Unlock()
	return d.modelStore.Ack(ctx, acks)
}

// keptPlace lets a job that is retried at once go on where it was.
type keptPlace struct{ *modelStore }

func (p *keptPlace) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	places := map[string]int64{}
	p.lock()
	for _, j := range p.jobs {
		places[j.ID] = j.place
	}
	p.mu.Unlock()
	res, err := p.modelStore.Ack(ctx, acks)
	p.lock()
	defer p.mu.Unlock()
	for _, j := range p.jobs {
		j.place = places[j.ID]
	}
	return res, err
}
