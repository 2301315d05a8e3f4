package stinttest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
)

// Ran is one run of a handler and what became of it.
type Ran struct {
	core.Finished
	At time.Time // when it ended, by the store's clock
}

func lost(l core.LostLease, at time.Time) Ran {
	return Ran{core.Finished{Run: l.Run, Outcome: l.Outcome, Err: l.Err}, at}
}

// Failed reports whether it used up an attempt, or lost its lease.
func (r Ran) Failed() bool { return r.Failure != nil || r.State == "" }

func (r Ran) String() string {
	s := fmt.Sprintf("%s %s, attempt %d of %d: %s", r.Run.Name, r.Run.ID, r.Run.Attempt, r.Run.MaxAttempts, r.State)
	if r.Err != nil {
		s += fmt.Sprintf(" (%v)", r.Err)
	}
	return s
}

// Drain runs what is due now, slots of schedules included, and what that makes due, and returns the runs in the order in
// which they ended. Failures are the caller's to look at.
func (k *Kit) Drain() []Ran {
	k.tb.Helper()
	return k.drain(k.most)
}

func (k *Kit) drain(most int) []Ran {
	k.tb.Helper()
	k.ran = nil
	k.plan()
	n, err := k.Worker.Drain(context.Background(), core.DrainOptions{Limit: most})
	if err != nil {
		k.tb.Fatalf("stinttest: %v", err)
	}
	if n >= most {
		k.tb.Fatalf("stinttest: %d runs and no end, does a job enqueue itself? (Options.MaxRuns)%s", k.most, k.standing())
	}
	return k.ran
}

// Work is Drain for tests in which nothing goes wrong: an attempt that fails, or a job that is due and has no handler,
// ends the test.
func (k *Kit) Work() []Ran {
	k.tb.Helper()
	ran := k.Drain()
	k.healthy(ran)
	return ran
}

func (k *Kit) healthy(ran []Ran) {
	k.tb.Helper()
	var wrong strings.Builder
	for _, r := range ran {
		if r.Failed() {
			fmt.Fprintf(&wrong, "\n\t%v", r)
		}
	}
	if wrong.Len() > 0 {
		k.tb.Fatalf("stinttest: runs failed:%s", wrong.String())
	}
	for _, rec := range k.records(core.Query{States: []core.State{core.StateWaiting}}) {
		why, err := k.Store.Explain(context.Background(), rec.ID)
		if err == nil && why.Reason == core.ReasonQueued {
			k.tb.Fatalf("stinttest: nobody on k.Worker handles %q on queue %q%s", rec.Name, rec.Queue, k.standing())
		}
	}
}

// Advance moves the clock by d, and stops on the way wherever a job or a slot of a schedule comes due, to run it and what
// that makes due: retries after their backoff, a reminder that enqueues the next. It returns all runs. Failures are the
// caller's to look at.
func (k *Kit) Advance(d time.Duration) []Ran {
	k.tb.Helper()
	if d < 0 {
		k.tb.Fatal("stinttest: time does not go back")
	}
	end := k.Now().Add(d)
	ran := k.Drain()
	for steps := 1; ; steps++ {
		next := end
		for _, rec := range k.records(core.Query{States: []core.State{core.StateDelayed}}) {
			if rec.RunAt.Before(next) {
				next = rec.RunAt
			}
		}
		if slot := k.nextSlot(); !slot.IsZero() && slot.Before(next) {
			next = slot
		}
		k.clock.advance(next.Sub(k.Now()))
		ran = append(ran, k.drain(k.most-len(ran))...)
		if !next.Before(end) {
			return ran
		}
		if steps == k.most { // slots that are skipped come to no run
			k.tb.Fatalf("stinttest: jobs came due %d times within %v, does one enqueue itself? (Options.MaxRuns)%s", steps, d, k.standing())
		}
	}
}
