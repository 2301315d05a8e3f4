package conformance

import (
	"time"

	"github.com/stintmq/stint/core"
)

func adminCases() []testCase {
	needs := []Capability{CapAdmin}
	return []testCase{
		{rule: "Q8", name: "retry", run: adminRetry, needs: needs,
			demands: "Retry makes a failed or cancelled job waiting: budgets reset, ends cleared; fence, runs, snoozes and ledger kept"},
		{rule: "Q8", name: "retry-refused", run: adminRetryRefused, needs: needs,
			demands: "Retry of a job that neither failed nor was cancelled is a StateError, of an unknown one ErrNotFound"},
		{rule: "Q8", name: "promote", run: adminPromote, needs: needs,
			demands: "Promote makes a delayed job waiting with RunAt = now"},
		{rule: "Q8", name: "promote-refused", run: adminPromoteRefused, needs: needs,
			demands: "Promote of any job that is not delayed, due ones included, is a StateError, of an unknown one ErrNotFound"},
		{rule: "Q8", name: "remove", run: adminRemove, needs: needs,
			demands: "Remove deletes any job but an active one with its ledger; false for active and unknown ones"},
		{rule: "Q8", name: "remove-frees-the-id", run: adminRemoveFrees, needs: needs, timeless: true,
			demands: "a removed job's id is free: a new job under it starts from nothing"},
		{rule: "Q8", name: "other-handle", run: adminOtherHandle, needs: []Capability{CapAdmin, CapOpen}, timeless: true,
			demands: "admin verbs through one handle hold for all"},
	}
}

// stateError checks a StateError and that it names the job, its state and the verb.
func (k *kit) stateError(op, id string, state core.State, err error) {
	k.Helper()
	e := wantError[*core.StateError](k, op+" of a "+string(state)+" job", err)
	eq(k, "StateError", *e, core.StateError{ID: id, State: state, Op: op})
}

func adminRetry(k *kit) {
	k.add("a")
	k.end(k.takeID("a"), core.OutcomeSnooze, core.StateWaiting)
	k.takeFor(0)
	k.swept("a")
	k.advance(time.Hour)
	k.ack(core.Ack{Lease: k.takeID("a").lease, Outcome: core.OutcomeFail, Failure: &core.Failure{Message: "boom"}})
	k.advance(time.Second)
	fresh := func(fence int64, runs int) held {
		k.Helper()
		k.ok("Retry", k.admin.Retry(k.ctx, "a"))
		k.look("a", func(r core.Record) {
			eq(k, "state", r.State, core.StateWaiting)
			eq(k, "failure", r.Failure, nil)
			k.sameResult("result", r.Result, nil)
			eq(k, "CancelRequested", r.CancelRequested, false)
			k.wantTime("ClaimedAt", r.ClaimedAt, time.Time{})
			k.wantTime("FinishedAt", r.FinishedAt, time.Time{})
		})
		h := k.takeID("a")
		k.wantTime("RunAt", h.RunAt, k.now())
		eq(k, "attempts", h.Attempts, 0)
		eq(k, "stalls", h.Stalls, 0)
		eq(k, "snoozes, which are kept", h.Snoozes, 1)
		eq(k, "runs, which are kept", h.Runs, runs)
		eq(k, "fence, which is kept", h.Fence, fence)
		return h
	}
	h := fresh(4, 2)
	k.cancel("a", core.StateActive)
	k.end(h, core.OutcomeCancel, core.StateCancelled)
	h = fresh(5, 3)
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	k.wantLedger("a", core.OutcomeStalled, core.OutcomeFail, core.OutcomeCancel, core.OutcomeComplete)
	k.look("a", func(r core.Record) { eq(k, "attempts", r.Attempts, 1) })
}

func adminRetryRefused(k *kit) {
	retry := func(state core.State) {
		k.Helper()
		k.stateError("retry", "a", state, k.admin.Retry(k.ctx, "a"))
	}
	k.is("Retry of an unknown job", k.admin.Retry(k.ctx, "a"), core.ErrNotFound)
	k.add("a", delay(time.Second))
	retry(core.StateDelayed)
	k.advance(time.Second)
	retry(core.StateWaiting)
	h := k.take()
	retry(core.StateActive)
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	retry(core.StateCompleted)
	k.wantState("a", core.StateCompleted)
	k.none("it is completed")
}

func adminPromote(k *kit) {
	k.add("a", delay(time.Minute))
	k.advance(time.Second)
	k.ok("Promote", k.admin.Promote(k.ctx, "a"))
	k.wantState("a", core.StateWaiting)
	h := k.takeID("a")
	k.wantTime("RunAt", h.RunAt, k.now())
	k.endIn(h, core.OutcomeRetry, time.Minute, core.StateDelayed)
	k.ok("Promote of a retried job", k.admin.Promote(k.ctx, "a"))
	k.takeID("a")
}

func adminPromoteRefused(k *kit) {
	promote := func(state core.State) {
		k.Helper()
		k.stateError("promote", "a", state, k.admin.Promote(k.ctx, "a"))
	}
	k.is("Promote of an unknown job", k.admin.Promote(k.ctx, "a"), core.ErrNotFound)
	k.add("a", delay(time.Second))
	k.advance(time.Second)
	promote(core.StateWaiting) // due, whether moved or not
	h := k.take()
	promote(core.StateActive)
	k.end(h, core.OutcomeRelease, core.StateWaiting)
	promote(core.StateWaiting)
	k.end(k.take(), core.OutcomeFail, core.StateFailed)
	promote(core.StateFailed)
}

func adminRemove(k *kit) {
	remove := func(id string, want bool) {
		k.Helper()
		got, err := k.admin.Remove(k.ctx, id)
		k.ok("Remove", err)
		eq(k, "Remove of "+id, got, want)
		if want {
			k.gone(id)
			again, err := k.admin.Remove(k.ctx, id)
			k.ok("Remove", err)
			eq(k, "Remove of "+id+", which is gone", again, false)
		}
	}
	remove("nobody", false)
	k.add("waiting")
	remove("waiting", true)
	k.add("delayed", delay(time.Second))
	remove("delayed", true)
	k.add("due", delay(time.Second))
	k.advance(time.Second)
	remove("due", true)
	c := k.none("everything was removed")
	eq(k, "NextIn", c.NextIn, 0)
	for outcome, id := range map[core.Outcome]string{
		core.OutcomeComplete: "completed", core.OutcomeFail: "failed", core.OutcomeCancel: "cancelled",
	} {
		k.add(id)
		h := k.takeID(id)
		remove(id, false)
		k.holds(h.lease)
		k.ack(core.Ack{Lease: h.lease, Outcome: outcome})
		remove(id, true)
	}
	k.total(0)
}

func adminRemoveFrees(k *kit) {
	k.add("a", payload([]byte("old")))
	k.end(k.takeID("a"), core.OutcomeRetry, core.StateWaiting)
	k.end(k.takeID("a"), core.OutcomeFail, core.StateFailed)
	removed, err := k.admin.Remove(k.ctx, "a")
	k.ok("Remove", err)
	eq(k, "removed", removed, true)
	k.add("a", payload([]byte("new")), named("other"))
	k.wantLedger("a")
	c := k.claim(core.Want{Queue: theQueue, Names: []string{"other"}, Limit: 1})
	eqs(k, "jobs", c.ids(), []string{"a"})
	k.sameBytes("payload", c.Jobs[0].Payload, []byte("new"))
	eq(k, "attempts", c.Jobs[0].Attempts, 0)
	eq(k, "runs", c.Jobs[0].Runs, 0)
	eq(k, "fence", c.Jobs[0].Fence, 1)
}

func adminOtherHandle(k *kit) {
	o := k.other()
	k.add("a", delay(time.Hour))
	k.ok("Promote", o.admin.Promote(k.ctx, "a"))
	h := k.takeID("a")
	o.cancel("a", core.StateActive)
	x := k.extend(time.Minute, h.lease)
	eqs(k, "CancelRequested", leaseIDs(x.CancelRequested), []string{"a"})
	k.end(h, core.OutcomeFail, core.StateFailed)
	k.ok("Retry", o.admin.Retry(k.ctx, "a"))
	k.takeID("a")
}
