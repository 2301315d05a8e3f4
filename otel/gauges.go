package stintotel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/stintmq/stint/core"
)

const (
	gaugesTimeout = 10 * time.Second // of one collection
	gaugesQueues  = 1000             // that are remembered, to be reported as empty once they are
)

// Gauges measures the queues of a store, by one call of core.Gauger per collection, until the registration is ended. All
// processes would measure the same: one of them is enough. The store must be a core.Gauger, else an error wraps
// errors.ErrUnsupported.
//
// A queue that is empty is reported as such if it was not before, for the first 1,000 queues.
func (t *Telemetry) Gauges(s core.Store) (metric.Registration, error) {
	gauger, ok := core.As[core.Gauger](s)
	if !ok {
		return nil, fmt.Errorf("stintotel: %w", &core.UnsupportedError{Op: "Gauges", Reason: "the store is no Gauger"})
	}
	depth, err := t.meter.Int64ObservableGauge("stint.queue.depth", metric.WithUnit("{job}"),
		metric.WithDescription("Pending jobs."))
	if err != nil {
		return nil, err
	}
	age, err := t.meter.Float64ObservableGauge("stint.queue.waiting.age", metric.WithUnit("s"),
		metric.WithDescription("For how long the job that waits longest has been due."))
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex // collections may overlap where there are several readers
	known := make(map[string]struct{})
	return t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, gaugesTimeout)
		defer cancel()
		gauges, err := gauger.Gauges(ctx)
		if err != nil {
			return fmt.Errorf("stintotel: gauges: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		empty := make(map[string]struct{}, len(known))
		for queue := range known {
			empty[queue] = struct{}{}
		}
		for _, g := range gauges {
			delete(empty, g.Queue)
			if len(known) < gaugesQueues {
				known[g.Queue] = struct{}{}
			}
		}
		for queue := range empty {
			gauges = append(gauges, core.QueueGauge{Queue: queue})
		}
		for _, g := range gauges {
			queue := queueKey.String(g.Queue)
			o.ObserveInt64(depth, g.Waiting, metric.WithAttributes(queue, stateKey.String(string(core.StateWaiting))))
			o.ObserveInt64(depth, g.Delayed, metric.WithAttributes(queue, stateKey.String(string(core.StateDelayed))))
			o.ObserveInt64(depth, g.Active, metric.WithAttributes(queue, stateKey.String(string(core.StateActive))))
			o.ObserveFloat64(age, g.OldestWaiting.Seconds(), metric.WithAttributes(queue))
		}
		return nil
	}, depth, age)
}
