// Command schedules shows cron expressions, intervals and a program's own set of schedules, on a store in memory. It runs
// for ten seconds, or until it is interrupted. On any other store that keeps schedules it is the same program, and the
// schedules outlive it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := run(ctx, memstore.New(memstore.Options{}), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var (
	backup = core.NewTask[string]("backup")
	probe  = core.NewTask[string]("probe")
)

// declared are the schedules of this release. They are told apart by key: one job may have many.
func declared() []core.Declared {
	return []core.Declared{
		probe.Declare("probe-shop", core.Schedule[string]{Cron: "*/2 * * * * *", Payload: "shop"}), // with seconds
		probe.Declare("probe-mail", core.Schedule[string]{
			Every: 3 * time.Second, Payload: "mail",
			Misfire: core.MisfireSkip, // what is late is of no use any more
			Overlap: core.OverlapSkip, // nor is a second one beside one that hangs
		}),
		backup.Declare("backup-nightly", core.Schedule[string]{
			Cron: "30 2 * * *", Zone: "Europe/Berlin", Payload: "all",
			Options: []core.EnqueueOption{core.Queue("slow"), core.MaxAttempts(3)},
		}),
	}
}

// run makes the schedules of the store those that are declared, lists them, and works until ctx ends.
func run(ctx context.Context, store core.Store, out io.Writer) error {
	say := printer(out)
	// An earlier release had one more.
	if _, err := core.ApplySchedules(ctx, store, "example", core.ApplyOptions{}, append(declared(),
		backup.Declare("backup-weekly", core.Schedule[string]{Cron: "@weekly", Payload: "all"}))...); err != nil {
		return err
	}
	done, err := core.ApplySchedules(ctx, store, "example", core.ApplyOptions{Remove: true}, declared()...)
	if err != nil {
		return err
	}
	say("kept %v, removed %v", done.Kept, done.Removed)
	if err := list(ctx, store, say); err != nil {
		return err
	}

	worker, err := core.NewWorker(store, core.WorkerOptions{Concurrency: 2})
	if err != nil {
		return err
	}
	handle := func(ctx context.Context, what string) error {
		run, _ := core.Current(ctx)
		slot, _ := core.Slot(ctx)
		say("%s %s for %s, %v late", run.Name, what, slot.Format(time.TimeOnly), time.Since(slot).Round(time.Millisecond))
		return nil
	}
	probe.Handle(worker, handle)
	backup.Handle(worker, handle, core.Queue("slow"))
	return worker.Run(ctx)
}

// list shows when each schedule runs next, and what is wrong with it if anything is.
func list(ctx context.Context, store core.Store, say func(string, ...any)) error {
	scheduler, ok := core.As[core.Scheduler](store)
	if !ok {
		return fmt.Errorf("the store keeps no schedules")
	}
	schedules, err := scheduler.Schedules(ctx, core.ScheduleQuery{})
	if err != nil {
		return err
	}
	for _, s := range schedules {
		next, err := s.Occurrences(time.Now(), 2)
		if err != nil {
			return err
		}
		say("%-15s next %v, then %v %s", s.Key, next[0].Format(time.DateTime), next[1].Format(time.DateTime), s.LastError)
	}
	return nil
}

// printer prints lines whole, from any goroutine.
func printer(out io.Writer) func(string, ...any) {
	var mu sync.Mutex
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintf(out, format+"\n", args...)
	}
}
