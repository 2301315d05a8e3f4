package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
)

// closes lets a mutant know whether it is closed.
func (h *hooked) closes() *atomic.Bool {
	var closed atomic.Bool
	real := h.close
	h.close = func() error {
		closed.Store(true)
		return real()
	}
	return &closed
}

// errBare says nothing of what happened.
var errBare = errors.New("database is closed")

func closedMutants() []mutant {
	return []mutant{
		broken("what is not done is said to be closed", func(h *hooked) {
			real := h.claim
			h.claim = func(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
				c, err := real(ctx, req)
				if errors.Is(err, core.ErrUnavailable) {
					err = fmt.Errorf("%w: %w", core.ErrClosed, err)
				}
				return c, err
			}
		}),
		broken("Close does nothing", func(h *hooked) { h.close = func() error { return nil } }),
		broken("a closed store has nothing to claim", func(h *hooked) {
			closed, real := h.closes(), h.claim
			h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
				if closed.Load() {
					return core.Claimed{}, nil
				}
				return real(ctx, r)
			}
		}),
		broken("a closed store finds no leases", func(h *hooked) {
			closed, real := h.closes(), h.extend
			h.extend = func(ctx context.Context, l []core.Lease, d time.Duration) (core.Extended, error) {
				if closed.Load() {
					return core.Extended{Lost: l}, nil
				}
				return real(ctx, l, d)
			}
		}),
		broken("a closed store does not say that nothing was done", func(h *hooked) {
			closed, real := h.closes(), h.ack
			h.ack = func(ctx context.Context, a []core.Ack) ([]core.AckResult, error) {
				if closed.Load() {
					return nil, errBare
				}
				return real(ctx, a)
			}
		}),
		broken("a closed store knows no job", func(h *hooked) {
			closed, real := h.closes(), h.get
			h.get = func(ctx context.Context, id string) (core.Record, error) {
				if closed.Load() {
					return core.Record{}, core.ErrNotFound
				}
				return real(ctx, id)
			}
		}),
		broken("a closed store has no paused queues", func(h *hooked) {
			closed, real := h.closes(), h.paused
			h.paused = func(ctx context.Context) ([]string, error) {
				if closed.Load() {
					return nil, nil
				}
				return real(ctx)
			}
		}),
		broken("AwaitWake of a closed store waits", func(h *hooked) {
			closed, real := h.closes(), h.await
			h.await = func(ctx context.Context, q []string, since core.WakeToken) (core.Wake, error) {
				if closed.Load() {
					<-ctx.Done()
					return core.Wake{}, ctx.Err()
				}
				return real(ctx, q, since)
			}
		}),
		broken("who waits when the store is closed waits on", func(h *hooked) {
			closed, real := h.closes(), h.await
			h.await = func(ctx context.Context, q []string, since core.WakeToken) (core.Wake, error) {
				before := closed.Load()
				w, err := real(ctx, q, since)
				if !before && errors.Is(err, core.ErrUnavailable) {
					<-ctx.Done()
				}
				return w, err
			}
		}),
		broken("Close waits for those who wait", func(h *hooked) {
			var waiting sync.RWMutex
			real, end := h.await, h.close
			h.await = func(ctx context.Context, q []string, since core.WakeToken) (core.Wake, error) {
				waiting.RLock()
				defer waiting.RUnlock()
				return real(ctx, q, since)
			}
			h.close = func() error {
				waiting.Lock()
				defer waiting.Unlock()
				return end()
			}
		}),
		broken("a second Close fails", func(h *hooked) {
			closed, end := h.closes(), h.close
			h.close = func() error {
				if closed.Load() {
					return errBare
				}
				return end()
			}
		}),
		broken("a second Close panics", func(h *hooked) {
			end, once := h.close, make(chan struct{})
			h.close = func() error {
				close(once)
				return end()
			}
		}),
		broken("Close cuts a call short, which does not say whether it was done", func(h *hooked) {
			var closing atomic.Bool
			cut := make(chan struct{}, 1)
			real, end := h.enqueue, h.close
			h.enqueue = func(ctx context.Context, r []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				if closing.Swap(false) {
					cut <- struct{}{}
					return nil, errBare
				}
				return real(ctx, r)
			}
			h.close = func() error {
				closing.Store(true)
				select { // the next call, if there is one
				case <-cut:
				case <-time.After(100 * time.Millisecond):
					closing.Store(false)
				}
				return end()
			}
		}),
	}
}
