// Package stinttest tests programs that enqueue and handle jobs: on the memory store, with a clock that the test moves,
// and without waiting.
//
//	k := stinttest.New(t)
//	shop := NewShop(k.Store)           // enqueues
//	shop.Handle(k.Worker)              // registers its handlers
//
//	shop.SignUp(ctx, "ada@example.com")
//	mail := stinttest.Only(k, Welcome) // exactly one was enqueued: mail.Payload is typed
//	k.Work()                           // runs what is due; a handler that fails fails the test
//	k.Advance(24 * time.Hour)          // runs what comes due meanwhile, each at its time
//	stinttest.None(k, Reminder)
//
// Handlers run as they do in production: encoded, in a worker, with attempts and backoff. What enqueues inside a
// transaction of another database takes memstore.Tx[pgx.Tx](k.Store), or k.Store.WithTx(k.Store.Begin()).
//
// Due jobs that no handler is registered for stay where they are: stinttest.Pending tells. Finished jobs are never pruned.
// Several takers (Options.Worker.Concurrency) run jobs in no order. A journal is on k.Store.Journal(): give its effects to
// k.Worker by Journal.Handle, and let its projections follow by Journal.CatchUp. Projections that write SQL want a database:
// docs/journal.md, Testing.
package stinttest

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// Options of New. The zero value is good for most tests.
type Options struct {
	// Start is the time that the clock begins with; zero: now. It stands still until the test moves it.
	Start time.Time
	// Bubble is for tests inside testing/synctest: the clock is the bubble's, and Advance sleeps.
	Bubble bool
	// Worker are the worker's options: middleware, hooks, and so on. Retries wait without jitter, whatever it says.
	Worker core.WorkerOptions
	// MaxRuns is how many runs one Drain, Work or Advance may come to before it fails the test, as a job that enqueues
	// itself would go on for ever; 0: 100,000.
	MaxRuns int
}

// Kit is a store, a worker on it, and a clock. Its methods, and the functions that take it, belong to the test's own
// goroutine, and end the test when something is wrong.
type Kit struct {
	Store  *memstore.Store
	Worker *core.Worker

	tb    testing.TB
	clock clock
	most  int   // runs of one call
	ran   []Ran // by the drain that is under way
}

// clock is what the store reads.
type clock interface {
	core.Clock
	advance(d time.Duration)
}

// New returns a kit with an empty store.
func New(tb testing.TB, opts ...Options) *Kit {
	tb.Helper()
	var o Options
	switch len(opts) {
	case 0:
	case 1:
		o = opts[0]
	default:
		tb.Fatal("stinttest: New takes one Options at most")
	}
	k := &Kit{tb: tb, clock: newStill(o.Start), most: cmp.Or(o.MaxRuns, 100_000)}
	if k.most < 0 {
		tb.Fatal("stinttest: MaxRuns must not be negative")
	}
	if o.Bubble {
		k.clock = bubble{}
	}
	k.Store = memstore.New(memstore.Options{Clock: k.clock})
	tb.Cleanup(func() { _ = k.Store.Close() })
	o.Worker.Hooks = append([]core.Hooks{{
		Finish:    func(_ context.Context, f core.Finished) { k.ran = append(k.ran, Ran{f, k.Now()}) },
		LeaseLost: func(_ context.Context, l core.LostLease) { k.ran = append(k.ran, lost(l, k.Now())) },
		Missed:    func(_ context.Context, n int) { tb.Errorf("stinttest: %d runs were not seen", n) },
	}}, o.Worker.Hooks...)
	o.Worker.NoJitter = true
	w, err := core.NewWorker(k.Store, o.Worker)
	if err != nil {
		tb.Fatalf("stinttest: %v", err)
	}
	k.Worker = w
	return k
}

// Now is the store's time.
func (k *Kit) Now() time.Time { return core.Micros(k.clock.Now()) }

// still is a clock that stands still until it is moved.
type still struct {
	mu  sync.Mutex
	now time.Time
}

func newStill(start time.Time) *still {
	if start.IsZero() {
		start = time.Now()
	}
	return &still{now: start}
}

func (c *still) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *still) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bubble is the clock of testing/synctest.
type bubble struct{}

func (bubble) Now() time.Time          { return time.Now() }
func (bubble) advance(d time.Duration) { time.Sleep(d) }
