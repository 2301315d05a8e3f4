package journal_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
)

// A tap hears what is recorded from when a worker first looked at the log: before its first pass, nothing.
func ExampleTap() {
	ctx := context.Background()
	j := onMemory()
	err := journal.Tap(j, "show", deposited, func(_ context.Context, e journal.Event[money]) error {
		fmt.Println("live:", e.Key.ID, e.Payload.Cents)
		return nil
	})
	if err != nil {
		panic(err)
	}
	w, err := j.Worker(journal.WorkerOptions{})
	if err != nil {
		panic(err)
	}
	drain := func() {
		if _, _, err := w.Drain(ctx, core.DrainOptions{}); err != nil {
			panic(err)
		}
	}
	deposit(j, "ada", 1) // nobody hears of it
	drain()
	deposit(j, "ada", 2)
	deposit(j, "ben", 3)
	drain()
	// Output:
	// live: ada 2
	// live: ben 3
}

// An ordered effect has an entity's events in their order: the second waits while the first is tried again.
func ExampleEffectOptions() {
	ctx, stop := context.WithCancel(context.Background())
	j := onMemory()
	err := journal.On(j, "post", deposited, func(_ context.Context, e journal.Event[money], call journal.Call[*memstore.Transaction]) error {
		if e.Version == 1 && call.Attempt < 3 {
			return errors.New("the receiver is down")
		}
		fmt.Println("posted", e.Payload.Cents, "at attempt", call.Attempt)
		return nil
	}, journal.EffectOptions{Ordered: true, Backoff: core.Fixed(0)})
	if err != nil {
		panic(err)
	}
	w, err := j.Worker(journal.WorkerOptions{})
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	deposit(j, "ada", 100, 200, 300)
	fmt.Println(j.WaitIdle(ctx))
	stop()
	fmt.Println(<-done)
	// Output:
	// posted 100 at attempt 3
	// posted 200 at attempt 1
	// posted 300 at attempt 1
	// <nil>
	// <nil>
}

// Drain runs what is due, what comes due by that included, and returns: for tests and command lines.
func ExampleWorker_Drain() {
	ctx := context.Background()
	j := onMemory()
	err := journal.On(j, "bonus", deposited, func(ctx context.Context, e journal.Event[money], call journal.Call[*memstore.Transaction]) error {
		if call.Attempt == 1 {
			return errors.New("try again")
		}
		if e.Causation != 0 {
			return nil // no bonus for a bonus
		}
		_, err := journal.Do(ctx, call.Journal, accounts, e.Key.ID, func(context.Context, *memstore.Transaction, journal.State[account]) ([]journal.Draft, error) {
			return []journal.Draft{deposited.New(money{1})}, nil
		})
		return err
	}, journal.EffectOptions{Backoff: core.Fixed(0)}) // else Drain leaves what failed: it is not due yet
	if err != nil {
		panic(err)
	}
	w, err := j.Worker(journal.WorkerOptions{})
	if err != nil {
		panic(err)
	}
	deposit(j, "ada", 100)
	effects, _, err := w.Drain(ctx, core.DrainOptions{})
	fmt.Println(effects, "runs,", err)
	fmt.Println("all has reacted:", j.WaitIdle(ctx) == nil)
	s, err := journal.Read(ctx, j, accounts, "ada")
	fmt.Println("balance", s.Value.Balance, err)
	// Output:
	// 4 runs, <nil>
	// all has reacted: true
	// balance 101 <nil>
}

// WaitIdle returns when workers are through with all of it. If none is, its error says what it waited for.
func ExampleJournal_WaitIdle() {
	j := onMemory()
	err := journal.On(j, "thank", deposited, func(context.Context, journal.Event[money], journal.Call[*memstore.Transaction]) error { return nil })
	if err != nil {
		panic(err)
	}
	deposit(j, "ada", 100)
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	fmt.Println(j.WaitIdle(ctx)) // there is no worker
	// Output:
	// journal: effect thank has 1 jobs to go: context deadline exceeded
}
