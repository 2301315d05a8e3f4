package conformance

import (
	"time"

	"github.com/stintmq/stint/core"
)

// realClockCases run on the store's own clock. They wait by asking the store again until it says so, and only
// demand what holds on any machine however slow: nothing happens early, and in the end it happens.
func realClockCases() []testCase {
	return []testCase{
		{rule: "Q3", name: "delay", run: realDelay,
			demands: "a delayed job is not handed out before its delay is over, and is after it"},
		{rule: "Q3", name: "run-at", run: realRunAt,
			demands: "a RunAt that has passed by the store's clock is now"},
		{rule: "Q4", name: "next-in", run: realNextIn,
			demands: "asking again after NextIn finds the job that was delayed"},
		{rule: "Q6", name: "retry", run: realRetry,
			demands: "a retried job comes back after its delay"},
		{rule: "Q7", name: "lease-ends", run: realLease,
			demands: "a lease ends by the store's clock, and is taken back then"},
		{rule: "Q7", name: "confirm", run: realConfirm,
			demands: "a suspect lease is taken back by a sweep that comes Confirm later"},
		{rule: "Q5", name: "heartbeats", run: realHeartbeats,
			demands: "a lease that is extended in time is not taken back"},
		{rule: "Q13", name: "times", run: realTimes, needs: []Capability{CapInspector},
			demands: "times are in UTC, in whole microseconds, and in the order of what happened"},
		{rule: "Q15", name: "wake", run: realWake, needs: []Capability{CapWake},
			demands: "an enqueue wakes long before any poll"},
	}
}

// tick is how often a real-clock case asks again.
const tick = 2 * time.Millisecond

// until asks again and again until done says so.
func (k *kit) until(what string, done func() bool) {
	k.Helper()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-k.ctx.Done():
			k.failf("%s: never happened", what)
		}
	}
}

// claimed asks until one default job is claimable, and checks that this took at least d since start.
func (k *kit) claimed(what string, start time.Time, d time.Duration) held {
	k.Helper()
	var c claims
	k.until(what, func() bool {
		c = k.claim(want(1))
		return len(c.Jobs) > 0
	})
	if took := time.Since(start); took < d-slack {
		k.failf("%s: claimed after %v, its delay is %v", what, took, d)
	}
	return held1(c, 0)
}

// slack is how much faster the store's clock may run over a case than the suite's.
const slack = 2 * time.Millisecond

func realDelay(k *kit) {
	start := time.Now()
	k.add("a", delay(400*time.Millisecond)) // far enough behind b on a slow machine, too
	k.add("b", delay(20*time.Millisecond))
	eq(k, "first to come due", k.claimed("delayed job", start, 20*time.Millisecond).ID, "b")
	eq(k, "second to come due", k.claimed("delayed job", start, 400*time.Millisecond).ID, "a")
}

func realRunAt(k *kit) {
	k.add("past", runAt(time.Now().Add(-time.Hour)))
	k.add("future", runAt(time.Now().Add(24*time.Hour)))
	h := k.takeID("past")
	if h.RunAt.Before(h.EnqueuedAt) {
		k.failf("RunAt %v is before EnqueuedAt %v", h.RunAt, h.EnqueuedAt)
	}
	c := k.none("it is due tomorrow")
	wantNextIn(k, "due tomorrow", c, 25*time.Hour)
}

func realNextIn(k *kit) {
	const d = 30 * time.Millisecond
	k.add("a", delay(d))
	for range 1000 {
		c := k.claim(want(1))
		if len(c.Jobs) == 1 {
			return
		}
		wantNextIn(k, "delayed", c, d)
		again := time.NewTimer(c.NextIn)
		select {
		case <-again.C:
		case <-k.ctx.Done():
			again.Stop()
		}
	}
	k.failf("claimed 1,000 times, each NextIn later, and the job never came")
}

func realRetry(k *kit) {
	k.add("a")
	for _, outcome := range []core.Outcome{core.OutcomeRetry, core.OutcomeSnooze} {
		h := k.takeID("a")
		start := time.Now()
		k.ack(core.Ack{Lease: h.lease, Outcome: outcome, Delay: 20 * time.Millisecond})
		h = k.claimed(string(outcome), start, 20*time.Millisecond)
		k.ack(core.Ack{Lease: h.lease, Outcome: core.OutcomeRelease})
	}
}

func realLease(k *kit) {
	k.add("a")
	start := time.Now()
	h := k.takeFor(30 * time.Millisecond)
	k.until("lease taken back", func() bool { return len(k.sweep(core.RecoverRequest{MaxStalls: 3})) == 1 })
	if took := time.Since(start); took < 30*time.Millisecond-slack {
		k.failf("a lease of 30ms was taken back after %v", took)
	}
	k.lost(h.lease)
	stalled := time.Now()
	again := k.claimed("stalled job", stalled, 0)
	eq(k, "stalls", again.Stalls, 1)
	eq(k, "fence", again.Fence, 2)
}

func realConfirm(k *kit) {
	k.add("a")
	start := time.Now()
	h := k.takeFor(10 * time.Millisecond)
	confirm := core.RecoverRequest{MaxStalls: 3, Confirm: 30 * time.Millisecond}
	k.until("lease taken back", func() bool { return len(k.sweep(confirm)) == 1 })
	if took := time.Since(start); took < 40*time.Millisecond-slack {
		k.failf("a lease of 10ms was taken back after %v, which is less than 30ms after its end", took)
	}
	k.lost(h.lease)
}

func realHeartbeats(k *kit) {
	k.add("a")
	h := k.takeFor(5 * time.Second)
	start := time.Now()
	k.until("heartbeats", func() bool {
		x := k.extend(5*time.Second, h.lease)
		eq(k, "Lost", len(x.Lost), 0)
		k.swept()
		return time.Since(start) > 50*time.Millisecond
	})
	k.end(h, core.OutcomeComplete, core.StateCompleted)
}

func realTimes(k *kit) {
	k.add("a")
	h := k.take()
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	r := k.get("a")
	for what, t := range map[string]time.Time{
		"EnqueuedAt": r.EnqueuedAt, "RunAt": r.RunAt, "ClaimedAt": r.ClaimedAt, "FinishedAt": r.FinishedAt,
	} {
		k.wantTime(what, t, time.Now())
	}
	if r.RunAt.Before(r.EnqueuedAt) || r.ClaimedAt.Before(r.RunAt) || r.FinishedAt.Before(r.ClaimedAt) {
		k.failf("times are out of order: enqueued %v, due %v, claimed %v, finished %v", r.EnqueuedAt, r.RunAt, r.ClaimedAt, r.FinishedAt)
	}
	a := k.attempts("a")[0]
	if !a.StartedAt.Equal(r.ClaimedAt) || !a.FinishedAt.Equal(r.FinishedAt) {
		k.failf("the ledger has other times than the record: %+v, %+v", a, r)
	}
}

func realWake(k *kit) {
	c := k.none("nothing was enqueued")
	w := k.await([]string{theQueue}, c.Wake)
	w.stays()
	k.add("a")
	k.woken("enqueue", w)
	k.takeID("a")
}
