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

// handClock is a store's clock that is set by hand: its time decides when slots come.
type handClock struct{ now atomic.Pointer[time.Time] }

func clockAt(t time.Time) *handClock {
	c := new(handClock)
	c.now.Store(&t)
	return c
}

func (c *handClock) Now() time.Time { return *c.now.Load() }

type report struct{ Title string }

// A schedule makes a job at every slot; any worker of the store does so, and any that has the handler runs it.
func ExampleJob_Schedule() {
	clock := clockAt(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	store := memstore.New(memstore.Options{Clock: clock})
	writeReport := core.NewTask[report]("write-report")
	err := writeReport.Schedule(context.Background(), store, "nightly", core.Schedule[report]{
		Cron: "0 2 * * *", Zone: "Europe/Berlin",
		Payload: report{"sales"},
		Options: []core.EnqueueOption{core.Priority(-1)},
	})
	fmt.Println(err)

	worker, _ := core.NewWorker(store, core.WorkerOptions{})
	ctx, stop := context.WithCancel(context.Background())
	writeReport.Handle(worker, func(ctx context.Context, r report) error {
		slot, _ := core.Slot(ctx)
		run, _ := core.Current(ctx)
		fmt.Println(r.Title, "as of", slot, "by", run.ID)
		stop()
		return nil
	})
	tomorrow := time.Date(2026, 12, 1, 1, 0, 0, 0, time.UTC)
	clock.now.Store(&tomorrow)
	fmt.Println(worker.Run(ctx))
	// Output:
	// <nil>
	// sales as of 2026-12-01 01:00:00 +0000 UTC by @nightly@2026-12-01T01:00:00Z
	// <nil>
}

// A key belongs to one job. What is removed makes no further jobs.
func ExampleJob_Unschedule() {
	store := memstore.New(memstore.Options{})
	ping, pong := core.NewTask[string]("ping"), core.NewTask[string]("pong")
	_ = ping.Schedule(context.Background(), store, "beat", core.Schedule[string]{Every: time.Minute})

	_, err := pong.Unschedule(context.Background(), store, "beat")
	var held *core.ScheduleConflictError
	fmt.Println(errors.As(err, &held), held.Name)
	fmt.Println(ping.Unschedule(context.Background(), store, "beat"))
	fmt.Println(ping.Unschedule(context.Background(), store, "beat"))
	// Output:
	// true ping
	// true <nil>
	// false <nil>
}

// A program says at its start which schedules its group has. What an earlier release had beyond that is removed, or, without
// Remove, reported.
func ExampleApplySchedules() {
	store := memstore.New(memstore.Options{})
	sync, bill := core.NewTask[string]("sync"), core.NewTask[string]("bill")
	apply := func(declared ...core.Declared) {
		done, err := core.ApplySchedules(context.Background(), store, "billing", core.ApplyOptions{Remove: true}, declared...)
		fmt.Printf("put %v, kept %v, removed %v, error %v\n", done.Put, done.Kept, done.Removed, err)
	}
	apply(
		sync.Declare("sync-eu", core.Schedule[string]{Every: time.Minute, Payload: "eu"}),
		sync.Declare("sync-us", core.Schedule[string]{Every: time.Minute, Payload: "us"}),
	)
	apply(
		sync.Declare("sync-eu", core.Schedule[string]{Every: time.Minute, Payload: "eu"}),
		bill.Declare("bill", core.Schedule[string]{Cron: "@monthly", Misfire: core.MisfireAll, Overlap: core.OverlapAllow}),
	)
	apply(sync.Declare("sync-eu", core.Schedule[string]{Every: time.Millisecond}))
	// Output:
	// put [sync-eu sync-us], kept [], removed [], error <nil>
	// put [bill], kept [sync-eu], removed [sync-us], error <nil>
	// put [], kept [], removed [], error stint: schedule sync-eu: invalid Every: must be at least 1s, in whole microseconds
}

// What a store knows of its schedules: when they run next, and what is wrong with them.
func ExampleScheduleRecord_Occurrences() {
	store := memstore.New(memstore.Options{Clock: clockAt(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))})
	ping := core.NewTask[string]("ping")
	_ = ping.Schedule(context.Background(), store, "beat", core.Schedule[string]{Every: 90 * time.Minute})

	schedules, _ := store.Schedules(context.Background(), core.ScheduleQuery{Name: "ping"})
	for _, s := range schedules {
		next, err := s.Occurrences(s.NextAt.Add(-1), 3)
		fmt.Println(s.Key, s.LastError, err)
		for _, slot := range next {
			fmt.Println(slot.Format(time.DateTime))
		}
	}
	// Output:
	// beat  <nil>
	// 2026-11-30 13:30:00
	// 2026-11-30 15:00:00
	// 2026-11-30 16:30:00
}

// Half past two does not exist in New York on March 8: that day's slot comes right after the gap. An hourly one misses
// nothing.
func ExampleParseCron() {
	for _, expr := range []string{"30 2 * * *", "30 * * * *"} {
		cron, err := core.ParseCron(expr, "America/New_York")
		if err != nil {
			panic(err)
		}
		slot := time.Date(2026, 3, 8, 6, 0, 0, 0, time.UTC) // 1:00 there, in winter time
		for range 3 {
			slot = cron.Next(slot)
			fmt.Println(expr, "-", slot.Format(time.DateTime))
		}
	}
	_, err := core.ParseCron("0 0 30 2 *", "")
	fmt.Println(err)
	// Output:
	// 30 2 * * * - 2026-03-08 07:00:00
	// 30 2 * * * - 2026-03-09 06:30:00
	// 30 2 * * * - 2026-03-10 06:30:00
	// 30 * * * * - 2026-03-08 06:30:00
	// 30 * * * * - 2026-03-08 07:30:00
	// 30 * * * * - 2026-03-08 08:30:00
	// stint: invalid Cron: "0 0 30 2 *" never matches: no month of it has such a day
}
