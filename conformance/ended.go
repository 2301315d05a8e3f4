package conformance

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// endedCases say what a call does whose context had ended before it: nothing.
func endedCases() []testCase {
	const rule = "Guarantees"
	const demands = "a call whose context had ended does nothing and says so: its error wraps the context's and core.ErrUnavailable"
	return []testCase{
		{rule: rule, name: "enqueue", run: endedEnqueue, demands: demands, timeless: true},
		{rule: rule, name: "claim", run: endedClaim, demands: demands, timeless: true},
		{rule: rule, name: "extend", run: endedExtend, demands: demands},
		{rule: rule, name: "ack", run: endedAck, demands: demands, timeless: true},
		{rule: rule, name: "recover", run: endedRecover, demands: demands},
		{rule: rule, name: "await", run: endedAwait, timeless: true,
			demands: "an AwaitWake whose context had ended returns its error"},
		{rule: rule, name: "inspect", run: endedInspect, needs: []Capability{CapInspector}, timeless: true,
			demands: "an inspector's answer to a call whose context had ended is the context's error"},
		{rule: rule, name: "admin", run: endedAdmin, needs: []Capability{CapAdmin}, timeless: true,
			demands: "an operator's call whose context had ended returns the context's error and changes nothing"},
	}
}

// endedContexts are contexts that ended, each its own way.
func (k *kit) endedContexts() []context.Context {
	cancelled, cancel := context.WithCancel(k.ctx)
	cancel()
	late, cancel := context.WithDeadline(k.ctx, time.Now().Add(-time.Hour))
	cancel()
	caused, because := context.WithCancelCause(k.ctx)
	because(errors.New("for a reason of its own"))
	return []context.Context{cancelled, late, caused}
}

// refuses checks that a method returns the error of a context that had ended, and others beside it.
func (k *kit) refuses(m method, beside ...error) {
	k.Helper()
	for _, ctx := range k.endedContexts() {
		err := m.call(ctx)
		for _, target := range append(beside, ctx.Err()) {
			k.is(m.name+" with a context that had ended", err, target)
		}
	}
}

// undone checks that the named writes are refused, and that they say that nothing was done.
func (k *kit) undone(l core.Lease, names ...string) {
	k.Helper()
	for _, m := range k.writes(l) {
		if slices.Contains(names, m.name) {
			k.refuses(m, core.ErrUnavailable)
		}
	}
}

func endedEnqueue(k *kit) {
	k.undone(core.Lease{}, "Enqueue")
	k.gone("new")
	k.total(0)
	k.none("nothing was enqueued")
	k.addAll("new", "later")
	k.drain("jobs", "new", "later")
}

func endedClaim(k *kit) {
	k.addAll("a", "b")
	h := k.takeID("a")
	k.undone(h.lease, "Claim", "Claim without wants")
	eq(k, "fence of the job that was not claimed", k.takeID("b").Fence, 1)
}

func endedExtend(k *kit) {
	k.add("a")
	h := k.takeFor(time.Second)
	k.undone(h.lease, "Extend")
	k.advance(time.Second)
	k.swept("a")
}

func endedAck(k *kit) {
	k.add("a")
	h := k.take()
	k.undone(h.lease, "Ack")
	k.wantState("a", core.StateActive)
	k.holds(h.lease)
	k.end(h, core.OutcomeRetry, core.StateWaiting) // ErrLeaseLost if it were completed
	eq(k, "attempts", k.takeID("a").Attempts, 1)
}

func endedRecover(k *kit) {
	k.add("a")
	h := k.takeFor(0)
	k.undone(h.lease, "RecoverStalled")
	k.advance(time.Hour)
	confirm := core.RecoverRequest{MaxStalls: 5, Confirm: time.Hour}
	eq(k, "jobs taken by the first sweep that sees the lease", len(k.sweep(confirm)), 0)
	k.holds(h.lease)
}

func endedAwait(k *kit) {
	token := k.claim(want(1)).Wake
	for _, queues := range [][]string{{theQueue}, nil} {
		for _, ctx := range k.endedContexts() {
			got := k.must("a context that had ended", k.awaitIn(ctx, queues, token))
			k.is("AwaitWake with a context that had ended", got.err, ctx.Err())
		}
	}
}

func endedInspect(k *kit) {
	k.add("a")
	for _, m := range k.reads("a") {
		k.refuses(m)
	}
	k.wantState("a", core.StateWaiting)
}

func endedAdmin(k *kit) {
	k.setVerbs()
	for _, m := range k.verbs() {
		k.refuses(m)
	}
	k.wantState(verbFailed, core.StateFailed)
	k.wantState(verbWaiting, core.StateWaiting)
	k.wantState(verbDelayed, core.StateDelayed)
	k.wantPaused(verbPaused)
	k.takeID(verbWaiting)
	k.none("nothing else was made waiting")
}

// setVerbs makes the jobs and queues that verbs would change.
func (k *kit) setVerbs() {
	k.Helper()
	k.add(verbFailed)
	k.end(k.takeID(verbFailed), core.OutcomeFail, core.StateFailed)
	k.add(verbWaiting)
	k.add(verbDelayed, delay(24*time.Hour))
	k.pause(verbPaused)
}
