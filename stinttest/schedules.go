package stinttest

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
)

// plan makes the jobs of the slots that have come. Advance stops at each slot, so none is ever late: what becomes of those
// that are missed (core.Misfire) is not what a Kit tests.
func (k *Kit) plan() {
	k.tb.Helper()
	ctx := context.Background()
	for {
		due, err := k.Store.DueSchedules(ctx, 100)
		if err != nil {
			k.tb.Fatalf("stinttest: %v", err)
		}
		if len(due.Due) == 0 {
			return
		}
		for i := range due.Due {
			rec := &due.Due[i]
			cadence, err := rec.Cadence(rec.NextAt)
			if err != nil {
				k.tb.Fatalf("stinttest: schedule %s: %v", rec.Key, err)
			}
			slot := rec.NextAt
			_, err = k.Store.TickSchedule(ctx, core.Tick{
				Key: rec.Key, Expect: slot, Slots: []time.Time{slot}, Passed: slot, Next: cadence.Next(slot),
			})
			if err != nil {
				k.tb.Fatalf("stinttest: schedule %s: %v", rec.Key, err)
			}
		}
	}
}

// nextSlot is when the next schedule is due; zero: there is none.
func (k *Kit) nextSlot() (next time.Time) {
	k.tb.Helper()
	all, err := k.Store.Schedules(context.Background(), core.ScheduleQuery{})
	if err != nil {
		k.tb.Fatalf("stinttest: %v", err)
	}
	for i := range all {
		at := all[i].NextAt
		if all[i].RetryAt.After(at) {
			at = all[i].RetryAt // it was put off
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}
