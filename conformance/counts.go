package conformance

import (
	"time"

	"github.com/stintmq/stint/core"
)

func countsCases() []testCase {
	needs := []Capability{CapInspector}
	return []testCase{
		{rule: "Q27", name: "counts", run: countsCounts, needs: needs,
			demands: "Counts has a number for every state, zeros included, of one queue or of all"},
		{rule: "Q27", name: "counts-follow", run: countsFollow, needs: []Capability{CapInspector, CapAdmin},
			demands: "counts follow every move, removal included"},
		{rule: "Q27", name: "stranded", run: countsStranded, needs: needs,
			demands: "Stranded counts pending jobs per queue and name whose name nobody known handles, in order"},
		{rule: "Q27", name: "explain", run: countsExplain, needs: needs,
			demands: "Explain gives the one reason why a job does not run now"},
		{rule: "Q27", name: "explain-paused", run: countsExplainPaused, needs: []Capability{CapInspector, CapAdmin},
			demands: "a pause is the reason of what could run, not of what is delayed or held"},
	}
}

func countsCounts(k *kit) {
	k.wantCounts("", nil)
	k.wantCounts("nowhere", nil)
	k.addAll("active", "waiting")
	k.add("delayed", delay(time.Second))
	k.add("elsewhere", onQueue("elsewhere"))
	k.takeID("active")
	k.wantCounts(theQueue, map[core.State]int64{core.StateActive: 1, core.StateWaiting: 1, core.StateDelayed: 1})
	k.wantCounts("elsewhere", map[core.State]int64{core.StateWaiting: 1})
	k.wantCounts("", map[core.State]int64{core.StateActive: 1, core.StateWaiting: 2, core.StateDelayed: 1})
	k.advance(time.Second)
	k.wantCounts(theQueue, map[core.State]int64{core.StateActive: 1, core.StateWaiting: 2})
}

func countsFollow(k *kit) {
	k.addAll("a", "b", "c", "d")
	a, b, c := k.take(), k.take(), k.take()
	k.end(a, core.OutcomeComplete, core.StateCompleted)
	k.end(b, core.OutcomeFail, core.StateFailed)
	k.endIn(c, core.OutcomeRetry, time.Hour, core.StateDelayed)
	k.cancel("d", core.StateCancelled)
	k.wantCounts("", map[core.State]int64{
		core.StateCompleted: 1, core.StateFailed: 1, core.StateDelayed: 1, core.StateCancelled: 1,
	})
	k.ok("Retry", k.admin.Retry(k.ctx, "b"))
	k.ok("Retry", k.admin.Retry(k.ctx, "d"))
	k.ok("Promote", k.admin.Promote(k.ctx, "c"))
	k.wantCounts(theQueue, map[core.State]int64{core.StateCompleted: 1, core.StateWaiting: 3})
	for _, id := range []string{"a", "b"} {
		if _, err := k.admin.Remove(k.ctx, id); err != nil {
			k.failf("Remove: %v", err)
		}
	}
	k.wantCounts(theQueue, map[core.State]int64{core.StateWaiting: 2})
}

func countsStranded(k *kit) {
	k.add("1", named("b"))
	k.add("2", named("b"), delay(time.Second))
	k.add("3", named("a"))
	k.add("4", named("b"), onQueue("another"))
	k.addAll("5", "6")
	k.takeID("5")
	k.add("7", named("done"))
	c := k.claim(core.Want{Queue: theQueue, Names: []string{"done"}, Limit: 1})
	k.end(held1(c, 0), core.OutcomeComplete, core.StateCompleted)
	k.advance(time.Second)
	stranded := func(known []string, want ...core.Stranded) {
		k.Helper()
		got, err := k.insp.Stranded(k.ctx, known)
		k.ok("Stranded", err)
		eqs(k, "stranded jobs", got, want)
	}
	other := core.Stranded{Queue: "another", Name: "b", Count: 1}
	a, b := core.Stranded{Queue: theQueue, Name: "a", Count: 1}, core.Stranded{Queue: theQueue, Name: "b", Count: 2}
	jobs := core.Stranded{Queue: theQueue, Name: theName, Count: 2}
	stranded(nil, other, a, b, jobs)
	stranded([]string{theName}, other, a, b)
	stranded([]string{theName, "b", "nobody"}, a)
	stranded([]string{"b", "a", theName})
	stranded([]string{"B"}, other, a, b, jobs)
}

// explain asks and checks what does not depend on the reason.
func (k *kit) explain(id string, want core.Explanation) {
	k.Helper()
	got, err := k.insp.Explain(k.ctx, id)
	k.ok("Explain", err)
	want.ID = id
	eq(k, "explanation", got, want)
}

func countsExplain(k *kit) {
	_, err := k.insp.Explain(k.ctx, "nobody")
	k.is("Explain of an unknown job", err, core.ErrNotFound)
	k.add("a")
	k.add("urgent", prio(5))
	k.add("b", named("other"))
	k.add("elsewhere", onQueue("elsewhere"), prio(9))
	k.add("later", delay(time.Minute))
	queued := func(ahead int64) core.Explanation {
		return core.Explanation{State: core.StateWaiting, Reason: core.ReasonQueued, Ahead: ahead}
	}
	k.explain("urgent", queued(0))
	k.explain("a", queued(1))
	k.explain("b", queued(2))
	k.explain("elsewhere", queued(0))
	k.explain("later", core.Explanation{State: core.StateDelayed, Reason: core.ReasonDelayed, DueIn: time.Minute})
	h := k.takeID("urgent")
	k.explain("a", queued(0))
	leased := func(left time.Duration) core.Explanation {
		return core.Explanation{State: core.StateActive, Reason: core.ReasonLeased, Worker: "worker-1", LeaseFor: left}
	}
	k.explain("urgent", leased(theLease))
	k.advance(theLease)
	k.explain("urgent", leased(0))
	k.explain("later", core.Explanation{State: core.StateDelayed, Reason: core.ReasonDelayed, DueIn: time.Minute - theLease})
	k.advance(theLease)
	k.explain("urgent", leased(-theLease))
	k.explain("later", queued(2))
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	k.explain("urgent", core.Explanation{State: core.StateCompleted, Reason: core.ReasonFinished})
}

func countsExplainPaused(k *kit) {
	k.addAll("held", "done", "a")
	k.add("later", delay(time.Minute))
	k.add("due", delay(time.Second))
	k.takeID("held")
	k.end(k.takeID("done"), core.OutcomeFail, core.StateFailed)
	k.advance(time.Second)
	k.pause(theQueue)
	paused := core.Explanation{State: core.StateWaiting, Reason: core.ReasonPaused}
	k.explain("a", paused)
	k.explain("due", paused)
	k.explain("later", core.Explanation{State: core.StateDelayed, Reason: core.ReasonDelayed, DueIn: time.Minute - time.Second})
	k.explain("held", core.Explanation{State: core.StateActive, Reason: core.ReasonLeased, Worker: "worker-1", LeaseFor: theLease - time.Second})
	k.explain("done", core.Explanation{State: core.StateFailed, Reason: core.ReasonFinished})
	k.resume(theQueue)
	k.explain("a", core.Explanation{State: core.StateWaiting, Reason: core.ReasonQueued})
}
