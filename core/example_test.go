package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

type welcome struct{ To string }

// A job is declared once, enqueued anywhere, and handled by a worker.
func Example() {
	sendWelcome := core.NewJob[welcome, string]("send-welcome", core.JobOptions[welcome]{
		Queue:       "mail",
		MaxAttempts: 5,
		Key:         func(w welcome) string { return w.To }, // one welcome per address
	})

	store := memstore.New(memstore.Options{})
	worker, err := core.NewWorker(store, core.WorkerOptions{Concurrency: 4})
	if err != nil {
		panic(err)
	}
	sendWelcome.Handle(worker, func(_ context.Context, w welcome) (string, error) {
		return "sent to " + w.To, nil
	})

	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- worker.Run(ctx) }()

	receipt, err := sendWelcome.Execute(ctx, store, welcome{"ada@example.org"})
	fmt.Println(receipt, err)
	again, err := sendWelcome.Enqueue(ctx, store, welcome{"ada@example.org"})
	fmt.Println(again.ID, again.Duplicate, err)

	stop()
	fmt.Println(<-done)
	// Output:
	// sent to ada@example.org <nil>
	// send-welcome:ada@example.org true <nil>
	// <nil>
}

// drained runs everything that is due, as a test or a cron job does.
func drained(w *core.Worker) {
	if _, err := w.Drain(context.Background(), core.DrainOptions{}); err != nil {
		fmt.Println(err)
	}
}

// A task has no result. Drain runs what is due now and returns: for tests, cron and command lines.
func ExampleNewTask() {
	store := memstore.New(memstore.Options{})
	worker, _ := core.NewWorker(store, core.WorkerOptions{})
	greet := core.NewTask[string]("greet")
	greet.Handle(worker, func(_ context.Context, name string) error {
		fmt.Println("hello,", name)
		return nil
	})
	_, _ = greet.Enqueue(context.Background(), store, "world")
	_, _ = greet.Enqueue(context.Background(), store, "later", core.Delay(time.Hour))
	n, err := worker.Drain(context.Background(), core.DrainOptions{})
	fmt.Println(n, err)
	// Output:
	// hello, world
	// 1 <nil>
}

// Items of a batch are independent: one that is refused carries its own error.
func ExampleJob_EnqueueMany() {
	store := memstore.New(memstore.Options{})
	resize := core.NewTask[string]("resize", core.JobOptions[string]{Key: func(path string) string { return path }})
	results, err := resize.EnqueueMany(context.Background(), store, []string{"a.png", "", "b.png", "a.png"})
	fmt.Println(err)
	for _, r := range results {
		fmt.Printf("%q %v %v\n", r.ID, r.Duplicate, r.Err)
	}
	// Output:
	// <nil>
	// "resize:a.png" false <nil>
	// "" false stint: enqueue resize: invalid Key: the job's Key function returned an empty key
	// "resize:b.png" false <nil>
	// "resize:a.png" true <nil>
}

// Jobs of several kinds go into the store in one call.
func ExampleJob_Request() {
	store := memstore.New(memstore.Options{})
	charge, mail := core.NewTask[int]("charge"), core.NewTask[string]("mail")
	ctx := context.Background()
	first, _ := charge.Request(ctx, 100, core.ID("order-7-charge"))
	second, _ := mail.Request(ctx, "order 7 is on its way", core.ID("order-7-mail"), core.Priority(-1))
	results, err := store.Enqueue(ctx, []core.EnqueueRequest{first, second})
	fmt.Println(results[0].ID, results[1].ID, err)
	// Output: order-7-charge order-7-mail <nil>
}

// What a handler returns decides what becomes of the run.
func ExampleUnrecoverable() {
	store := memstore.New(memstore.Options{})
	worker, _ := core.NewWorker(store, core.WorkerOptions{})
	ship := core.NewTask[string]("ship")
	ship.Handle(worker, func(_ context.Context, order string) error {
		switch order {
		case "unknown":
			return core.Unrecoverable(errors.New("no such order")) // failed, no further attempt
		case "rate limited":
			return core.RetryAfter(time.Minute, errors.New("too many requests")) // an attempt used
		case "not paid yet":
			return core.Snooze(time.Hour) // no attempt used
		}
		return nil
	})
	for _, order := range []string{"unknown", "rate limited", "not paid yet", "good"} {
		_, _ = ship.Enqueue(context.Background(), store, order, core.ID(order))
	}
	drained(worker)
	for _, order := range []string{"unknown", "rate limited", "not paid yet", "good"} {
		rec, _ := store.Get(context.Background(), order)
		fmt.Println(order, rec.State, rec.Attempts)
	}
	// Output:
	// unknown failed 1
	// rate limited delayed 1
	// not paid yet delayed 0
	// good completed 1
}

// Complete ends the job inside the handler's own transaction: its writes, the jobs it enqueues and its end are
// committed together, or not at all.
func ExampleJob_Complete() {
	store := memstore.New(memstore.Options{})
	worker, _ := core.NewWorker(store, core.WorkerOptions{})
	pay, notify := core.NewJob[int, string]("pay"), core.NewTask[string]("notify")
	pay.Handle(worker, func(ctx context.Context, cents int) (string, error) {
		tx := store.Begin() // of a database: its transaction type, e.g. bun.Tx
		view := store.WithTx(tx)
		if _, err := notify.Enqueue(ctx, view, "paid"); err != nil {
			return "", errors.Join(err, tx.Rollback())
		}
		receipt := fmt.Sprintf("receipt for %d", cents)
		if err := pay.Complete(ctx, view, receipt); err != nil {
			return "", errors.Join(err, tx.Rollback())
		}
		return receipt, tx.Commit()
	})
	e, _ := pay.Enqueue(context.Background(), store, 100)
	drained(worker)
	receipt, err := pay.Await(context.Background(), store, e.ID)
	counts, _ := store.Counts(context.Background(), "")
	fmt.Println(receipt, err, counts[core.StateWaiting])
	// Output: receipt for 100 <nil> 1
}

// Middleware wraps every run; Current tells a handler about the run it is in.
func ExampleMiddleware() {
	logged := func(next core.HandlerFunc) core.HandlerFunc {
		return func(ctx context.Context, run core.Run, payload []byte) ([]byte, error) {
			result, err := next(ctx, run, payload)
			fmt.Println(run.Name, run.Attempt, "of", run.MaxAttempts, err)
			return result, err
		}
	}
	store := memstore.New(memstore.Options{})
	worker, _ := core.NewWorker(store, core.WorkerOptions{Middleware: []core.Middleware{logged}})
	flaky := core.NewTask[int]("flaky", core.JobOptions[int]{MaxAttempts: 3, Backoff: core.Fixed(0)})
	flaky.Handle(worker, func(ctx context.Context, _ int) error {
		if run, _ := core.Current(ctx); run.Attempt < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	_, _ = flaky.Enqueue(context.Background(), store, 1)
	drained(worker)
	// Output:
	// flaky 1 of 3 not yet
	// flaky 2 of 3 not yet
	// flaky 3 of 3 <nil>
}

// OnFailure hears of every failed attempt, with what the store made of it.
func ExampleWorkerOptions() {
	var failures atomic.Int32
	store := memstore.New(memstore.Options{})
	worker, _ := core.NewWorker(store, core.WorkerOptions{
		Concurrency:   8,
		MaxConcurrent: 20,
		Queues:        map[string]core.QueueOptions{"mail": {Concurrency: 2}},
		Lease:         time.Minute,
		OnFailure: func(_ context.Context, f core.Failed) {
			failures.Add(1)
			fmt.Println(f.Run.Name, f.State, f.Failure.Message)
		},
	})
	doomed := core.NewTask[int]("doomed", core.JobOptions[int]{MaxAttempts: 1})
	doomed.Handle(worker, func(context.Context, int) error { return errors.New("no disk") })
	_, _ = doomed.Enqueue(context.Background(), store, 1)
	drained(worker)
	fmt.Println(failures.Load())
	// Output:
	// doomed failed no disk
	// 1
}

// Capabilities beyond the six required methods are found by As, through wrappers too.
func ExampleAs() {
	var store core.Store = memstore.New(memstore.Options{})
	task := core.NewTask[int]("task")
	e, _ := task.Enqueue(context.Background(), store, 1, core.Delay(time.Hour))
	if admin, ok := core.As[core.Admin](store); ok {
		fmt.Println(admin.Promote(context.Background(), e.ID))
		state, err := admin.Cancel(context.Background(), e.ID)
		fmt.Println(state, err)
		var ended *core.StateError
		_, err = admin.Cancel(context.Background(), e.ID)
		fmt.Println(errors.As(err, &ended), ended.State)
	}
	// Output:
	// <nil>
	// cancelled <nil>
	// true cancelled
}

// Explain and Stranded answer why nothing happens.
func ExampleInspector() {
	store := memstore.New(memstore.Options{})
	var inspector core.Inspector = store
	task := core.NewTask[int]("nobody-handles-this")
	e, _ := task.Enqueue(context.Background(), store, 1)
	stranded, _ := inspector.Stranded(context.Background(), []string{"send-welcome"})
	fmt.Println(stranded)
	_ = store.Pause(context.Background(), "default")
	why, _ := inspector.Explain(context.Background(), e.ID)
	fmt.Println(why.State, why.Reason)
	// Output:
	// [{default nobody-handles-this 1}]
	// waiting paused
}

func ExampleExponential() {
	b := core.Exponential(time.Second, 2, time.Minute, core.NoJitter())
	for n := 1; n <= 8; n += 7 {
		fmt.Println(b.Delay(n))
	}
	// Output:
	// 1s
	// 1m0s
}

// What stays of finished jobs: by default of a worker's store, at most, and by one job's own wish.
func ExampleWithKeep() {
	store := memstore.New(memstore.Options{})
	day := 24 * time.Hour
	worker, _ := core.NewWorker(store, core.WorkerOptions{
		Keep:       core.Keep{Failed: core.KeepRule{Age: 30 * day}},       // of the others: completed a day, cancelled a week
		KeepAtMost: core.Keep{Completed: core.KeepRule{Count: 1_000_000}}, // whatever jobs ask for
	})
	task := core.NewTask[int]("report", core.JobOptions[int]{Keep: core.Keep{Completed: core.KeepRule{Count: 1}}})
	task.Handle(worker, func(context.Context, int) error { return nil })
	for n := range 3 {
		_, _ = task.Enqueue(context.Background(), store, n)
	}
	_, _ = task.Enqueue(context.Background(), store, 3, core.WithKeep(core.Keep{Completed: core.KeepRule{Count: 2}}))
	drained(worker) // Run would prune as well, once a minute
	pruned, _ := store.Prune(context.Background(), core.PruneRequest{})
	counts, _ := store.Counts(context.Background(), "")
	fmt.Println(pruned, "pruned,", counts[core.StateCompleted], "left") // the newest job's Keep rules its group
	// Output: 2 pruned, 2 left
}

// A program that only prunes, beside workers with PruneInterval: -1.
func ExampleWorkerOptions_keep() {
	store := memstore.New(memstore.Options{})
	worker, err := core.NewWorker(store, core.WorkerOptions{
		Keep:          core.Keep{Completed: core.KeepRule{None: true}},
		PruneInterval: 10 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // it would run on
	fmt.Println(worker.Run(ctx))
	// Output: <nil>
}
