package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

type shop struct{ Name string }

// One job per shop waits or runs at any time. Once it has ended the next enqueue makes another.
func ExampleDedupe() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	worker, _ := core.NewWorker(store, core.WorkerOptions{})
	reindex := core.NewTask[shop]("reindex", core.JobOptions[shop]{
		Dedupe: func(s shop) core.Dedupe { return core.Dedupe{Key: s.Name} },
	})
	reindex.Handle(worker, func(_ context.Context, s shop) error {
		fmt.Println("reindexing", s.Name)
		return nil
	})
	for range 3 {
		e, err := reindex.Enqueue(ctx, store, shop{"books"})
		fmt.Println(e.ID, e.Duplicate, err)
	}
	drained(worker)
	e, err := reindex.Enqueue(ctx, store, shop{"books"})
	fmt.Println(e.ID, e.Duplicate, err)
	// Output:
	// #1 false <nil>
	// #1 true <nil>
	// #1 true <nil>
	// reindexing books
	// #2 false <nil>
}

// While a job is delayed the newest content wins: one mail with what it says in the end.
func ExampleWithDedupe() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	summary := core.NewTask[string]("summary")
	for _, text := range []string{"1 message", "2 messages", "3 messages"} {
		e, err := summary.Enqueue(ctx, store, text, core.Delay(time.Hour),
			core.WithDedupe(core.Dedupe{Key: "ada", Replace: true}))
		fmt.Println(e.ID, e.Duplicate, err)
	}
	rec, err := store.Get(ctx, "#1")
	fmt.Println(string(rec.Payload), rec.State, err)
	// Output:
	// #1 false <nil>
	// #1 true <nil>
	// #1 true <nil>
	// "3 messages" delayed <nil>
}

// A job is cancelled by the key that it took. To retry it while another job has that key is a conflict.
func ExampleAdmin_cancelByKey() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	export := core.NewTask[string]("export")
	daily := core.WithDedupe(core.Dedupe{Key: "daily", TTL: 24 * time.Hour})
	first, _ := export.Enqueue(ctx, store, "all", daily)

	done, err := store.CancelByKey(ctx, export.Name(), "daily")
	fmt.Println(done, err)
	second, _ := export.Enqueue(ctx, store, "all", daily) // a cancelled job does not keep its window
	fmt.Println(second.ID, second.Duplicate)

	if conflict, ok := errors.AsType[*core.ConflictError](store.Retry(ctx, first.ID)); ok {
		fmt.Println(conflict)
	}
	// Output:
	// true <nil>
	// #2 false
	// stint: key "daily" of "export" is held by job "#2"
}

// A store works out what to do about a key that was taken.
func ExampleDedupe_Decide() {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	holder := core.KeyHolder{State: core.StateCompleted, End: now.Add(time.Minute)}
	fmt.Println(core.Dedupe{Key: "k"}.Decide(holder, now) == core.KeyDuplicate, holder.Holds(now), holder.Dead(now))
	fmt.Println(core.Dedupe{Key: "k"}.Decide(holder, holder.End) == core.KeyFree, holder.Dead(holder.End))
	fmt.Println(core.Dedupe{TTL: time.Hour}.WindowEnd(now).Format(time.TimeOnly))
	// Output:
	// true true false
	// true true
	// 13:00:00
}
