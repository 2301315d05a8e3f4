package conformance

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
)

func enqueueMutants() []mutant {
	return []mutant{
		broken("payload cut at NUL", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) { r.Payload, _, _ = bytes.Cut(r.Payload, []byte{0}) })
		}),
		broken("payload made valid UTF-8", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) { r.Payload = bytes.ToValidUTF8(r.Payload, []byte("?")) })
		}),
		broken("JSON spaces trimmed", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) { r.Payload = bytes.TrimSpace(r.Payload) })
		}),
		broken("payload of the limit refused", func(h *hooked) {
			enqueue := h.enqueue
			h.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				res, err := enqueue(ctx, reqs)
				for i, r := range reqs {
					if len(r.Payload) == core.DefaultPayload {
						res[i].Err = &core.InvalidError{Field: "Payload"}
					}
				}
				return res, err
			}
		}),
		broken("shared payloads", func(h *hooked) {
			var mu sync.Mutex
			shared := map[string][]byte{}
			h.seen(func(r *core.Record) {
				mu.Lock()
				defer mu.Unlock()
				if p, ok := shared[r.ID]; ok && len(p) == len(r.Payload) {
					r.Payload = p
				}
				shared[r.ID] = r.Payload
			})
		}),
		broken("shared metadata", func(h *hooked) {
			var mu sync.Mutex
			shared := map[string]map[string]string{}
			h.seen(func(r *core.Record) {
				mu.Lock()
				defer mu.Unlock()
				if shared[r.ID] == nil {
					shared[r.ID] = maps.Clone(r.Metadata)
				}
				r.Metadata = shared[r.ID]
			})
		}),
		bare("metadata of the caller kept", func(m *modelStore) core.Store { return &keptMetadata{m} }),
		bare("own metadata handed out", func(m *modelStore) core.Store { return &lentMetadata{m} }),
		bare("own trace handed out", func(m *modelStore) core.Store { return &lentTrace{m} }),
		broken("empty metadata values dropped", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) {
				r.Metadata = maps.Clone(r.Metadata)
				maps.DeleteFunc(r.Metadata, func(_, v string) bool { return v == "" })
			})
		}),
		broken("times not cut", func(h *hooked) {
			h.seen(func(r *core.Record) { r.EnqueuedAt = r.EnqueuedAt.Add(789) })
		}),
		broken("times not in UTC", func(h *hooked) {
			h.seen(func(r *core.Record) { r.RunAt = r.RunAt.In(time.FixedZone("", 3600)) })
		}),
		broken("RunAt in the past kept", func(h *hooked) {
			past := map[string]time.Time{}
			h.stored(func(r *core.EnqueueRequest) {
				if !r.RunAt.IsZero() && r.RunAt.Year() < 2026 {
					past[r.ID] = r.RunAt
				}
			})
			h.seen(func(r *core.Record) {
				if at, ok := past[r.ID]; ok {
					r.RunAt = core.Micros(at)
				}
			})
		}),
		broken("priority clamped", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) { r.Priority = max(core.MinPriority, min(core.MaxPriority, r.Priority)) })
		}),
		broken("negative delay taken as none", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) { r.Delay = max(0, r.Delay) })
		}),
		broken("ids lower-cased", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) { r.ID = strings.ToLower(r.ID) })
		}),
		broken("queues trimmed", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) { r.Queue = strings.TrimRight(r.Queue, " ") })
		}),
		broken("duplicate overwrites", func(h *hooked) {
			enqueue := h.enqueue
			h.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				res, err := enqueue(ctx, reqs)
				for i := range res {
					if res[i].Duplicate {
						_, _ = h.Store.Remove(ctx, res[i].ID)
						_, _ = enqueue(ctx, reqs[i:i+1])
					}
				}
				return res, err
			}
		}),
		broken("finished ids free", func(h *hooked) {
			enqueue := h.enqueue
			h.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				for _, r := range reqs {
					if j, err := h.Store.Get(ctx, r.ResolvedID()); err == nil && j.State.Terminal() {
						_, _ = h.Store.Remove(ctx, j.ID)
					}
				}
				return enqueue(ctx, reqs)
			}
		}),
		broken("no ConflictError", func(h *hooked) {
			enqueue := h.enqueue
			h.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				res, err := enqueue(ctx, reqs)
				for i := range res {
					if e, ok := errors.AsType[*core.ConflictError](res[i].Err); ok {
						res[i] = core.EnqueueResult{ID: e.ID, Duplicate: true}
					}
				}
				return res, err
			}
		}),
		broken("key ignored when there is an id like it", func(h *hooked) {
			h.stored(func(r *core.EnqueueRequest) {
				if r.ID == "" && r.Key != "" {
					r.ID, r.Key = r.Name+"/"+r.Key, ""
				}
			})
		}),
		broken("one bad item fails its batch", func(h *hooked) {
			enqueue := h.enqueue
			h.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				for _, r := range reqs {
					if err := r.Validate(core.Limits{}); err != nil && len(reqs) > 1 {
						return nil, err
					}
				}
				return enqueue(ctx, reqs)
			}
		}),
		broken("batch results out of order", func(h *hooked) {
			enqueue := h.enqueue
			h.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				res, err := enqueue(ctx, reqs)
				slices.Reverse(res)
				return res, err
			}
		}),
		broken("batch inserted backwards", func(h *hooked) {
			enqueue := h.enqueue
			h.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				mine := slices.Clone(reqs)
				slices.Reverse(mine)
				res, err := enqueue(ctx, mine)
				slices.Reverse(res)
				return res, err
			}
		}),
	}
}

// keptMetadata keeps the map that the caller goes on using.
type keptMetadata struct{ *modelStore }

func (s *keptMetadata) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	res, err := s.modelStore.Enqueue(ctx, reqs)
	s.lock()
	defer s.mu.Unlock()
	for i, r := range res {
		if j := s.find(r.ID); j != nil && !r.Duplicate {
			j.Metadata = reqs[i].Metadata
		}
	}
	return res, err
}

// lentMetadata hands out the map that it keeps.
type lentMetadata struct{ *modelStore }

func (s *lentMetadata) Claim(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
	c, err := s.modelStore.Claim(ctx, r)
	s.lock()
	defer s.mu.Unlock()
	for i := range c.Jobs {
		c.Jobs[i].Metadata = s.find(c.Jobs[i].ID).Metadata
	}
	return c, err
}

// lentTrace hands out the trace that it keeps.
type lentTrace struct{ *modelStore }

func (s *lentTrace) Claim(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
	c, err := s.modelStore.Claim(ctx, r)
	s.lock()
	defer s.mu.Unlock()
	for i := range c.Jobs {
		c.Jobs[i].Trace = s.find(c.Jobs[i].ID).Trace
	}
	return c, err
}
