package core_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// Hooks measure: what the store did, and how long everything took. They are called one after another, on a goroutine of
// their own.
func ExampleHooks() {
	outcomes := make(map[string]int) // of this Hooks value alone, so it needs no lock
	store := memstore.New(memstore.Options{})
	worker, _ := core.NewWorker(store, core.WorkerOptions{Concurrency: 4, Hooks: []core.Hooks{{
		Finish: func(_ context.Context, f core.Finished) {
			outcomes[f.Run.Name+" "+string(f.Outcome)+" "+string(f.State)]++
		},
	}}})
	fragile := core.NewTask[int]("fragile", core.JobOptions[int]{MaxAttempts: 2})
	fragile.Handle(worker, func(_ context.Context, n int) error {
		if n == 0 {
			return core.RetryAfter(0, errors.New("zero"))
		}
		return nil
	})
	_, _ = fragile.EnqueueMany(context.Background(), store, []int{0, 1, 2})
	drained(worker)
	fmt.Println(outcomes)
	// Output:
	// map[fragile complete completed:2 fragile fail failed:1 fragile retry waiting:1]
}

// tenants is middleware for producers: a store that adds to whatever is enqueued. Unwrap leaves the capabilities of the
// store below within the reach of As.
type tenants struct{ core.Store }

func (s tenants) Unwrap() core.Store { return s.Store }

func (s tenants) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	tenant, ok := ctx.Value(tenantKey{}).(string)
	if !ok {
		return s.Store.Enqueue(ctx, reqs)
	}
	reqs = slices.Clone(reqs) // the caller's stay as they are
	for i := range reqs {
		m := map[string]string{"tenant": tenant}
		maps.Copy(m, reqs[i].Metadata)
		reqs[i].Metadata = m
	}
	return s.Store.Enqueue(ctx, reqs)
}

type tenantKey struct{}

// Middleware wraps runs; enqueues are wrapped with the store. Here what a request's context says travels to the handler.
func ExampleStore() {
	var store core.Store = tenants{memstore.New(memstore.Options{})}
	worker, _ := core.NewWorker(store, core.WorkerOptions{Middleware: []core.Middleware{
		func(next core.HandlerFunc) core.HandlerFunc {
			return func(ctx context.Context, run core.Run, payload []byte) ([]byte, error) {
				return next(context.WithValue(ctx, tenantKey{}, run.Metadata["tenant"]), run, payload)
			}
		},
	}})
	greet := core.NewTask[string]("greet")
	greet.Handle(worker, func(ctx context.Context, who string) error {
		fmt.Println("hello", who, "of", ctx.Value(tenantKey{}))
		return nil
	})
	request := context.WithValue(context.Background(), tenantKey{}, "acme")
	_, _ = greet.Enqueue(request, store, "Ada")
	drained(worker)
	_, inspects := core.As[core.Inspector](store)
	fmt.Println("still an Inspector:", inspects)
	// Output:
	// hello Ada of acme
	// still an Inspector: true
}

// Gauges are what to put on a dashboard: how many wait in each queue, and for how long.
func ExampleGauger() {
	store := memstore.New(memstore.Options{})
	task := core.NewTask[int]("task")
	_, _ = task.EnqueueMany(context.Background(), store, []int{1, 2})
	_, _ = task.Enqueue(context.Background(), store, 3, core.Delay(time.Hour))
	gauger, _ := core.As[core.Gauger](store)
	gauges, _ := gauger.Gauges(context.Background())
	for _, g := range gauges {
		fmt.Println(g.Queue, g.Waiting, g.Delayed, g.Active, g.OldestWaiting < time.Minute)
	}
	// Output: default 2 1 0 true
}

// A record that was looked up is read with the types of its job.
func ExampleJob_Payload() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	worker, _ := core.NewWorker(store, core.WorkerOptions{})
	double := core.NewJob[int, int]("double", core.JobOptions[int]{Key: func(n int) string { return fmt.Sprint(n) }})
	double.Handle(worker, func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	_, _ = double.Enqueue(ctx, store, 21)
	drained(worker)
	rec, _ := store.Get(ctx, double.IDOf(21))
	payload, _ := double.Payload(rec)
	result, _ := double.Result(rec)
	fmt.Println(rec.ID, payload, result)
	// Output: double:21 21 42
}
