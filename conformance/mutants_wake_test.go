package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
)

// knownTokens tells the store's own wake tokens from others.
func (h *hooked) knownTokens() func(core.WakeToken) bool {
	var mu sync.Mutex
	known := map[core.WakeToken]bool{}
	learn := func(t core.WakeToken) {
		mu.Lock()
		defer mu.Unlock()
		known[t] = true
	}
	h.claimed(func(_ core.ClaimRequest, c *core.Claimed) { learn(c.Wake) })
	await := h.await
	h.await = func(ctx context.Context, queues []string, since core.WakeToken) (core.Wake, error) {
		w, err := await(ctx, queues, since)
		learn(w.Token)
		return w, err
	}
	return func(t core.WakeToken) bool {
		mu.Lock()
		defer mu.Unlock()
		return known[t]
	}
}

func wakeMutants() []mutant {
	type await = func(context.Context, []string, core.WakeToken) (core.Wake, error)
	awaits := func(h *hooked, answer func(ctx context.Context, queues []string, since core.WakeToken, await await) (core.Wake, error)) {
		real := h.await
		h.await = func(ctx context.Context, queues []string, since core.WakeToken) (core.Wake, error) {
			return answer(ctx, queues, since, real)
		}
	}
	return []mutant{
		muffled("replaces wake nobody", "replace"),
		muffled("CancelByKey is no Control", "control by key"),
		broken("wake lost between claim and wait", func(h *hooked) {
			known := h.knownTokens()
			awaits(h, func(ctx context.Context, queues []string, since core.WakeToken, await await) (core.Wake, error) {
				if since == "" || !known(since) {
					return await(ctx, queues, since)
				}
				now, err := await(ctx, queues, "")
				if err != nil {
					return now, err
				}
				return await(ctx, queues, now.Token)
			})
		}),
		broken("no wake at all", func(h *hooked) {
			known := h.knownTokens()
			awaits(h, func(ctx context.Context, queues []string, since core.WakeToken, await await) (core.Wake, error) {
				if since == "" || !known(since) {
					return await(ctx, queues, since)
				}
				<-ctx.Done()
				return core.Wake{}, ctx.Err()
			})
		}),
		broken("every queue wakes all", func(h *hooked) {
			awaits(h, func(ctx context.Context, queues []string, since core.WakeToken, await await) (core.Wake, error) {
				return await(ctx, append([]string{theQueue, "mine"}, queues...), since)
			})
		}),
		broken("only the first queue wakes", func(h *hooked) {
			awaits(h, func(ctx context.Context, queues []string, since core.WakeToken, await await) (core.Wake, error) {
				return await(ctx, queues[:min(len(queues), 1)], since)
			})
		}),
		broken("one waiter at a time", func(h *hooked) {
			turn := make(chan struct{}, 1)
			awaits(h, func(ctx context.Context, queues []string, since core.WakeToken, await await) (core.Wake, error) {
				select {
				case turn <- struct{}{}:
					w, err := await(ctx, queues, since)
					if since == "" {
						<-turn
					}
					return w, err
				case <-ctx.Done():
					return core.Wake{}, ctx.Err()
				}
			})
		}),
		broken("no Control", func(h *hooked) {
			awaits(h, func(ctx context.Context, queues []string, since core.WakeToken, await await) (core.Wake, error) {
				w, err := await(ctx, queues, since)
				w.Control = false
				return w, err
			})
		}),
		broken("empty token waits", func(h *hooked) {
			awaits(h, func(ctx context.Context, queues []string, since core.WakeToken, await await) (core.Wake, error) {
				if since == "" {
					<-ctx.Done()
					return core.Wake{}, ctx.Err()
				}
				return await(ctx, queues, since)
			})
		}),
		broken("deaf to its context", func(h *hooked) {
			awaits(h, func(_ context.Context, queues []string, since core.WakeToken, await await) (core.Wake, error) {
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				defer cancel()
				return await(ctx, queues, since)
			})
		}),
		muffled("delayed enqueues wake nobody", "delayed"),
		muffled("retries wake nobody", "retry"),
		muffled("snoozes wake nobody", "snooze"),
		muffled("releases wake nobody", "release"),
		muffled("recoveries wake nobody", "recover"),
		muffled("promotions wake nobody", "promote"),
		muffled("admin retries wake nobody", "admin retry"),
		muffled("resumed queues wake nobody", "resume"),
		muffled("claims that leave due jobs over wake nobody", "left over"),
	}
}
