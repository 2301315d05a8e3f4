package conformance

import (
	"context"
	"runtime"
	"time"

	"github.com/stintmq/stint/core"
)

// meeting is an enqueue of the model that finds its key taken.
type meeting struct {
	*modelEntry
	m   *modelStore
	r   *core.EnqueueRequest
	now time.Time
}

func (x meeting) open() bool { return x.now.Before(x.end) }

// What a mutant says about a key instead of the model: nothing, that it is taken, or that it is free.
type verdict int

const (
	asRuled verdict = iota
	taken
	free
)

// keyedMutant makes a mutant of how the model decides about a key that is taken.
func keyedMutant(fault string, decide func(meeting) verdict) mutant {
	return spoilt(fault, func(m *modelStore) core.Store {
		m.meets = func(r core.EnqueueRequest, now time.Time) (string, bool) {
			if r.Dedupe == nil {
				return "", false
			}
			d := *r.Dedupe
			r.Dedupe = &d
			if e := m.keys[modelKey{r.Name, d.Key}]; e != nil {
				switch decide(meeting{e, m, &r, now}) {
				case taken:
					return e.job.ID, true
				case free:
					return "", false
				case asRuled:
				}
			}
			return m.meet(r, now)
		}
		return m
	})
}

// when says something of the meetings for which it holds.
func when(holds func(meeting) bool, v verdict) func(meeting) verdict {
	return func(x meeting) verdict {
		if holds(x) {
			return v
		}
		return asRuled
	}
}

func inState(st core.State) func(meeting) bool {
	return func(x meeting) bool { return x.job.State == st }
}

func dedupeMutants() []mutant {
	var list []mutant
	for _, st := range []core.State{core.StateWaiting, core.StateDelayed, core.StateActive} {
		list = append(list, keyedMutant("keys are free while their job is "+string(st), when(inState(st), free)))
	}
	for _, st := range []core.State{core.StateCompleted, core.StateFailed, core.StateCancelled} {
		list = append(list,
			keyedMutant("keys of "+string(st)+" jobs stay taken", when(func(x meeting) bool { return x.end.IsZero() && x.job.State == st }, taken)))
	}
	for _, st := range []core.State{core.StateCompleted, core.StateFailed} {
		list = append(list, keyedMutant(string(st)+" jobs free their window", when(inState(st), free)))
	}
	return append(list,
		broken("dedupe taken and ignored", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) {
				if r.Validate(core.Limits{}) == nil {
					r.Dedupe = nil
				}
			})
		}),
		broken("all names share their keys", func(h *hooked) {
			names := map[string]string{}
			h.stored(func(r *core.EnqueueRequest) {
				if r.Dedupe == nil {
					return
				}
				if names[r.Dedupe.Key] == "" {
					names[r.Dedupe.Key] = r.Name
				}
				r.Name = names[r.Dedupe.Key]
			})
		}),
		broken("keys are of a queue", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) {
				if r.Dedupe != nil && r.Dedupe.Key != "" && r.Queue != theQueue {
					d := *r.Dedupe
					d.Key += r.Queue
					r.Dedupe = &d
				}
			})
		}),
		keyedMutant("the last moment of a window is the first after it", when(func(x meeting) bool { return x.end.Equal(x.now) }, taken)),
		keyedMutant("windows last as long as their job is pending", when(func(x meeting) bool { return x.job.State.Pending() && !x.r.Dedupe.Replace }, taken)),
		keyedMutant("windows keep a cancelled job's key", when(func(x meeting) bool { return x.open() && x.job.State == core.StateCancelled }, taken)),
		keyedMutant("a job that was asked to end frees its key", when(func(x meeting) bool { return x.job.CancelRequested }, free)),
		keyedMutant("drops move the window", func(x meeting) verdict {
			x.r.Dedupe.Extend = x.r.Dedupe.TTL > 0
			return asRuled
		}),
		keyedMutant("drops do not extend", func(x meeting) verdict { x.r.Dedupe.Extend = false; return asRuled }),
		keyedMutant("drops never shorten the window", func(x meeting) verdict {
			x.r.Dedupe.Extend = x.r.Dedupe.Extend && x.end.Before(window(*x.r, x.now))
			return asRuled
		}),
		keyedMutant("a TTL opens a window for a pending job", func(x meeting) verdict {
			if x.end.IsZero() && x.r.Dedupe.TTL > 0 {
				x.end = window(*x.r, x.now)
			}
			return asRuled
		}),
		keyedMutant("Extend opens a window for a pending job", func(x meeting) verdict {
			if x.end.IsZero() && x.r.Dedupe.Extend {
				x.end = window(*x.r, x.now)
			}
			return asRuled
		}),
		keyedMutant("who asks without a TTL sees no window", when(func(x meeting) bool { return x.r.Dedupe.TTL == 0 && !x.job.State.Pending() }, free)),
		spoilt("keys come before ids", func(m *modelStore) core.Store { return &keysFirst{m} }),
		spoilt("an id that exists takes the key", func(m *modelStore) core.Store { return &takesAnyway{m} }),
		spoilt("acks free the key of whoever has it", func(m *modelStore) core.Store { return &freeingAcks{m, true} }),
		spoilt("retries free the key", func(m *modelStore) core.Store { return &freeingAcks{m, false} }),
		broken("repeats of a batch are not seen", func(h *hooked) {
			enqueue := h.enqueue
			h.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				mine, seen := append([]core.EnqueueRequest(nil), reqs...), map[string]bool{}
				for i, r := range mine {
					if r.Dedupe != nil && seen[r.Name+":"+r.Dedupe.Key] {
						mine[i].Dedupe = nil
					} else if r.Dedupe != nil {
						seen[r.Name+":"+r.Dedupe.Key] = true
					}
				}
				return enqueue(ctx, mine)
			}
		}),
		broken("records from Claim have no key", func(h *hooked) {
			h.claimed(func(_ core.ClaimRequest, c *core.Claimed) {
				for i := range c.Jobs {
					c.Jobs[i].DedupeKey = ""
				}
			})
		}),
		broken("records from Get have no key", func(h *hooked) {
			get := h.get
			h.get = func(ctx context.Context, id string) (core.Record, error) {
				r, err := get(ctx, id)
				r.DedupeKey = ""
				return r, err
			}
		}),
		broken("records from List have no key", func(h *hooked) {
			list := h.list
			h.list = func(ctx context.Context, q core.Query) (core.Page, error) {
				p, err := list(ctx, q)
				for i := range p.Jobs {
					p.Jobs[i].DedupeKey = ""
				}
				return p, err
			}
		}),
	)
}

// keysFirst looks at the key before it looks at the id.
type keysFirst struct{ *modelStore }

func (s *keysFirst) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	res := make([]core.EnqueueResult, len(reqs))
	for i := range reqs {
		now := s.lock()
		id, taken := "", false
		if reqs[i].Validate(core.Limits{}) == nil {
			id, taken = s.meet(reqs[i], now)
		}
		s.mu.Unlock()
		if taken {
			res[i] = core.EnqueueResult{ID: id, Duplicate: true}
			continue
		}
		one, err := s.modelStore.Enqueue(ctx, reqs[i:i+1])
		if err != nil {
			return nil, err
		}
		res[i] = one[0]
	}
	return res, nil
}

// takesAnyway gives a key to the job whose id is a duplicate.
type takesAnyway struct{ *modelStore }

func (s *takesAnyway) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	res, err := s.modelStore.Enqueue(ctx, reqs)
	now := s.lock()
	defer s.mu.Unlock()
	for i, r := range res {
		if r.Duplicate && reqs[i].Dedupe != nil && reqs[i].ResolvedID() == r.ID {
			s.keys[modelKey{reqs[i].Name, reqs[i].Dedupe.Key}] = &modelEntry{s.find(r.ID), window(reqs[i], now.Add(time.Nanosecond))}
		}
	}
	return res, err
}

// freeingAcks frees keys as leases end: of those that end, or of those that go on.
type freeingAcks struct {
	*modelStore
	ends bool
}

func (s *freeingAcks) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	res, err := s.modelStore.Ack(ctx, acks)
	s.lock()
	defer s.mu.Unlock()
	for i, r := range res {
		if j := s.find(acks[i].Lease.ID); r.Err == nil && r.State.Terminal() == s.ends {
			delete(s.keys, modelKey{j.Name, j.DedupeKey})
		}
	}
	return res, err
}

func dedupeRacingMutants() []mutant {
	return []mutant{
		spoilt("keys are looked at, and taken later", func(m *modelStore) core.Store { return &lateKeys{m} }),
		broken("transactions take keys before the commit", func(h *hooked) {
			h.views(func(v *brokenView) {
				enqueue := v.enqueue
				v.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
					for _, r := range reqs {
						if r.Dedupe != nil {
							return h.Store.Enqueue(ctx, reqs)
						}
					}
					return enqueue(ctx, reqs)
				}
			})
		}),
		broken("transactions take no keys", func(h *hooked) {
			h.views(func(v *brokenView) {
				enqueue := v.enqueue
				v.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
					mine := append([]core.EnqueueRequest(nil), reqs...)
					for i := range mine {
						mine[i].Dedupe = nil
					}
					return enqueue(ctx, mine)
				}
			})
		}),
	}
}

// lateKeys decides about a key and takes it in two steps.
type lateKeys struct{ *modelStore }

func (s *lateKeys) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	if len(reqs) != 1 || reqs[0].Dedupe == nil {
		return s.modelStore.Enqueue(ctx, reqs)
	}
	now := s.lock()
	id, taken := s.meet(reqs[0], now)
	s.mu.Unlock()
	if taken {
		return []core.EnqueueResult{{ID: id, Duplicate: true}}, nil
	}
	runtime.Gosched()
	mine := append([]core.EnqueueRequest(nil), reqs...)
	mine[0].Dedupe = nil
	res, err := s.modelStore.Enqueue(ctx, mine)
	s.lock()
	defer s.mu.Unlock()
	if j := s.find(res[0].ID); j != nil {
		j.DedupeKey = reqs[0].Dedupe.Key
		s.keys[modelKey{j.Name, j.DedupeKey}] = &modelEntry{j, window(reqs[0], now)}
	}
	return res, err
}
