package conformance

import (
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func delayCases() []testCase {
	return []testCase{
		{rule: "Q3", name: "boundary", run: delayBoundary,
			demands: "a job is never claimed before its time and always at it: due is RunAt <= now"},
		{rule: "Q3", name: "by-run-at", run: delayRunAt,
			demands: "RunAt and Delay mean the same moment"},
		{rule: "Q3", name: "due-order", run: delayDueOrder,
			demands: "due jobs join before the pick, earliest first, ties by insertion"},
		{rule: "Q3", name: "thousand-due", run: delayThousand,
			demands: "at least 1,000 due jobs per claim are considered, and the earliest of them is picked"},
		{rule: "Q3", name: "priority-among-due", run: delayPriority,
			demands: "among jobs that join together priority decides"},
		{rule: "Q4", name: "next-in", run: delayNextIn,
			demands: "NextIn is the time until asking again is worthwhile: early is allowed, late is not"},
		{rule: "Q4", name: "next-in-zero", run: delayNextInZero,
			demands: "NextIn is 0 if, and only if, no delayed job matches the wants"},
		{rule: "Q4", name: "next-in-left-over", run: delayNextInLeftOver,
			demands: "NextIn is 1 ns if something runnable was left over, waiting or just due"},
		{rule: "Q4", name: "next-in-after-outcomes", run: delayNextInOutcomes,
			demands: "NextIn knows of jobs that a retry, a snooze or a stall delayed"},
		{rule: "Q27", name: "due-reads-as-waiting", run: delayDueReads, needs: []Capability{CapInspector},
			demands: "a delayed job that is due reads as waiting everywhere, moved or not"},
	}
}

func delayBoundary(k *kit) {
	k.add("a", delay(5*time.Second))
	k.wantState("a", core.StateDelayed)
	k.none("it is delayed")
	k.advance(5*time.Second - time.Microsecond)
	k.none("it is due in a microsecond")
	k.wantState("a", core.StateDelayed)
	k.advance(time.Microsecond)
	k.wantState("a", core.StateWaiting)
	k.takeID("a")
}

func delayRunAt(k *kit) {
	at := k.now().Add(time.Minute)
	k.add("at", runAt(at.In(time.FixedZone("elsewhere", -5*60*60))))
	k.add("in", delay(time.Minute))
	k.advance(time.Minute - time.Microsecond)
	k.none("both are due in a microsecond")
	k.advance(time.Microsecond)
	for _, j := range k.drain("jobs that came due", "at", "in").Jobs {
		k.wantTime("RunAt", j.RunAt, at)
	}
}

func delayDueOrder(k *kit) {
	for i, d := range []int{30, 10, 20, 10, 40} {
		k.add(fmt.Sprintf("%d-%d", d, i), delay(time.Duration(d)*time.Second))
	}
	k.advance(35 * time.Second)
	eqs(k, "the two that came due first", k.claim(want(2)).ids(), []string{"10-1", "10-3"})
	k.add("plain")
	eqs(k, "the rest", k.claim(want(10)).ids(), []string{"20-2", "30-0", "plain"})
}

func delayThousand(k *kit) {
	const n = 1000
	reqs := make([]core.EnqueueRequest, n)
	for i := range reqs {
		reqs[i] = request(fmt.Sprintf("d%d", i), delay(time.Duration(n-i)*time.Second))
	}
	reqs[0].Priority = 9 // the last to come due, the first to be picked
	for _, r := range k.enqueue(reqs...) {
		k.ok("Enqueue", r.Err)
	}
	k.advance(n * time.Second)
	eqs(k, "the best of 1,000 due jobs", k.claim(want(2)).ids(), []string{"d0", "d999"})
	got := 0
	for {
		c := k.claim(want(300))
		if len(c.Jobs) == 0 {
			break
		}
		got += len(c.Jobs)
	}
	eq(k, "due jobs claimed after that", got, n-2)
}

func delayPriority(k *kit) {
	k.add("waiting", prio(3))
	k.add("low", delay(time.Second))
	k.add("high", delay(2*time.Second), prio(5))
	k.add("mid", delay(3*time.Second), prio(3))
	k.advance(3 * time.Second)
	k.drain("jobs", "high", "waiting", "mid", "low")
}

// wantNextIn checks a NextIn: within (0, most].
func wantNextIn(k *kit, why string, c claims, most time.Duration) {
	k.Helper()
	if c.NextIn <= 0 || c.NextIn > most {
		k.failf("%s: NextIn is %v, want more than 0 and at most %v", why, c.NextIn, most)
	}
}

func delayNextIn(k *kit) {
	k.add("later", delay(time.Minute))
	wantNextIn(k, "due in a minute", k.none("delayed"), time.Minute)
	k.add("sooner", delay(10*time.Second))
	wantNextIn(k, "due in ten seconds", k.none("delayed"), 10*time.Second)
	k.advance(9 * time.Second)
	wantNextIn(k, "due in a second", k.none("delayed"), time.Second)
	k.advance(time.Second - time.Microsecond)
	wantNextIn(k, "due in a microsecond", k.none("delayed"), time.Microsecond)
	k.advance(time.Microsecond)
	c := k.claim(want(5))
	eqs(k, "jobs", c.ids(), []string{"sooner"})
	wantNextIn(k, "the other is due in fifty seconds", c, 50*time.Second)
	k.add("other", onQueue("other"), delay(3*time.Second))
	c = k.claim(want(5), wantFrom("other", 1))
	wantNextIn(k, "over two wants the earlier counts", c, 3*time.Second)
}

func delayNextInZero(k *kit) {
	zero := func(why string, c claims) {
		k.Helper()
		if c.NextIn != 0 {
			k.failf("%s: NextIn is %v, want 0", why, c.NextIn)
		}
	}
	zero("empty store", k.none("nothing was enqueued"))
	k.add("named", named("other"), delay(time.Minute))
	k.add("queued", onQueue("other"), delay(time.Minute))
	zero("other names and queues", k.none("nothing matches"))
	c := k.claim(want(5), wantFrom("other", 0))
	zero("a want with limit 0 does not count", c)
	k.add("a")
	zero("everything was claimed", k.drain("jobs", "a"))
	k.advance(time.Minute)
	zero("others' due jobs", k.none("nothing matches"))
}

func delayNextInLeftOver(k *kit) {
	k.addAll("a", "b")
	eq(k, "NextIn with a waiting job left over", k.claim(want(1)).NextIn, 1)
	eq(k, "NextIn with none left over", k.claim(want(1)).NextIn, 0)
	k.add("c", delay(time.Second))
	k.add("d", delay(2*time.Second))
	k.advance(2 * time.Second)
	eq(k, "NextIn with a due job left over", k.claim(want(1)).NextIn, 1)
	k.add("e", delay(time.Minute))
	c := k.claim(want(1))
	eqs(k, "jobs", c.ids(), []string{"d"})
	wantNextIn(k, "one delayed job left", c, time.Minute)
}

func delayNextInOutcomes(k *kit) {
	k.addAll("a", "b", "c")
	a, b := k.take(), k.take()
	k.takeFor(time.Second)
	k.endIn(a, core.OutcomeRetry, 20*time.Minute, core.StateDelayed)
	wantNextIn(k, "retried", k.none("delayed"), 20*time.Minute)
	k.endIn(b, core.OutcomeSnooze, 15*time.Minute, core.StateDelayed)
	wantNextIn(k, "snoozed", k.none("delayed"), 15*time.Minute)
	k.advance(time.Second)
	k.swept("c")
	wantNextIn(k, "stalled", k.none("delayed"), 1250*time.Millisecond)
}

func delayDueReads(k *kit) {
	k.add("a", delay(time.Second))
	k.add("b", delay(time.Second), named("other"))
	k.add("later", delay(time.Hour))
	check := func() {
		k.Helper()
		k.wantState("a", core.StateWaiting)
		k.wantCounts(theQueue, map[core.State]int64{core.StateWaiting: 2, core.StateDelayed: 1})
		waiting := core.Query{States: []core.State{core.StateWaiting}, Ascending: true}
		page := k.list(waiting)
		eqs(k, "listed as waiting", recordIDs(page.Jobs), []string{"a", "b"})
		for _, j := range page.Jobs {
			eq(k, "state in the list", j.State, core.StateWaiting)
		}
		delayed := core.Query{States: []core.State{core.StateDelayed}, Queue: theQueue, OrderBy: core.OrderRun}
		eqs(k, "listed as delayed", recordIDs(k.list(delayed).Jobs), []string{"later"})
	}
	k.advance(time.Second)
	check()
	k.claim(core.Want{Queue: theQueue, Names: []string{"nobody's"}, Limit: 1})
	check()
}
