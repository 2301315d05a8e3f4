package conformance

import (
	"time"

	"github.com/stintmq/stint/core"
)

func pauseCases() []testCase {
	needs := []Capability{CapAdmin}
	return []testCase{
		{rule: "Q8", name: "pause", run: pausePause, needs: needs, timeless: true,
			demands: "nothing of a paused queue is handed out; other queues go on; Resume ends it"},
		{rule: "Q8", name: "repeatable", run: pauseRepeatable, needs: needs, timeless: true,
			demands: "Pause and Resume may be repeated, Resume of a queue that was never paused included"},
		{rule: "Q8", name: "before-the-first-job", run: pauseBeforeFirst, needs: needs, timeless: true,
			demands: "a queue may be paused before its first job"},
		{rule: "Q8", name: "held-jobs", run: pauseHeld, needs: needs,
			demands: "a pause leaves running jobs alone: they are extended, acked and swept as ever"},
		{rule: "Q8", name: "paused-list", run: pauseList, needs: needs, timeless: true,
			demands: "Paused lists the paused queues, sorted"},
		{rule: "Q8", name: "other-handle", run: pauseOtherHandle, needs: []Capability{CapAdmin, CapOpen}, timeless: true,
			demands: "after Pause returned nothing new starts in any process"},
		{rule: "Q4", name: "next-in", run: pauseNextIn, needs: needs,
			demands: "paused queues do not count for NextIn"},
		{rule: "Q27", name: "due-reads-as-waiting", run: pauseDue, needs: []Capability{CapAdmin, CapInspector},
			demands: "a job that comes due on a paused queue reads as waiting and is not handed out"},
	}
}

func (k *kit) pause(queue string) {
	k.Helper()
	k.ok("Pause", k.admin.Pause(k.ctx, queue))
}

func (k *kit) resume(queue string) {
	k.Helper()
	k.ok("Resume", k.admin.Resume(k.ctx, queue))
}

func (k *kit) wantPaused(queues ...string) {
	k.Helper()
	got, err := k.admin.Paused(k.ctx)
	k.ok("Paused", err)
	eqs(k, "paused queues", got, queues)
}

func pausePause(k *kit) {
	k.addAll("a", "b")
	k.add("other", onQueue("other"))
	k.takeID("a")
	k.pause(theQueue)
	k.none("the queue is paused")
	c := k.claim(want(5), wantFrom("other", 5))
	eqs(k, "jobs of a paused and another queue", c.ids(), []string{"other"})
	k.add("c")
	k.none("the queue is paused")
	k.wantState("b", core.StateWaiting)
	k.resume(theQueue)
	k.drain("jobs after Resume", "b", "c")
}

func pauseRepeatable(k *kit) {
	k.resume("never paused")
	k.add("a")
	k.pause(theQueue)
	k.pause(theQueue)
	k.wantPaused(theQueue)
	k.none("the queue is paused")
	k.resume(theQueue)
	k.wantPaused()
	k.resume(theQueue)
	k.takeID("a")
}

func pauseBeforeFirst(k *kit) {
	k.pause(theQueue)
	k.add("a")
	k.none("the queue is paused")
	k.resume(theQueue)
	k.takeID("a")
}

func pauseHeld(k *kit) {
	k.addAll("a", "b", "c")
	a, b := k.take(), k.take()
	k.takeFor(time.Second)
	k.pause(theQueue)
	x := k.extend(time.Minute, a.lease)
	eq(k, "Lost", len(x.Lost), 0)
	k.end(a, core.OutcomeComplete, core.StateCompleted)
	k.end(b, core.OutcomeRelease, core.StateWaiting)
	k.advance(time.Second)
	k.swept("c")
	k.none("the queue is paused")
}

func pauseList(k *kit) {
	k.wantPaused()
	for _, q := range []string{"b", "é", "a", "B", "c d"} {
		k.pause(q)
	}
	k.wantPaused("B", "a", "b", "c d", "é")
	k.resume("b")
	k.wantPaused("B", "a", "c d", "é")
}

func pauseOtherHandle(k *kit) {
	o := k.other()
	k.add("a")
	o.pause(theQueue)
	k.wantPaused(theQueue)
	k.none("another handle paused the queue")
	o.none("this handle paused the queue")
	k.resume(theQueue)
	o.takeID("a")
}

func pauseNextIn(k *kit) {
	k.add("a", delay(time.Second))
	k.add("b", onQueue("other"), delay(time.Minute))
	k.pause(theQueue)
	eq(k, "NextIn", k.none("it is delayed").NextIn, 0)
	c := k.claim(want(1), wantFrom("other", 1))
	wantNextIn(k, "the other queue's job is due in a minute", c, time.Minute)
	if c.NextIn < time.Minute {
		k.failf("NextIn is %v: the paused queue's job counted", c.NextIn)
	}
	k.advance(time.Second)
	eq(k, "NextIn with a due job", k.none("the queue is paused").NextIn, 0)
	k.resume(theQueue)
	k.takeID("a")
}

func pauseDue(k *kit) {
	k.add("a", delay(time.Second))
	k.pause(theQueue)
	k.advance(time.Second)
	k.none("the queue is paused")
	k.wantState("a", core.StateWaiting)
	k.wantCounts(theQueue, map[core.State]int64{core.StateWaiting: 1})
}
