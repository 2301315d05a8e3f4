package conformance

import (
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func orderCases() []testCase {
	return []testCase{
		{rule: "Q2", name: "priority", run: orderPriority, timeless: true,
			demands: "higher priority first, then first in first out"},
		{rule: "Q2", name: "fifo", run: orderFIFO, timeless: true,
			demands: "jobs of one priority come in the order of their insertion, over many calls and ids of any shape"},
		{rule: "Q2", name: "over-names", run: orderOverNames, timeless: true,
			demands: "the order holds over all wanted names of a queue"},
		{rule: "Q2", name: "release-keeps-place", run: orderRelease, timeless: true,
			demands: "a released job keeps its place, at the head and in the middle"},
		{rule: "Q2", name: "retry-to-the-tail", run: orderRetry,
			demands: "a retried job goes to the tail of its priority, by its delay or at once"},
		{rule: "Q2", name: "snooze-to-the-tail", run: orderSnooze,
			demands: "a snoozed job goes to the tail of its priority, by its delay or at once"},
		{rule: "Q2", name: "due-to-the-tail", run: orderDue,
			demands: "a job that comes due goes to the tail of its priority, not back to its insertion"},
		{rule: "Q2", name: "stalled-to-the-tail", run: orderStalled,
			demands: "a job that comes back from a stall goes to the tail of its priority"},
		{rule: "Q2", name: "promoted-to-the-tail", run: orderPromoted, needs: []Capability{CapAdmin},
			demands: "a promoted job goes to the tail of its priority"},
		{rule: "Q2", name: "admin-retry-to-the-tail", run: orderAdminRetry, needs: []Capability{CapAdmin}, timeless: true,
			demands: "a job that an operator retries goes to the tail of its priority"},
		{rule: "Q2", name: "priority-over-place", run: orderPriorityOverPlace,
			demands: "a new place is one within the job's priority"},
	}
}

func orderPriority(k *kit) {
	for _, p := range []int{0, -9, 5, 9, 0, -1, 5, 9, -9} {
		k.add("", prio(p), payload([]byte(fmt.Sprint(p))))
	}
	c := k.claim(want(4))
	c.Jobs = append(c.Jobs, k.claim(want(100)).Jobs...)
	got := make([]int, len(c.Jobs))
	for i, j := range c.Jobs {
		got[i] = j.Priority
		k.sameBytes("payload", j.Payload, []byte(fmt.Sprint(j.Priority)))
	}
	eqs(k, "priorities in the order of claims", got, []int{9, 9, 5, 5, 0, 0, -1, -9, -9})
}

func orderFIFO(k *kit) {
	ids := []string{"z", "a", "10", "9", "m", "B", "b", "0", "é", "~"}
	for i := range 30 {
		ids = append(ids, fmt.Sprintf("n%d", 30-i))
	}
	k.addAll(ids...)
	var got []string
	for _, n := range []int{1, 2, 1, 7, 3, 100} {
		got = append(got, k.claim(want(n)).ids()...)
	}
	eqs(k, "order of claims", got, ids)
}

func orderOverNames(k *kit) {
	k.add("a", named("one"))
	k.add("b", named("two"))
	k.add("c", named("one"))
	k.add("d", named("two"), prio(1))
	k.add("e", named("one"))
	c := k.claim(core.Want{Queue: theQueue, Names: []string{"two", "one"}, Limit: 4})
	eqs(k, "order of claims", c.ids(), []string{"d", "a", "b", "c"})
}

func orderRelease(k *kit) {
	k.addAll("a", "b", "c", "d")
	c := k.claim(want(3))
	k.end(held1(c, 1), core.OutcomeRelease, core.StateWaiting)
	k.end(held1(c, 0), core.OutcomeRelease, core.StateWaiting)
	k.add("e")
	k.drain("jobs after two releases", "a", "b", "d", "e")
}

func orderRetry(k *kit) { orderAfter(k, core.OutcomeRetry) }

func orderSnooze(k *kit) { orderAfter(k, core.OutcomeSnooze) }

// orderAfter puts one job back at once and one by a delay, and looks where they went.
func orderAfter(k *kit, outcome core.Outcome) {
	k.addAll("a", "b", "c")
	k.end(k.takeID("a"), outcome, core.StateWaiting)
	k.endIn(k.takeID("b"), outcome, time.Second, core.StateDelayed)
	k.add("d")
	k.advance(time.Second)
	k.drain("jobs after "+string(outcome), "c", "a", "d", "b")
}

func orderDue(k *kit) {
	k.add("old", delay(time.Hour))
	k.add("older", delay(30*time.Minute))
	k.addAll("a", "b")
	k.advance(time.Hour)
	k.drain("jobs after two came due, the earlier of them first", "a", "b", "older", "old")
}

func orderStalled(k *kit) {
	k.addAll("a", "b", "c")
	k.takeFor(time.Second)
	k.advance(time.Second)
	k.swept("a")
	k.add("d")
	k.advance(time.Hour)
	k.drain("jobs after a stall", "b", "c", "d", "a")
}

func orderPromoted(k *kit) {
	k.add("a", delay(time.Hour))
	k.addAll("b", "c")
	k.ok("Promote", k.admin.Promote(k.ctx, "a"))
	k.add("d")
	k.drain("jobs after a promotion", "b", "c", "a", "d")
}

func orderAdminRetry(k *kit) {
	k.addAll("a", "b")
	k.end(k.takeID("a"), core.OutcomeFail, core.StateFailed)
	k.add("c")
	k.ok("Retry", k.admin.Retry(k.ctx, "a"))
	k.add("d")
	k.drain("jobs after a retry", "b", "c", "a", "d")
}

func orderPriorityOverPlace(k *kit) {
	k.add("low", prio(-1))
	k.add("high", prio(1))
	k.add("mid")
	k.end(k.takeID("high"), core.OutcomeRetry, core.StateWaiting)
	k.end(k.takeID("high"), core.OutcomeRelease, core.StateWaiting)
	k.add("due", prio(2), delay(time.Second))
	k.advance(time.Second)
	k.drain("jobs", "due", "high", "mid", "low")
}
