package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/stintmq/stint/core"
)

func gaugeCases() []testCase {
	needs := []Capability{CapGauge}
	return []testCase{
		{rule: "Q27", name: "gauges", run: gaugesGauges, needs: needs,
			demands: "Gauges has an entry per queue with pending jobs, in order, and none for others"},
		{rule: "Q27", name: "due", run: gaugesDue, needs: needs,
			demands: "a delayed job that is due counts as waiting from the moment it was due, claimed for or not"},
		{rule: "Q27", name: "oldest", run: gaugesOldest, needs: needs,
			demands: "OldestWaiting is the age of the job that waits longest, whatever its name and priority"},
		{rule: "Q27", name: "oldest-again", run: gaugesAgain, needs: needs,
			demands: "a job that waits again waits since it was due again; one that was released waits as before"},
		{rule: "Q27", name: "paused", run: gaugesPaused, needs: []Capability{CapGauge, CapAdmin},
			demands: "jobs of a paused queue count as they would otherwise"},
	}
}

func hasGauger(ctx context.Context, s core.Store) bool {
	g, ok := core.As[core.Gauger](s)
	if !ok {
		return false
	}
	_, err := g.Gauges(ctx)
	return !errors.Is(err, errors.ErrUnsupported)
}

// wantGauges compares what the store measures now.
func (k *kit) wantGauges(want ...core.QueueGauge) {
	k.Helper()
	g, _ := core.As[core.Gauger](k.store)
	got, err := g.Gauges(k.ctx)
	k.ok("Gauges", err)
	eqs(k, "gauges", got, want)
}

func gaugesGauges(k *kit) {
	k.wantGauges()
	k.addAll("held", "done", "a", "b")
	k.add("later", delay(time.Hour))
	k.add("elsewhere", onQueue("elsewhere"), named("other"))
	k.add("another", onQueue("elsewhere"), delay(time.Minute))
	k.add("only later", onQueue("a queue"), delay(time.Minute))
	k.add("only held", onQueue("held only"))
	k.takeID("held")
	k.end(k.takeID("done"), core.OutcomeComplete, core.StateCompleted)
	k.claim(core.Want{Queue: "held only", Names: []string{theName}, Limit: 1})
	k.advance(time.Second)
	k.wantGauges(
		core.QueueGauge{Queue: "a queue", Delayed: 1},
		core.QueueGauge{Queue: theQueue, Waiting: 2, Delayed: 1, Active: 1, OldestWaiting: time.Second},
		core.QueueGauge{Queue: "elsewhere", Waiting: 1, Delayed: 1, OldestWaiting: time.Second},
		core.QueueGauge{Queue: "held only", Active: 1},
	)
	for _, id := range []string{"a", "b"} {
		k.end(k.takeID(id), core.OutcomeFail, core.StateFailed)
	}
	k.wantGauges(
		core.QueueGauge{Queue: "a queue", Delayed: 1},
		core.QueueGauge{Queue: theQueue, Delayed: 1, Active: 1},
		core.QueueGauge{Queue: "elsewhere", Waiting: 1, Delayed: 1, OldestWaiting: time.Second},
		core.QueueGauge{Queue: "held only", Active: 1},
	)
}

func gaugesDue(k *kit) {
	k.add("a", delay(time.Second))
	k.add("b", delay(time.Minute), named("other"))
	k.wantGauges(core.QueueGauge{Queue: theQueue, Delayed: 2})
	k.advance(time.Second)
	k.wantGauges(core.QueueGauge{Queue: theQueue, Waiting: 1, Delayed: 1})
	k.advance(4 * time.Second)
	k.wantGauges(core.QueueGauge{Queue: theQueue, Waiting: 1, Delayed: 1, OldestWaiting: 4 * time.Second})
	k.claim(core.Want{Queue: theQueue, Names: []string{"nobody"}, Limit: 1})
	k.advance(time.Hour)
	k.wantGauges(core.QueueGauge{Queue: theQueue, Waiting: 2, OldestWaiting: time.Hour + 4*time.Second})
	k.takeID("a")
	k.wantGauges(core.QueueGauge{Queue: theQueue, Waiting: 1, Active: 1, OldestWaiting: time.Hour + 5*time.Second - time.Minute})
}

func gaugesOldest(k *kit) {
	k.add("low", prio(-9))
	k.advance(time.Second)
	k.add("other", named("other"))
	k.advance(time.Second)
	k.addAll("first", "second")
	k.add("high", prio(9))
	k.advance(time.Second)
	oldest := func(waiting, active int64, age time.Duration) {
		k.Helper()
		k.wantGauges(core.QueueGauge{Queue: theQueue, Waiting: waiting, Active: active, OldestWaiting: age})
	}
	oldest(5, 0, 3*time.Second)
	for i, id := range []string{"high", "first", "second"} {
		k.takeID(id)
		oldest(4-int64(i), int64(i)+1, 3*time.Second)
	}
	k.takeID("low")
	oldest(1, 4, 2*time.Second)
}

func gaugesAgain(k *kit) {
	k.add("a")
	k.advance(time.Minute)
	k.end(k.takeID("a"), core.OutcomeRelease, core.StateWaiting)
	waiting := func(age time.Duration) {
		k.Helper()
		k.wantGauges(core.QueueGauge{Queue: theQueue, Waiting: 1, OldestWaiting: age})
	}
	waiting(time.Minute)
	k.endIn(k.takeID("a"), core.OutcomeRetry, 0, core.StateWaiting)
	waiting(0)
	k.advance(time.Second)
	waiting(time.Second)
	k.endIn(k.takeID("a"), core.OutcomeSnooze, time.Second, core.StateDelayed)
	k.wantGauges(core.QueueGauge{Queue: theQueue, Delayed: 1})
	k.advance(2 * time.Second)
	waiting(time.Second)
	k.takeID("a")
	k.advance(theLease)
	if _, err := k.store.RecoverStalled(k.ctx, core.RecoverRequest{MaxStalls: 5}); err != nil {
		k.failf("RecoverStalled: %v", err)
	}
	k.wantGauges(core.QueueGauge{Queue: theQueue, Delayed: 1})
	k.advance(time.Hour)
	k.claim(core.Want{Queue: theQueue, Names: []string{theName}, Limit: 1})
	k.wantGauges(core.QueueGauge{Queue: theQueue, Active: 1})
}

func gaugesPaused(k *kit) {
	k.add("a")
	k.pause(theQueue)
	k.advance(time.Second)
	k.wantGauges(core.QueueGauge{Queue: theQueue, Waiting: 1, OldestWaiting: time.Second})
	k.ok("Cancel", func() error { _, err := k.admin.Cancel(k.ctx, "a"); return err }())
	k.wantGauges()
}
