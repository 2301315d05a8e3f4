package conformance

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
)

func claimMutants() []mutant {
	return []mutant{
		broken("double claim", func(h *hooked) {
			var mu sync.Mutex
			var last []core.Record
			h.claimed(func(r core.ClaimRequest, c *core.Claimed) {
				mu.Lock()
				defer mu.Unlock()
				if len(c.Jobs) == 0 && len(r.Wants) > 0 && len(last) > 0 {
					c.Jobs = last[:1]
				}
				last = c.Jobs
			})
		}),
		broken("one double claim in hundreds", func(h *hooked) {
			var mu sync.Mutex
			count, first := 0, core.Record{}
			h.claimed(func(_ core.ClaimRequest, c *core.Claimed) {
				mu.Lock()
				defer mu.Unlock()
				for i, j := range c.Jobs {
					if count++; count == 1 {
						first = j
					} else if count == 777 && j.Name == first.Name && j.Queue == first.Queue {
						c.Jobs[i] = first
					}
				}
			})
		}),
		broken("fence constant", func(h *hooked) { h.seen(func(r *core.Record) { r.Fence = min(r.Fence, 1) }) }),
		broken("early delay", func(h *hooked) {
			claim := h.claim
			h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
				p, _ := h.Store.List(ctx, core.Query{States: []core.State{core.StateDelayed}, Limit: 100})
				for _, j := range p.Jobs {
					if e, err := h.Store.Explain(ctx, j.ID); err == nil && e.DueIn == time.Microsecond {
						_ = h.Store.Promote(ctx, j.ID)
					}
				}
				return claim(ctx, r)
			}
		}),
		broken("priority ignored", func(h *hooked) {
			var mu sync.Mutex
			real := map[string]int{}
			h.stored(func(r *core.EnqueueRequest) {
				if r.Validate(core.Limits{}) == nil && r.ID != "" {
					mu.Lock()
					defer mu.Unlock()
					real[r.ID], r.Priority = r.Priority, 0
				}
			})
			h.seen(func(r *core.Record) {
				mu.Lock()
				defer mu.Unlock()
				r.Priority = real[r.ID]
			})
		}),
		broken("lowest priority first", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) { r.Priority = -r.Priority })
			h.seen(func(r *core.Record) { r.Priority = -r.Priority })
		}),
		broken("last in first out within a call", func(h *hooked) {
			h.claimed(func(_ core.ClaimRequest, c *core.Claimed) { slices.Reverse(c.Jobs) })
		}),
		broken("limit exceeded", func(h *hooked) {
			h.claims(func(r *core.ClaimRequest) {
				for i := range r.Wants {
					if r.Wants[i].Limit > 0 {
						r.Wants[i].Limit++
					}
				}
			})
		}),
		broken("limit of the whole call", func(h *hooked) {
			h.claims(func(r *core.ClaimRequest) {
				if r.Validate() == nil && len(r.Wants) > 1 && r.Wants[0].Limit > 0 {
					r.Wants = r.Wants[:1]
				}
			})
		}),
		broken("foreign names handed out", func(h *hooked) {
			h.claims(func(r *core.ClaimRequest) {
				for i := range r.Wants {
					r.Wants[i].Names = append(slices.Clone(r.Wants[i].Names), "two")
				}
			})
		}),
		broken("without names every name", func(h *hooked) {
			h.claims(func(r *core.ClaimRequest) {
				for i := range r.Wants {
					if len(r.Wants[i].Names) == 0 {
						r.Wants[i].Names = []string{"one", "two", "three", theName}
					}
				}
			})
		}),
		broken("paused queues handed out", func(h *hooked) {
			claim := h.claim
			h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
				paused, _ := h.Paused(ctx)
				for _, q := range paused {
					_ = h.Resume(ctx, q)
				}
				c, err := claim(ctx, r)
				for _, q := range paused {
					_ = h.Store.Pause(ctx, q)
				}
				return c, err
			}
		}),
		broken("poison in batches", func(h *hooked) {
			h.claims(func(r *core.ClaimRequest) {
				var single []core.Want
				for _, w := range r.Wants {
					for range min(w.Limit, 20) {
						single = append(single, core.Want{Queue: w.Queue, Names: w.Names, Limit: 1})
					}
				}
				if r.Validate() == nil && len(single) > 1 && len(single) <= 20 {
					r.Wants = single
				}
			})
		}),
		broken("payload cap ignored", func(h *hooked) {
			claim := h.claim
			h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
				c, err := claim(ctx, r)
				if err == nil && len(c.Jobs) == 16 && len(c.Jobs[0].Payload) == core.DefaultPayload {
					rest, _ := claim(ctx, r)
					c.Jobs, c.NextIn = append(c.Jobs, rest.Jobs...), rest.NextIn
				}
				return c, err
			}
		}),
		broken("NextIn late", func(h *hooked) {
			h.claimed(func(_ core.ClaimRequest, c *core.Claimed) { c.NextIn += c.NextIn / 8 })
		}),
		broken("NextIn always 0", func(h *hooked) {
			h.claimed(func(_ core.ClaimRequest, c *core.Claimed) { c.NextIn = 0 })
		}),
		broken("NextIn never 0", func(h *hooked) {
			h.claimed(func(_ core.ClaimRequest, c *core.Claimed) { c.NextIn = max(c.NextIn, 1) })
		}),
		broken("NextIn of the delayed beside what was left over", func(h *hooked) {
			h.claimed(func(_ core.ClaimRequest, c *core.Claimed) {
				if c.NextIn == 1 && len(c.Jobs) > 0 {
					c.NextIn = time.Minute
				}
			})
		}),
		broken("asking what a token holds extends it", func(h *hooked) {
			h.claimed(func(r core.ClaimRequest, c *core.Claimed) {
				if len(r.Wants) == 0 || r.Wants[0].Limit == 0 {
					for _, j := range c.Jobs {
						_, _ = h.Store.Extend(context.Background(), []core.Lease{{ID: j.ID, Token: r.Token}}, r.Lease)
					}
				}
			})
		}),
		broken("a token holds nothing", func(h *hooked) {
			h.claimed(func(r core.ClaimRequest, c *core.Claimed) {
				if len(r.Wants) == 0 {
					c.Jobs = nil
				}
			})
		}),
		broken("a want without names asks what the token holds", func(h *hooked) {
			h.claims(func(r *core.ClaimRequest) {
				if !slices.ContainsFunc(r.Wants, func(w core.Want) bool { return len(w.Names) > 0 && w.Limit > 0 }) {
					r.Wants = nil
				}
			})
		}),
		broken("what nobody has asks what the token holds", func(h *hooked) {
			claim := h.claim
			h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
				c, err := claim(ctx, r)
				if err == nil && len(c.Jobs) == 0 {
					held, _ := claim(ctx, core.ClaimRequest{Token: r.Token})
					c.Jobs = held.Jobs
				}
				return c, err
			}
		}),
		broken("zero lease means the default", func(h *hooked) {
			h.claims(func(r *core.ClaimRequest) {
				if r.Lease == 0 {
					r.Lease = theLease
				}
			})
		}),
		broken("invalid token accepted", func(h *hooked) {
			h.claims(func(r *core.ClaimRequest) {
				if core.ValidateToken("Token", r.Token) != nil {
					r.Token = core.NewToken()
				}
			})
		}),
		broken("ClaimedAt missing", func(h *hooked) { h.seen(func(r *core.Record) { r.ClaimedAt = time.Time{} }) }),
		spoilt("due jobs at their old place", func(m *modelStore) core.Store { return &oldPlace{m} }),
		spoilt("due jobs by insertion", func(m *modelStore) core.Store { return &dueByInsertion{m} }),
	}
}

// oldPlace gives a delayed job the place of its insertion.
type oldPlace struct{ *modelStore }

func (o *oldPlace) Claim(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
	o.lock()
	for _, j := range o.jobs {
		if j.State == core.StateWaiting && j.RunAt.After(j.EnqueuedAt) && j.Fence == 0 {
			j.place = -1_000_000 + j.serial
		}
	}
	o.mu.Unlock()
	return o.modelStore.Claim(ctx, r)
}

// dueByInsertion lets due jobs join in the order of their insertion, not of their time.
type dueByInsertion struct{ *modelStore }

func (d *dueByInsertion) Claim(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
	d.mu.Lock()
	now := core.Micros(d.clock.Now())
	for _, j := range d.jobs {
		if j.State == core.StateDelayed && !j.RunAt.After(now) {
			d.wait(j)
		}
	}
	d.mu.Unlock()
	return d.modelStore.Claim(ctx, r)
}
