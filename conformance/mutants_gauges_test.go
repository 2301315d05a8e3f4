package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

func gaugeMutants() []mutant {
	// spoil lets a mutant change what is measured.
	spoil := func(fault string, change func(h *hooked, gs []core.QueueGauge) []core.QueueGauge) mutant {
		return broken(fault, func(h *hooked) {
			gauges := h.gauges
			h.gauges = func(ctx context.Context) ([]core.QueueGauge, error) {
				gs, err := gauges(ctx)
				if err != nil {
					return gs, err
				}
				return change(h, gs), nil
			}
		})
	}
	return []mutant{
		spoil("gauges in no order", func(_ *hooked, gs []core.QueueGauge) []core.QueueGauge {
			slices.Reverse(gs)
			return gs
		}),
		spoil("gauges of one queue only", func(_ *hooked, gs []core.QueueGauge) []core.QueueGauge { return gs[:min(len(gs), 1)] }),
		spoil("gauges of empty queues", func(_ *hooked, gs []core.QueueGauge) []core.QueueGauge {
			return append(gs, core.QueueGauge{Queue: "nobody"})
		}),
		spoil("gauges leave out queues in which nothing waits", func(_ *hooked, gs []core.QueueGauge) []core.QueueGauge {
			return slices.DeleteFunc(gs, func(g core.QueueGauge) bool { return g.Waiting == 0 })
		}),
		spoil("gauges count the active as waiting", func(_ *hooked, gs []core.QueueGauge) []core.QueueGauge {
			for i := range gs {
				gs[i].Waiting += gs[i].Active
			}
			return gs
		}),
		spoil("an age where nothing waits", func(_ *hooked, gs []core.QueueGauge) []core.QueueGauge {
			for i := range gs {
				if gs[i].Waiting == 0 {
					gs[i].OldestWaiting = time.Second
				}
			}
			return gs
		}),
		spoil("ages since the enqueue", func(h *hooked, gs []core.QueueGauge) []core.QueueGauge {
			return aged(h, gs, func(r core.Record) time.Time { return r.EnqueuedAt })
		}),
		spoil("ages of the newest", func(h *hooked, gs []core.QueueGauge) []core.QueueGauge {
			for i := range gs {
				gs[i].OldestWaiting = 0
			}
			return gs
		}),
		spoil("ages of the next in line", func(h *hooked, gs []core.QueueGauge) []core.QueueGauge {
			first := map[string]core.Record{}
			page, err := h.Store.List(context.Background(), core.Query{States: []core.State{core.StateWaiting}, Ascending: true})
			if err != nil {
				return gs
			}
			for _, r := range page.Jobs {
				if old, ok := first[r.Queue]; !ok || r.Priority > old.Priority {
					first[r.Queue] = r
				}
			}
			for i := range gs {
				if r, ok := first[gs[i].Queue]; ok {
					gs[i].OldestWaiting = max(gs[i].OldestWaiting-r.RunAt.Sub(oldest(page.Jobs, gs[i].Queue)), 0)
				}
			}
			return gs
		}),
		broken("gauges deaf to their context", func(h *hooked) {
			real := h.gauges
			h.gauges = func(ctx context.Context) ([]core.QueueGauge, error) { return real(deaf(ctx)) }
		}),
	}
}

// oldest is when the job of a queue that waits longest was due.
func oldest(jobs []core.Record, queue string) (at time.Time) {
	for _, r := range jobs {
		if r.Queue == queue && (at.IsZero() || r.RunAt.Before(at)) {
			at = r.RunAt
		}
	}
	return at
}

// aged adds to each age what lies between the time that since says and when the job was due.
func aged(h *hooked, gs []core.QueueGauge, since func(core.Record) time.Time) []core.QueueGauge {
	page, err := h.Store.List(context.Background(), core.Query{States: []core.State{core.StateWaiting}})
	if err != nil {
		return gs
	}
	for i := range gs {
		var more time.Duration
		for _, r := range page.Jobs {
			if r.Queue == gs[i].Queue {
				more = max(more, r.RunAt.Sub(since(r)))
			}
		}
		gs[i].OldestWaiting += more
	}
	return gs
}
