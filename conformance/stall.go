package conformance

import (
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func stallCases() []testCase {
	return []testCase{
		{rule: "Q7", name: "boundary", run: stallBoundary,
			demands: "a lease has ended when until <= now, and not a microsecond before"},
		{rule: "Q7", name: "taken", run: stallTaken,
			demands: "a job taken back is delayed with Stalls + 1; its token is worth nothing and no attempt was used"},
		{rule: "Q7", name: "confirm", run: stallConfirm,
			demands: "a first sweep only marks an ended lease; one at least Confirm later takes it"},
		{rule: "Q7", name: "confirm-extended", run: stallConfirmExtended,
			demands: "an extension between the two steps clears the suspicion: the next end needs two sweeps again"},
		{rule: "Q7", name: "confirm-acked", run: stallConfirmAcked,
			demands: "an ack between the two steps is honoured, and the job's next lease starts unsuspected"},
		{rule: "Q7", name: "confirm-zero-after-mark", run: stallConfirmZero,
			demands: "with Confirm 0 an ended lease is taken at once, marked or not"},
		{rule: "Q7", name: "request-limit", run: stallRequestLimit,
			demands: "the request's MaxStalls holds for jobs without a limit of their own: one stall more fails the job"},
		{rule: "Q7", name: "own-limit", run: stallOwnLimit,
			demands: "a job's own MaxStalls wins over the request's; negative tolerates none"},
		{rule: "Q7", name: "failed", run: stallFailed,
			demands: "past its limit a job fails with a reason, like any other end"},
		{rule: "Q7", name: "limit", run: stallLimit,
			demands: "at most Limit jobs per call, those whose lease ended first"},
		{rule: "Q7", name: "default-limit", run: stallDefaultLimit, limit: 60 * time.Second,
			demands: "Limit 0 takes up to 1,000 jobs per call"},
		{rule: "Q7", name: "backoff", run: stallBackoff,
			demands: "the delay after a stall is positive, grows with the stalls and never exceeds 1.25 times 5 minutes"},
		{rule: "Q7", name: "attempts", run: stallAttempts,
			demands: "stalls never consume attempts, and runs never consume stalls"},
		{rule: "Q7", name: "answer", run: stallAnswer,
			demands: "everything taken is listed with its name, its queue and what became of it"},
		{rule: "Q7", name: "any-queue", run: stallAnyQueue, needs: []Capability{CapAdmin},
			demands: "a sweep needs no names and no leader: it takes jobs of any queue, paused ones too, through any handle"},
		{rule: "Q7", name: "pending-cancel", run: stallCancel, needs: []Capability{CapAdmin},
			demands: "a taken job with a pending cancel is cancelled, Stalls unchanged, whatever its limit"},
		{rule: "Q7", name: "nothing", run: stallNothing,
			demands: "waiting, delayed, finished and running jobs are not the sweep's"},
	}
}

func stallBoundary(k *kit) {
	k.add("a")
	h := k.takeFor(time.Second)
	k.advance(time.Second - time.Microsecond)
	k.swept()
	k.holds(h.lease)
	k.advance(time.Microsecond)
	k.swept("a")
	k.swept()
}

func stallTaken(k *kit) {
	k.add("a", maxStalls(5))
	h := k.takeFor(time.Second)
	k.advance(time.Second)
	got := k.swept("a")
	eq(k, "answer", got[0], core.Recovered{ID: "a", Name: theName, Queue: theQueue, State: core.StateDelayed})
	k.lost(h.lease)
	k.look("a", func(r core.Record) {
		eq(k, "state", r.State, core.StateDelayed)
		eq(k, "stalls", r.Stalls, 1)
		eq(k, "attempts", r.Attempts, 0)
		k.wantTime("ClaimedAt", r.ClaimedAt, time.Time{})
		k.wantTime("FinishedAt", r.FinishedAt, time.Time{})
		eq(k, "failure", r.Failure, nil)
		k.wantStallDelay(r.RunAt.Sub(k.now()), 1)
	})
	k.wantLedger("a", core.OutcomeStalled)
	k.none("it waits for its backoff")
	k.advance(1250 * time.Millisecond)
	again := k.takeID("a")
	eq(k, "stalls", again.Stalls, 1)
	eq(k, "attempts", again.Attempts, 0)
	eq(k, "runs", again.Runs, 1)
	eq(k, "fence", again.Fence, 2)
	k.end(again, core.OutcomeComplete, core.StateCompleted)
	k.wantLedger("a", core.OutcomeStalled, core.OutcomeComplete)
}

// wantStallDelay checks the wait after the n-th stall: 1 s, doubling, at most 5 min, give or take 25 %.
func (k *kit) wantStallDelay(got time.Duration, n int) {
	k.Helper()
	base := 5 * time.Minute
	if n < 10 {
		base = min(base, time.Second<<(n-1))
	}
	if got < base*3/4-time.Microsecond || got > base*5/4+time.Microsecond {
		k.failf("the wait after stall %d is %v, want %v give or take a quarter", n, got, base)
	}
}

func stallConfirm(k *kit) {
	k.add("a")
	h := k.takeFor(time.Second)
	confirm := core.RecoverRequest{MaxStalls: 5, Confirm: 10 * time.Second}
	none := func() {
		k.Helper()
		eqs(k, "jobs taken", recoveredIDs(k.sweep(confirm)), nil)
		k.wantState("a", core.StateActive)
		k.wantLedger("a")
	}
	none() // it runs
	k.advance(time.Second - time.Microsecond)
	none() // for a microsecond more
	k.advance(time.Microsecond)
	none() // marked now
	k.advance(10*time.Second - time.Microsecond)
	none() // too early by a microsecond, and must not mark anew
	k.advance(time.Microsecond)
	eqs(k, "jobs taken", recoveredIDs(k.sweep(confirm)), []string{"a"})
	k.lost(h.lease)
}

func stallConfirmExtended(k *kit) {
	k.add("a")
	h := k.takeFor(time.Second)
	confirm := core.RecoverRequest{MaxStalls: 5, Confirm: time.Second}
	k.advance(time.Second)
	eq(k, "jobs taken by the first sweep", len(k.sweep(confirm)), 0)
	k.extend(time.Second, h.lease)
	k.advance(time.Second)
	eq(k, "jobs taken by the first sweep after the extension ended", len(k.sweep(confirm)), 0)
	k.advance(time.Second)
	eq(k, "jobs taken by the second sweep after the extension ended", len(k.sweep(confirm)), 1)
	k.lost(h.lease)
}

func stallConfirmAcked(k *kit) {
	k.addAll("a", "b")
	a, b := k.takeFor(time.Second), k.takeFor(time.Second)
	confirm := core.RecoverRequest{MaxStalls: 5, Confirm: time.Second}
	k.advance(time.Second)
	eq(k, "jobs taken by the first sweep", len(k.sweep(confirm)), 0)
	k.end(a, core.OutcomeComplete, core.StateCompleted)
	k.end(b, core.OutcomeRelease, core.StateWaiting)
	b = k.takeFor(0)
	k.advance(time.Second)
	eq(k, "jobs taken by the first sweep after a new claim", len(k.sweep(confirm)), 0)
	k.holds(b.lease)
}

func stallConfirmZero(k *kit) {
	k.addAll("marked", "fresh")
	k.takeFor(time.Second)
	k.advance(time.Second)
	eq(k, "jobs taken by a first sweep", len(k.sweep(core.RecoverRequest{MaxStalls: 5, Confirm: time.Hour})), 0)
	k.takeFor(time.Second)
	k.advance(time.Second)
	k.swept("marked", "fresh")
}

// stallUntilFailed lets a job stall until it fails and returns the number of stalls.
func (k *kit) stallUntilFailed(id string, limit int) int {
	k.Helper()
	for n := 1; n <= 10; n++ {
		k.takeFor(time.Second)
		k.advance(time.Second)
		got := k.sweep(core.RecoverRequest{MaxStalls: limit})
		eqs(k, "jobs taken", recoveredIDs(got), []string{id})
		k.wantState(id, got[0].State)
		k.look(id, func(r core.Record) { eq(k, "stalls", r.Stalls, n) })
		if got[0].State == core.StateFailed {
			return n
		}
		eq(k, "state", got[0].State, core.StateDelayed)
		k.advance(time.Hour)
	}
	return 0
}

func stallRequestLimit(k *kit) {
	for _, c := range []struct{ limit, fails int }{{2, 3}, {1, 2}, {0, 1}, {-1, 1}, {-100, 1}} {
		id := k.add("")
		eq(k, fmt.Sprintf("stalls when the job failed, with MaxStalls %d", c.limit), k.stallUntilFailed(id, c.limit), c.fails)
		k.none("it failed")
	}
}

func stallOwnLimit(k *kit) {
	for _, c := range []struct{ own, request, fails int }{{1, 5, 2}, {3, 1, 4}, {2, 0, 3}, {-1, 5, 1}, {0, 1, 2}} {
		id := k.add("", maxStalls(c.own))
		eq(k, fmt.Sprintf("stalls when the job failed, with own limit %d and request %d", c.own, c.request),
			k.stallUntilFailed(id, c.request), c.fails)
	}
}

func stallFailed(k *kit) {
	k.add("a", maxStalls(1))
	eq(k, "stalls when the job failed", k.stallUntilFailed("a", 9), 2)
	k.wantLedger("a", core.OutcomeStalled, core.OutcomeStalled)
	k.look("a", func(r core.Record) {
		eq(k, "attempts", r.Attempts, 0)
		k.wantTime("FinishedAt", r.FinishedAt, k.now())
		k.wantTime("ClaimedAt", r.ClaimedAt, k.now().Add(-time.Second))
		if r.Failure == nil || r.Failure.Type != "stalled" || r.Failure.Message == "" {
			k.failf("the failure is %+v, want one of type stalled with a message", r.Failure)
		}
		last := k.attempts("a")[1]
		k.sameFailure("failure in the ledger", last.Failure, r.Failure)
	})
	k.advance(time.Hour)
	k.swept()
	k.none("it failed")
	if k.admin == nil {
		return
	}
	k.ok("Retry", k.admin.Retry(k.ctx, "a"))
	eq(k, "stalls after Retry", k.takeID("a").Stalls, 0)
}

func stallLimit(k *kit) {
	k.addAll("long", "short", "mid", "late")
	for _, d := range []int{40, 10, 20, 60} {
		k.takeFor(time.Duration(d) * time.Second)
	}
	k.advance(50 * time.Second)
	two := core.RecoverRequest{MaxStalls: 5, Limit: 2}
	eqs(k, "jobs taken first", recoveredIDs(k.sweep(two)), []string{"short", "mid"})
	eqs(k, "jobs taken then", recoveredIDs(k.sweep(two)), []string{"long"})
	eqs(k, "jobs taken at last", recoveredIDs(k.sweep(two)), nil)
	k.wantState("late", core.StateActive)
}

func stallDefaultLimit(k *kit) {
	const n = 1100
	reqs := make([]core.EnqueueRequest, n)
	for i := range reqs {
		reqs[i] = request("")
	}
	k.enqueue(reqs...)
	eq(k, "jobs claimed", len(k.claimFor(0, want(n)).Jobs), n)
	seen := map[string]bool{}
	for _, want := range []int{1000, 100, 0} {
		got := k.sweep(core.RecoverRequest{MaxStalls: 5})
		eq(k, "jobs taken", len(got), want)
		for _, r := range got {
			if seen[r.ID] {
				k.failf("%q was taken twice", r.ID)
			}
			seen[r.ID] = true
		}
	}
}

func stallBackoff(k *kit) {
	k.add("a")
	for n := 1; n <= 14; n++ {
		h := k.takeFor(0)
		eq(k, "stalls", h.Stalls, n-1)
		k.swept("a")
		k.look("a", func(r core.Record) { k.wantStallDelay(r.RunAt.Sub(k.now()), n) })
		wantNextIn(k, "after a stall", k.none("it waits for its backoff"), min(5*time.Minute, time.Second<<(n-1))*5/4)
		k.advance(5 * time.Minute * 5 / 4)
	}
}

func stallAttempts(k *kit) {
	k.add("a")
	k.end(k.takeID("a"), core.OutcomeRetry, core.StateWaiting)
	for range 2 {
		k.takeFor(0)
		k.swept("a")
		k.advance(time.Hour)
	}
	h := k.takeID("a")
	eq(k, "attempts", h.Attempts, 1)
	eq(k, "stalls", h.Stalls, 2)
	k.end(h, core.OutcomeRetry, core.StateWaiting)
	h = k.takeID("a")
	eq(k, "attempts", h.Attempts, 2)
	eq(k, "stalls", h.Stalls, 2)
	eq(k, "runs", h.Runs, 4)
	k.wantLedger("a", core.OutcomeRetry, core.OutcomeStalled, core.OutcomeStalled, core.OutcomeRetry)
}

func stallAnswer(k *kit) {
	k.add("a", named("one"), onQueue("left"))
	k.add("b", named("two"), onQueue("right"), maxStalls(-1))
	k.claimFor(time.Second, core.Want{Queue: "left", Names: []string{"one"}, Limit: 1})
	k.claimFor(2*time.Second, core.Want{Queue: "right", Names: []string{"two"}, Limit: 1})
	k.advance(2 * time.Second)
	eqs(k, "answer", k.sweep(core.RecoverRequest{MaxStalls: 3}), []core.Recovered{
		{ID: "a", Name: "one", Queue: "left", State: core.StateDelayed},
		{ID: "b", Name: "two", Queue: "right", State: core.StateFailed},
	})
}

func stallAnyQueue(k *kit) {
	k.add("a", onQueue("left"))
	k.add("b")
	k.claimFor(time.Second, wantFrom("left", 1))
	k.takeFor(2 * time.Second)
	k.ok("Pause", k.admin.Pause(k.ctx, "left"))
	k.advance(2 * time.Second)
	sweeper := k
	if k.suite.has[CapOpen] {
		sweeper = k.other()
	}
	sweeper.swept("a", "b")
}

func stallCancel(k *kit) {
	k.add("a")
	k.add("b", maxStalls(-1))
	k.takeFor(time.Second)
	k.takeFor(2 * time.Second)
	k.cancel("a", core.StateActive)
	k.cancel("b", core.StateActive)
	k.advance(2 * time.Second)
	for i, r := range k.swept("a", "b") {
		eq(k, "state answered", r.State, core.StateCancelled)
		k.look(r.ID, func(rec core.Record) {
			eq(k, "state", rec.State, core.StateCancelled)
			eq(k, "stalls", rec.Stalls, 0)
			eq(k, "attempts", rec.Attempts, 0)
			eq(k, "CancelRequested", rec.CancelRequested, false)
			k.wantTime("FinishedAt", rec.FinishedAt, k.now())
			k.wantTime("ClaimedAt", rec.ClaimedAt, k.now().Add(-2*time.Second))
		})
		k.wantLedger([]string{"a", "b"}[i], core.OutcomeCancel)
	}
	k.advance(time.Hour)
	k.none("both are cancelled")
}

func stallNothing(k *kit) {
	k.add("waiting")
	k.add("delayed", delay(time.Hour))
	k.add("done", prio(1))
	k.add("running", prio(1))
	k.end(k.takeID("done"), core.OutcomeComplete, core.StateCompleted)
	k.takeFor(24 * time.Hour)
	k.advance(30 * time.Minute)
	k.swept()
	k.wantCounts("", map[core.State]int64{
		core.StateWaiting: 1, core.StateDelayed: 1, core.StateCompleted: 1, core.StateActive: 1,
	})
}
