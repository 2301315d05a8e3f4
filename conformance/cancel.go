package conformance

import (
	"time"

	"github.com/stintmq/stint/core"
)

func cancelCases() []testCase {
	needs := []Capability{CapAdmin}
	return []testCase{
		{rule: "Q8", name: "pending", run: cancelPending, needs: needs,
			demands: "Cancel ends a waiting or delayed job at once; its ledger entry has no start"},
		{rule: "Q8", name: "active", run: cancelActive, needs: needs, timeless: true,
			demands: "Cancel of an active job only asks: it stays active, and each heartbeat reports it"},
		{rule: "Q8", name: "refused", run: cancelRefused, needs: needs, timeless: true,
			demands: "Cancel of a finished job is a StateError, of an unknown one ErrNotFound"},
		{rule: "Q6", name: "every-outcome", run: cancelOutcomes, needs: needs, timeless: true,
			demands: "with a pending cancel Complete and Fail win; Retry, Release and Snooze become cancelled and cost no attempt"},
		{rule: "Q5", name: "foreign-token", run: cancelForeignToken, needs: needs, timeless: true,
			demands: "a pending cancel gives no right to a foreign token, and survives it"},
		{rule: "Q21", name: "extended", run: cancelExtended, needs: needs,
			demands: "a lease whose job has a pending cancel is extended like any other, and reported each time"},
		{rule: "Q9", name: "after-a-run", run: cancelAfterRun, needs: needs,
			demands: "a job that ran before and is cancelled while it waits ends without a start"},
	}
}

// cancel cancels a job and checks the state that is answered.
func (k *kit) cancel(id string, want core.State) {
	k.Helper()
	got, err := k.admin.Cancel(k.ctx, id)
	k.ok("Cancel of "+id, err)
	eq(k, "state answered to Cancel of "+id, got, want)
	k.wantState(id, want)
}

func cancelPending(k *kit) {
	k.add("waiting")
	k.add("delayed", delay(time.Minute))
	k.add("due", delay(time.Second))
	k.advance(time.Second)
	for _, id := range []string{"waiting", "delayed", "due"} {
		k.cancel(id, core.StateCancelled)
		k.look(id, func(r core.Record) {
			k.wantTime("FinishedAt", r.FinishedAt, k.now())
			k.wantTime("ClaimedAt", r.ClaimedAt, time.Time{})
			eq(k, "attempts", r.Attempts, 0)
			eq(k, "CancelRequested", r.CancelRequested, false)
			a := k.attempts(id)[0]
			k.wantTime("StartedAt", a.StartedAt, time.Time{})
			k.wantTime("FinishedAt", a.FinishedAt, k.now())
			eq(k, "worker", a.Worker, "")
		})
		k.wantLedger(id, core.OutcomeCancel)
	}
	c := k.none("all are cancelled")
	eq(k, "NextIn", c.NextIn, 0)
	k.advance(time.Hour)
	k.none("all are cancelled")
}

func cancelActive(k *kit) {
	k.add("a")
	h := k.take()
	for range 3 {
		k.cancel("a", core.StateActive)
		k.look("a", func(r core.Record) { eq(k, "CancelRequested", r.CancelRequested, true) })
		x := k.extend(time.Minute, h.lease)
		eqs(k, "CancelRequested", leaseIDs(x.CancelRequested), []string{"a"})
		eq(k, "Lost", len(x.Lost), 0)
	}
	k.wantLedger("a")
	k.end(h, core.OutcomeCancel, core.StateCancelled)
	k.look("a", func(r core.Record) { eq(k, "CancelRequested", r.CancelRequested, false) })
	k.wantLedger("a", core.OutcomeCancel)
}

func cancelRefused(k *kit) {
	_, err := k.admin.Cancel(k.ctx, "nobody")
	k.is("Cancel of an unknown job", err, core.ErrNotFound)
	for outcome, state := range map[core.Outcome]core.State{
		core.OutcomeComplete: core.StateCompleted, core.OutcomeFail: core.StateFailed, core.OutcomeCancel: core.StateCancelled,
	} {
		id := k.add(string(outcome))
		k.end(k.takeID(id), outcome, state)
		_, err := k.admin.Cancel(k.ctx, id)
		k.stateError("cancel", id, state, err)
		k.wantState(id, state)
		k.wantLedger(id, outcome)
	}
}

func cancelOutcomes(k *kit) {
	for _, c := range []struct {
		outcome  core.Outcome
		state    core.State
		attempts int
	}{
		{core.OutcomeComplete, core.StateCompleted, 1},
		{core.OutcomeFail, core.StateFailed, 1},
		{core.OutcomeCancel, core.StateCancelled, 0},
		{core.OutcomeRetry, core.StateCancelled, 0},
		{core.OutcomeRelease, core.StateCancelled, 0},
		{core.OutcomeSnooze, core.StateCancelled, 0},
	} {
		id := k.add(string(c.outcome))
		h := k.takeID(id)
		k.cancel(id, core.StateActive)
		st := k.ack(core.Ack{Lease: h.lease, Outcome: c.outcome, Delay: time.Hour, Result: []byte("r"), Failure: &core.Failure{Message: "f"}})
		eq(k, "state answered to "+string(c.outcome), st, c.state)
		k.look(id, func(r core.Record) {
			eq(k, "state", r.State, c.state)
			eq(k, "attempts after "+string(c.outcome), r.Attempts, c.attempts)
			eq(k, "snoozes", r.Snoozes, 0)
			eq(k, "CancelRequested", r.CancelRequested, false)
			eq(k, "has a result", r.Result != nil, c.state == core.StateCompleted)
			eq(k, "has a failure", r.Failure != nil, c.state == core.StateFailed)
			k.wantTime("FinishedAt", r.FinishedAt, k.nowOrAny())
		})
		outcome := c.outcome
		if c.state == core.StateCancelled {
			outcome = core.OutcomeCancel
		}
		k.wantLedger(id, outcome)
	}
	k.none("all have ended")
}

func cancelForeignToken(k *kit) {
	k.add("a")
	h := k.take()
	k.cancel("a", core.StateActive)
	k.refused(core.Lease{ID: "a", Token: core.NewToken(), Ref: h.Ref}, core.OutcomeCancel, core.ErrLeaseLost)
	k.wantState("a", core.StateActive)
	x := k.extend(time.Minute, core.Lease{ID: "a", Token: core.NewToken(), Ref: h.Ref}, h.lease)
	eq(k, "leases lost", len(x.Lost), 1)
	eqs(k, "CancelRequested", x.CancelRequested, []core.Lease{h.lease})
	k.end(h, core.OutcomeRelease, core.StateCancelled)
}

func cancelExtended(k *kit) {
	k.addAll("a", "b")
	a, b := k.takeFor(time.Second), k.takeFor(time.Second)
	k.cancel("a", core.StateActive)
	for range 3 {
		x := k.extend(time.Second, a.lease, b.lease)
		eqs(k, "CancelRequested", x.CancelRequested, []core.Lease{a.lease})
		k.advance(time.Second - time.Microsecond)
		k.swept()
	}
	k.end(a, core.OutcomeComplete, core.StateCompleted)
}

func cancelAfterRun(k *kit) {
	k.add("a")
	k.endIn(k.take(), core.OutcomeRetry, time.Minute, core.StateDelayed)
	k.advance(time.Second)
	k.cancel("a", core.StateCancelled)
	k.wantLedger("a", core.OutcomeRetry, core.OutcomeCancel)
	k.look("a", func(r core.Record) {
		eq(k, "attempts", r.Attempts, 1)
		k.wantTime("ClaimedAt", r.ClaimedAt, time.Time{})
		k.wantTime("StartedAt of the cancel", k.attempts("a")[1].StartedAt, time.Time{})
	})
}
