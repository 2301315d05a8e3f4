package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/stintmq/stint/core"
)

// metrics counts what hooks tell, and writes it in the text format that Prometheus and others scrape. Put write behind an
// HTTP handler, and that is all.
type metrics struct {
	mu     sync.Mutex // hooks come from one goroutine, scrapes from others
	counts map[string]float64
}

func newMetrics() *metrics { return &metrics{counts: make(map[string]float64)} }

func (m *metrics) add(n float64, name, labels string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[name+"{"+fmt.Sprintf(labels, args...)+"}"] += n
}

// hooks go by queue, name and outcome, never by id: each combination is a series for good.
func (m *metrics) hooks() core.Hooks {
	return core.Hooks{
		Finish: func(_ context.Context, f core.Finished) {
			// State is what the store says: a retry that was cancelled meanwhile counts as cancelled.
			m.add(1, "stint_runs_total", "queue=%q,job=%q,outcome=%q,state=%q", f.Run.Queue, f.Run.Name, f.Outcome, f.State)
			m.add(f.Ran.Seconds(), "stint_run_seconds_total", "queue=%q,job=%q", f.Run.Queue, f.Run.Name)
			m.add(f.Wait.Seconds(), "stint_wait_seconds_total", "queue=%q,job=%q", f.Run.Queue, f.Run.Name)
		},
		LeaseLost: func(_ context.Context, l core.LostLease) {
			m.add(1, "stint_lost_leases_total", "queue=%q,job=%q", l.Run.Queue, l.Run.Name)
		},
		Stall: func(_ context.Context, r core.Recovered) {
			m.add(1, "stint_stalls_total", "queue=%q,job=%q", r.Queue, r.Name)
		},
		Missed: func(_ context.Context, n int) { m.add(float64(n), "stint_missed_total", "") },
	}
}

// write adds how the queues stand now, if the store can say so.
func (m *metrics) write(ctx context.Context, w io.Writer, store core.Store) error {
	m.mu.Lock()
	page := maps.Clone(m.counts)
	m.mu.Unlock()
	if gauger, ok := core.As[core.Gauger](store); ok {
		gauges, err := gauger.Gauges(ctx)
		if err != nil {
			return err
		}
		for _, g := range gauges {
			page[fmt.Sprintf("stint_jobs{queue=%q,state=%q}", g.Queue, core.StateWaiting)] = float64(g.Waiting)
			page[fmt.Sprintf("stint_jobs{queue=%q,state=%q}", g.Queue, core.StateDelayed)] = float64(g.Delayed)
			page[fmt.Sprintf("stint_jobs{queue=%q,state=%q}", g.Queue, core.StateActive)] = float64(g.Active)
			page[fmt.Sprintf("stint_oldest_waiting_seconds{queue=%q}", g.Queue)] = g.OldestWaiting.Seconds()
		}
	}
	for _, series := range slices.Sorted(maps.Keys(page)) {
		if _, err := fmt.Fprintf(w, "%s %.6g\n", series, page[series]); err != nil {
			return err
		}
	}
	return nil
}
