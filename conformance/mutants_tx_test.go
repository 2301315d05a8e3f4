package conformance

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
)

// brokenView is a transaction's view with one fault.
type brokenView struct {
	core.TxView
	enqueue  func(context.Context, []core.EnqueueRequest) ([]core.EnqueueResult, error)
	complete func(context.Context, core.Lease, []byte) error
}

func (v *brokenView) Enqueue(ctx context.Context, r []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	return v.enqueue(ctx, r)
}

func (v *brokenView) Complete(ctx context.Context, l core.Lease, result []byte) error {
	return v.complete(ctx, l, result)
}

// views lets a mutant change what a transaction does.
func (h *hooked) views(change func(*brokenView)) {
	begin := h.begin
	h.begin = func() (core.TxView, func() error, func() error) {
		view, commit, rollback := begin()
		v := &brokenView{view, view.Enqueue, view.Complete}
		change(v)
		return v, commit, rollback
	}
}

func txMutants() []mutant {
	return []mutant{
		broken("no fencing on a transaction's Complete", func(h *hooked) {
			token := h.tokens()
			h.views(func(v *brokenView) {
				complete := v.complete
				v.complete = func(ctx context.Context, l core.Lease, result []byte) error {
					if j, err := h.Store.Get(ctx, l.ID); err == nil && j.State == core.StateActive && core.ValidateToken("", l.Token) == nil {
						l.Token = token(l.ID)
					}
					return complete(ctx, l, result)
				}
			})
		}),
		broken("rollback leaks", func(h *hooked) {
			begin := h.begin
			h.begin = func() (core.TxView, func() error, func() error) {
				view, commit, _ := begin()
				return view, commit, commit
			}
		}),
		broken("commit does nothing", func(h *hooked) {
			begin := h.begin
			h.begin = func() (core.TxView, func() error, func() error) {
				view, _, rollback := begin()
				return view, rollback, rollback
			}
		}),
		broken("claims while a transaction is open hide what it enqueues from the next", func(h *hooked) {
			var open, hidden atomic.Bool
			begin, claim := h.begin, h.claim
			h.begin = func() (core.TxView, func() error, func() error) {
				view, commit, rollback := begin()
				open.Store(true)
				end := func(how func() error) func() error {
					return func() error { open.Store(false); return how() }
				}
				return view, end(commit), end(rollback)
			}
			h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
				if open.Load() {
					hidden.Store(true)
				} else if hidden.CompareAndSwap(true, false) {
					return core.Claimed{}, nil
				}
				return claim(ctx, r)
			}
		}),
		broken("enqueue visible before the commit", func(h *hooked) {
			h.views(func(v *brokenView) { v.enqueue = h.Store.Enqueue })
		}),
		broken("complete outside the transaction", func(h *hooked) {
			h.views(func(v *brokenView) {
				v.complete = func(ctx context.Context, l core.Lease, result []byte) error {
					res, err := h.Store.Ack(ctx, []core.Ack{{Lease: l, Outcome: core.OutcomeComplete, Result: result}})
					if err != nil {
						return err
					}
					return res[0].Err
				}
			})
		}),
		broken("complete of a lost lease succeeds", func(h *hooked) {
			h.views(func(v *brokenView) {
				real := v.complete
				v.complete = func(ctx context.Context, l core.Lease, result []byte) error {
					_ = real(ctx, l, result)
					return nil
				}
			})
		}),
		broken("complete goes by Ref", func(h *hooked) {
			of := h.refs()
			h.views(func(v *brokenView) {
				real := v.complete
				v.complete = func(ctx context.Context, l core.Lease, result []byte) error { return real(ctx, of(l), result) }
			})
		}),
		broken("repeated complete succeeds", func(h *hooked) {
			var mu sync.Mutex
			done := map[core.Lease]bool{}
			h.views(func(v *brokenView) {
				real := v.complete
				v.complete = func(ctx context.Context, l core.Lease, result []byte) error {
					mu.Lock()
					defer mu.Unlock()
					if done[l] {
						return nil
					}
					err := real(ctx, l, result)
					done[l] = err == nil
					return err
				}
			})
		}),
		broken("complete loses to heartbeats", func(h *hooked) {
			var beaten sync.Map
			extend := h.extend
			h.extend = func(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
				for _, l := range leases {
					beaten.Store(l, true)
				}
				return extend(ctx, leases, d)
			}
			h.views(func(v *brokenView) {
				real := v.complete
				v.complete = func(ctx context.Context, l core.Lease, result []byte) error {
					if _, ok := beaten.Load(l); ok {
						return core.ErrLeaseLost
					}
					return real(ctx, l, result)
				}
			})
		}),
		broken("complete drops the result", func(h *hooked) {
			h.views(func(v *brokenView) {
				real := v.complete
				v.complete = func(ctx context.Context, l core.Lease, _ []byte) error { return real(ctx, l, nil) }
			})
		}),
		broken("one bad item fails the transaction", func(h *hooked) {
			h.views(func(v *brokenView) {
				real := v.enqueue
				v.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
					for _, r := range reqs {
						if err := r.Validate(core.Limits{}); err != nil {
							return nil, err
						}
					}
					return real(ctx, reqs)
				}
			})
		}),
	}
}
