package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// deaf are the contexts of those that don't look whether theirs has ended.
var deaf = context.WithoutCancel

func endedMutants() []mutant {
	return []mutant{
		broken("Enqueue does not look at its context", func(h *hooked) {
			real := h.enqueue
			h.enqueue = func(ctx context.Context, r []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				return real(deaf(ctx), r)
			}
		}),
		broken("Claim does not look at its context", func(h *hooked) {
			real := h.claim
			h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) { return real(deaf(ctx), r) }
		}),
		broken("asking what a token holds does not look at its context", func(h *hooked) {
			real := h.claim
			h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
				if len(r.Wants) == 0 {
					ctx = deaf(ctx)
				}
				return real(ctx, r)
			}
		}),
		broken("Extend does not look at its context", func(h *hooked) {
			real := h.extend
			h.extend = func(ctx context.Context, l []core.Lease, d time.Duration) (core.Extended, error) {
				return real(deaf(ctx), l, d)
			}
		}),
		broken("Ack does not look at its context", func(h *hooked) {
			real := h.ack
			h.ack = func(ctx context.Context, a []core.Ack) ([]core.AckResult, error) { return real(deaf(ctx), a) }
		}),
		broken("RecoverStalled does not look at its context", func(h *hooked) {
			real := h.sweep
			h.sweep = func(ctx context.Context, r core.RecoverRequest) ([]core.Recovered, error) { return real(deaf(ctx), r) }
		}),
		broken("AwaitWake returns nothing when its context had ended", func(h *hooked) {
			real := h.await
			h.await = func(ctx context.Context, q []string, since core.WakeToken) (core.Wake, error) {
				if ctx.Err() != nil {
					return core.Wake{Token: since}, nil
				}
				return real(ctx, q, since)
			}
		}),
		broken("an Enqueue refused is done", func(h *hooked) {
			real := h.enqueue
			h.enqueue = func(ctx context.Context, r []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				res, err := real(deaf(ctx), r)
				return res, errors.Join(err, late(ctx))
			}
		}),
		broken("a Claim refused is done", func(h *hooked) {
			real := h.claim
			h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
				c, err := real(deaf(ctx), r)
				return c, errors.Join(err, late(ctx))
			}
		}),
		broken("an Extend refused is done", func(h *hooked) {
			real := h.extend
			h.extend = func(ctx context.Context, l []core.Lease, d time.Duration) (core.Extended, error) {
				x, err := real(deaf(ctx), l, d)
				return x, errors.Join(err, late(ctx))
			}
		}),
		broken("an Ack refused is done", func(h *hooked) {
			real := h.ack
			h.ack = func(ctx context.Context, a []core.Ack) ([]core.AckResult, error) {
				res, err := real(deaf(ctx), a)
				return res, errors.Join(err, late(ctx))
			}
		}),
		broken("a RecoverStalled refused is done", func(h *hooked) {
			real := h.sweep
			h.sweep = func(ctx context.Context, r core.RecoverRequest) ([]core.Recovered, error) {
				got, err := real(deaf(ctx), r)
				return got, errors.Join(err, late(ctx))
			}
		}),
		broken("a RecoverStalled refused has its suspicions", func(h *hooked) {
			real := h.sweep
			h.sweep = func(ctx context.Context, r core.RecoverRequest) ([]core.Recovered, error) {
				if err := late(ctx); err != nil {
					_, _ = real(deaf(ctx), core.RecoverRequest{MaxStalls: r.MaxStalls, Confirm: time.Minute})
					return nil, err
				}
				return real(ctx, r)
			}
		}),
		broken("an ended context without ErrUnavailable", func(h *hooked) {
			real := h.ack
			h.ack = func(ctx context.Context, a []core.Ack) ([]core.AckResult, error) {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				return real(ctx, a)
			}
		}),
		broken("an ended context without its error", func(h *hooked) {
			real := h.claim
			h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
				if ctx.Err() != nil {
					return core.Claimed{}, core.ErrUnavailable
				}
				return real(ctx, r)
			}
		}),
		broken("the cause of the context's end in place of its error", func(h *hooked) {
			real := h.enqueue
			h.enqueue = func(ctx context.Context, r []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				if cause := context.Cause(ctx); cause != nil {
					return nil, fmt.Errorf("%w: %w", core.ErrUnavailable, cause)
				}
				return real(ctx, r)
			}
		}),
		broken("an ended context refuses the acks, not the call", func(h *hooked) {
			real := h.ack
			h.ack = func(ctx context.Context, a []core.Ack) ([]core.AckResult, error) {
				if err := late(ctx); err != nil && len(a) > 0 {
					res := make([]core.AckResult, len(a))
					for i := range res {
						res[i].Err = err
					}
					return res, nil
				}
				return real(ctx, a)
			}
		}),
		broken("Get does not look at its context", func(h *hooked) {
			real := h.get
			h.get = func(ctx context.Context, id string) (core.Record, error) { return real(deaf(ctx), id) }
		}),
		broken("Attempts does not look at its context", func(h *hooked) {
			real := h.attempts
			h.attempts = func(ctx context.Context, id string) ([]core.Attempt, error) { return real(deaf(ctx), id) }
		}),
		broken("List does not look at its context", func(h *hooked) {
			real := h.list
			h.list = func(ctx context.Context, q core.Query) (core.Page, error) { return real(deaf(ctx), q) }
		}),
		broken("Counts does not look at its context", func(h *hooked) {
			real := h.counts
			h.counts = func(ctx context.Context, q string) (map[core.State]int64, error) { return real(deaf(ctx), q) }
		}),
		broken("Stranded does not look at its context", func(h *hooked) {
			real := h.stranded
			h.stranded = func(ctx context.Context, known []string) ([]core.Stranded, error) { return real(deaf(ctx), known) }
		}),
		broken("Explain does not look at its context", func(h *hooked) {
			real := h.explain
			h.explain = func(ctx context.Context, id string) (core.Explanation, error) { return real(deaf(ctx), id) }
		}),
		broken("Paused does not look at its context", func(h *hooked) {
			real := h.paused
			h.paused = func(ctx context.Context) ([]string, error) { return real(deaf(ctx)) }
		}),
		broken("Cancel does not look at its context", func(h *hooked) {
			real := h.cancel
			h.cancel = func(ctx context.Context, id string) (core.State, error) { return real(deaf(ctx), id) }
		}),
		broken("a Resume refused is done", func(h *hooked) {
			real := h.resume
			h.resume = func(ctx context.Context, queue string) error {
				return errors.Join(real(deaf(ctx), queue), late(ctx))
			}
		}),
	}
}

// late is the error of a call whose context ended; nil if it did not.
func late(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	return nil
}
