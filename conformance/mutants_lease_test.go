package conformance

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
)

func leaseMutants() []mutant {
	sweeps := func(h *hooked, change func(*core.RecoverRequest)) {
		sweep := h.sweep
		h.sweep = func(ctx context.Context, r core.RecoverRequest) ([]core.Recovered, error) {
			if r.Validate() == nil {
				change(&r)
			}
			return sweep(ctx, r)
		}
	}
	return []mutant{
		broken("no fencing on extend", func(h *hooked) {
			token := h.tokens()
			extend := h.extend
			h.extend = func(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
				mine := append([]core.Lease(nil), leases...)
				for i := range mine {
					if t := token(mine[i].ID); t != "" {
						mine[i].Token = t
					}
				}
				return extend(ctx, mine, d)
			}
		}),
		broken("extend goes by Ref", func(h *hooked) {
			of := h.refs()
			extend := h.extend
			h.extend = func(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
				mine := append([]core.Lease(nil), leases...)
				for i := range mine {
					mine[i] = of(mine[i])
				}
				return extend(ctx, mine, d)
			}
		}),
		broken("extend tells of no loss", func(h *hooked) {
			extend := h.extend
			h.extend = func(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
				x, err := extend(ctx, leases, d)
				x.Lost = nil
				return x, err
			}
		}),
		broken("extend tells of a cancel once", func(h *hooked) {
			told := map[string]bool{}
			extend := h.extend
			h.extend = func(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
				x, err := extend(ctx, leases, d)
				var fresh []core.Lease
				for _, l := range x.CancelRequested {
					if !told[l.ID] {
						fresh = append(fresh, l)
					}
					told[l.ID] = true
				}
				x.CancelRequested = fresh
				return x, err
			}
		}),
		broken("extend does nothing", func(h *hooked) {
			extend := h.extend
			h.extend = func(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
				return extend(ctx, leases, min(d, 0))
			}
		}),
		broken("sweep ignores Confirm", func(h *hooked) { sweeps(h, func(r *core.RecoverRequest) { r.Confirm = 0 }) }),
		broken("sweep ignores MaxStalls", func(h *hooked) { sweeps(h, func(r *core.RecoverRequest) { r.MaxStalls = 1 << 20 }) }),
		broken("sweep tolerates one stall too many", func(h *hooked) { sweeps(h, func(r *core.RecoverRequest) { r.MaxStalls++ }) }),
		broken("sweep ignores Limit", func(h *hooked) { sweeps(h, func(r *core.RecoverRequest) { r.Limit *= 1000 }) }),
		broken("sweep without a default limit", func(h *hooked) {
			sweeps(h, func(r *core.RecoverRequest) {
				if r.Limit == 0 {
					r.Limit = 1 << 20
				}
			})
		}),
		broken("own stall limit ignored", func(h *hooked) {
			own := map[string]int{}
			h.stored(func(r *core.EnqueueRequest) {
				if r.Validate(core.Limits{}) == nil {
					own[r.ID], r.MaxStalls = r.MaxStalls, 0
				}
			})
			h.seen(func(r *core.Record) { r.MaxStalls = own[r.ID] })
		}),
		broken("sweep takes leases late", func(h *hooked) {
			h.claims(func(r *core.ClaimRequest) {
				if r.Validate() == nil {
					r.Lease += time.Microsecond
				}
			})
		}),
		broken("sweep takes leases early", func(h *hooked) {
			h.claims(func(r *core.ClaimRequest) {
				if r.Validate() == nil {
					r.Lease = max(0, r.Lease-time.Microsecond)
				}
			})
		}),
		broken("stalls cost attempts", func(h *hooked) { h.seen(func(r *core.Record) { r.Attempts += r.Stalls }) }),
		broken("sweep tells only of what it put back", func(h *hooked) {
			sweep := h.sweep
			h.sweep = func(ctx context.Context, r core.RecoverRequest) ([]core.Recovered, error) {
				var back []core.Recovered
				got, err := sweep(ctx, r)
				for _, g := range got {
					if g.State == core.StateDelayed {
						back = append(back, g)
					}
				}
				return back, err
			}
		}),
		broken("stalled jobs at once", func(h *hooked) {
			sweep := h.sweep
			h.sweep = func(ctx context.Context, r core.RecoverRequest) ([]core.Recovered, error) {
				got, err := sweep(ctx, r)
				for i := range got {
					if h.Store.Promote(ctx, got[i].ID) == nil {
						got[i].State = core.StateWaiting
					}
				}
				return got, err
			}
		}),
		spoilt("extend shortens", func(m *modelStore) core.Store { return &shortener{m} }),
		spoilt("extend keeps the suspicion", func(m *modelStore) core.Store { return &grudge{m} }),
		spoilt("expired lease not extended", func(m *modelStore) core.Store { return &strictExtend{m} }),
		spoilt("no growing backoff after stalls", func(m *modelStore) core.Store { return &flatStall{m} }),
	}
}

// shortener moves the end of a lease wherever it is told to.
type shortener struct{ *modelStore }

func (s *shortener) Extend(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
	now := s.lock()
	for _, l := range leases {
		if j := s.find(l.ID); j != nil && j.token == l.Token && d > 0 {
			j.until = now
		}
	}
	s.mu.Unlock()
	return s.modelStore.Extend(ctx, leases, d)
}

// grudge remembers a suspicion beyond an extension.
type grudge struct{ *modelStore }

func (g *grudge) Extend(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
	before := map[string]time.Time{}
	g.lock()
	for _, j := range g.jobs {
		before[j.ID] = j.suspect
	}
	g.mu.Unlock()
	x, err := g.modelStore.Extend(ctx, leases, d)
	g.lock()
	defer g.mu.Unlock()
	for _, j := range g.jobs {
		j.suspect = before[j.ID]
	}
	return x, err
}

// strictExtend takes an ended lease for a lost one.
type strictExtend struct{ *modelStore }

func (s *strictExtend) Extend(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
	now := s.lock()
	for _, l := range leases {
		if j := s.find(l.ID); j != nil && !j.until.After(now) {
			j.token = ""
		}
	}
	s.mu.Unlock()
	return s.modelStore.Extend(ctx, leases, d)
}

// flatStall waits six minutes after every stall.
type flatStall struct{ *modelStore }

func (f *flatStall) RecoverStalled(ctx context.Context, r core.RecoverRequest) ([]core.Recovered, error) {
	got, err := f.modelStore.RecoverStalled(ctx, r)
	now := f.lock()
	defer f.mu.Unlock()
	for _, g := range got {
		if j := f.find(g.ID); j.State == core.StateDelayed {
			j.RunAt = now.Add(6 * time.Minute)
		}
	}
	return got, err
}
