package conformance

import (
	"context"
	"errors"
	"maps"

	"github.com/stintmq/stint/core"
)

func inspectMutants() []mutant {
	lists := func(h *hooked, answer func(core.Query, func(core.Query) (core.Page, error)) (core.Page, error)) {
		list := h.list
		h.list = func(ctx context.Context, q core.Query) (core.Page, error) {
			return answer(q, func(q core.Query) (core.Page, error) { return list(ctx, q) })
		}
	}
	return []mutant{
		broken("cursor repeats a job", func(h *hooked) {
			lists(h, func(q core.Query, list func(core.Query) (core.Page, error)) (core.Page, error) {
				p, err := list(q)
				if err == nil && p.Cursor != "" && len(p.Jobs) > 1 {
					q.Limit = len(p.Jobs) - 1
					short, _ := list(q)
					p.Cursor = short.Cursor
				}
				return p, err
			})
		}),
		broken("cursor on the last page", func(h *hooked) {
			lists(h, func(q core.Query, list func(core.Query) (core.Page, error)) (core.Page, error) {
				p, err := list(q)
				if err == nil && len(p.Jobs) == q.PageSize() && p.Cursor == "" {
					q.Limit--
					if short, err := list(q); err == nil {
						p.Cursor = short.Cursor
					}
				}
				return p, err
			})
		}),
		broken("bad cursor ignored", func(h *hooked) {
			lists(h, func(q core.Query, list func(core.Query) (core.Page, error)) (core.Page, error) {
				p, err := list(q)
				if _, bad := errors.AsType[*core.InvalidError](err); bad && q.Cursor != "" {
					q.Cursor = ""
					return list(q)
				}
				return p, err
			})
		}),
		broken("empty states mean all", func(h *hooked) {
			lists(h, func(q core.Query, list func(core.Query) (core.Page, error)) (core.Page, error) {
				if len(q.States) == 0 {
					q.States = nil
				}
				return list(q)
			})
		}),
		broken("only the last state counts", func(h *hooked) {
			lists(h, func(q core.Query, list func(core.Query) (core.Page, error)) (core.Page, error) {
				if len(q.States) > 1 {
					q.States = q.States[len(q.States)-1:]
				}
				return list(q)
			})
		}),
		broken("metadata filter takes any key", func(h *hooked) {
			lists(h, func(q core.Query, list func(core.Query) (core.Page, error)) (core.Page, error) {
				if len(q.Metadata) > 1 {
					q.Metadata = nil
				}
				return list(q)
			})
		}),
		broken("always newest first", func(h *hooked) {
			lists(h, func(q core.Query, list func(core.Query) (core.Page, error)) (core.Page, error) {
				q.Ascending = false
				return list(q)
			})
		}),
		broken("order ignored", func(h *hooked) {
			lists(h, func(q core.Query, list func(core.Query) (core.Page, error)) (core.Page, error) {
				if q.Validate() == nil {
					q.OrderBy = core.OrderEnqueued
				}
				return list(q)
			})
		}),
		broken("listed without payload", func(h *hooked) {
			lists(h, func(q core.Query, list func(core.Query) (core.Page, error)) (core.Page, error) {
				p, err := list(q)
				for i := range p.Jobs {
					p.Jobs[i].Payload = nil
				}
				return p, err
			})
		}),
		broken("counts omit states", func(h *hooked) {
			counts := h.counts
			h.counts = func(ctx context.Context, queue string) (map[core.State]int64, error) {
				m, err := counts(ctx, queue)
				maps.DeleteFunc(m, func(_ core.State, n int64) bool { return n == 0 })
				return m, err
			}
		}),
		broken("counts of all queues", func(h *hooked) {
			counts := h.counts
			h.counts = func(ctx context.Context, _ string) (map[core.State]int64, error) { return counts(ctx, "") }
		}),
		broken("due jobs read as delayed", func(h *hooked) {
			get := h.get
			h.get = func(ctx context.Context, id string) (core.Record, error) {
				r, err := get(ctx, id)
				if r.State == core.StateWaiting && r.Fence == 0 && r.RunAt.After(r.EnqueuedAt) {
					r.State = core.StateDelayed
				}
				return r, err
			}
		}),
		broken("Get of an unknown id is empty", func(h *hooked) {
			get := h.get
			h.get = func(ctx context.Context, id string) (core.Record, error) {
				r, err := get(ctx, id)
				if errors.Is(err, core.ErrNotFound) {
					return core.Record{}, nil
				}
				return r, err
			}
		}),
		broken("stranded without the active", func(h *hooked) {
			stranded := h.stranded
			h.stranded = func(ctx context.Context, known []string) ([]core.Stranded, error) {
				ss, err := stranded(ctx, known)
				for i := range ss {
					p, _ := h.Store.List(ctx, core.Query{Queue: ss[i].Queue, Name: ss[i].Name, States: []core.State{core.StateActive}})
					ss[i].Count -= int64(len(p.Jobs))
				}
				return ss, err
			}
		}),
		broken("explain knows no pause", func(h *hooked) {
			explain := h.explain
			h.explain = func(ctx context.Context, id string) (core.Explanation, error) {
				e, err := explain(ctx, id)
				if e.Reason == core.ReasonPaused {
					e.Reason = core.ReasonQueued
				}
				return e, err
			}
		}),
		broken("explain counts the job itself", func(h *hooked) {
			explain := h.explain
			h.explain = func(ctx context.Context, id string) (core.Explanation, error) {
				e, err := explain(ctx, id)
				if e.Reason == core.ReasonQueued {
					e.Ahead++
				}
				return e, err
			}
		}),
	}
}
