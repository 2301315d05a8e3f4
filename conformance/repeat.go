package conformance

import (
	"time"

	"github.com/stintmq/stint/core"
)

func repeatCases() []testCase {
	return []testCase{
		{rule: "Q5", name: "same-outcome", run: repeatSame, timeless: true,
			demands: "repeating an ack with the same outcome answers as the first time and changes nothing"},
		{rule: "Q5", name: "after-new-claims", run: repeatLater,
			demands: "a repeated ack is answered as long as its ledger entry lives, whatever became of the job since"},
		{rule: "Q5", name: "other-outcome", run: repeatOther, timeless: true,
			demands: "a second ack with another outcome gets ErrLeaseLost and changes nothing"},
		{rule: "Q5", name: "cancelled-instead", run: repeatCancelled, needs: []Capability{CapAdmin}, timeless: true,
			demands: "the repeat of an ack that a pending cancel overruled answers cancelled again"},
		{rule: "Q5", name: "inside-one-call", run: repeatInOneCall, timeless: true,
			demands: "one call may carry the same ack twice: both get the answer, the job moves once"},
		{rule: "Q5", name: "old-and-new-token", run: repeatOldAndNew,
			demands: "one call may carry an old and a new token of the same job, in any order"},
		{rule: "Q5", name: "after-removal", run: repeatRemoved, needs: []Capability{CapAdmin}, timeless: true,
			demands: "the repeat of an ack whose job was removed gets ErrNotFound"},
	}
}

func repeatSame(k *kit) {
	for outcome, c := range map[core.Outcome]struct {
		delay time.Duration
		state core.State
	}{
		core.OutcomeComplete: {0, core.StateCompleted},
		core.OutcomeFail:     {0, core.StateFailed},
		core.OutcomeCancel:   {0, core.StateCancelled},
		core.OutcomeRetry:    {time.Hour, core.StateDelayed},
	} {
		id := k.add(string(outcome))
		h := k.takeID(id)
		ack := core.Ack{Lease: h.lease, Outcome: outcome, Delay: c.delay, Result: []byte("first"), Failure: &core.Failure{Message: "first"}}
		eq(k, "first answer", k.ack(ack), c.state)
		var before core.Record
		k.look(id, func(r core.Record) { before = r })
		ack.Result, ack.Failure = []byte("second"), &core.Failure{Message: "second"}
		for range 2 {
			eq(k, "repeated answer to "+string(outcome), k.ack(ack), c.state)
		}
		k.look(id, func(r core.Record) { k.sameRecord("the job after a repeated ack", r, before) })
		k.wantLedger(id, outcome)
	}
}

func repeatLater(k *kit) {
	k.add("a")
	first := k.take()
	k.endIn(first, core.OutcomeRetry, time.Second, core.StateDelayed)
	retry := core.Ack{Lease: first.lease, Outcome: core.OutcomeRetry, Delay: time.Second}
	again := func(when string) {
		k.Helper()
		eq(k, "answer to the repeated retry, "+when, k.ack(retry), core.StateDelayed)
	}
	k.advance(time.Second)
	again("job due")
	second := k.takeID("a")
	again("job active again")
	k.holds(second.lease)
	k.end(second, core.OutcomeComplete, core.StateCompleted)
	again("job completed")
	k.end(second, core.OutcomeComplete, core.StateCompleted)
	k.wantLedger("a", core.OutcomeRetry, core.OutcomeComplete)
	k.look("a", func(r core.Record) { eq(k, "attempts", r.Attempts, 2) })
	k.none("it is completed")
}

func repeatOther(k *kit) {
	all := []core.Outcome{
		core.OutcomeComplete, core.OutcomeFail, core.OutcomeCancel, core.OutcomeRetry, core.OutcomeRelease, core.OutcomeSnooze,
	}
	for _, first := range all[:4] {
		id := k.add(string(first))
		h := k.takeID(id)
		state := k.ack(core.Ack{Lease: h.lease, Outcome: first, Delay: time.Hour})
		for _, second := range all {
			if second != first {
				k.refused(h.lease, second, core.ErrLeaseLost)
			}
		}
		k.wantState(id, state)
		k.wantLedger(id, first)
	}
}

func repeatCancelled(k *kit) {
	for _, outcome := range []core.Outcome{core.OutcomeRetry, core.OutcomeRelease, core.OutcomeSnooze} {
		id := k.add(string(outcome))
		h := k.takeID(id)
		k.cancel(id, core.StateActive)
		for range 3 {
			k.endIn(h, outcome, time.Hour, core.StateCancelled)
		}
		k.refused(h.lease, core.OutcomeComplete, core.ErrLeaseLost)
		k.wantLedger(id, core.OutcomeCancel)
	}
}

func repeatInOneCall(k *kit) {
	k.addAll("a", "b", "c")
	a, b, c := k.take(), k.take(), k.take()
	res := k.acks(
		core.Ack{Lease: a.lease, Outcome: core.OutcomeComplete, Result: []byte("1")},
		core.Ack{Lease: b.lease, Outcome: core.OutcomeFail},
		core.Ack{Lease: a.lease, Outcome: core.OutcomeComplete, Result: []byte("2")},
		core.Ack{Lease: b.lease, Outcome: core.OutcomeComplete},
		core.Ack{Lease: c.lease, Outcome: core.OutcomeRetry},
		core.Ack{Lease: c.lease, Outcome: core.OutcomeRetry},
	)
	eq(k, "first ack of a", res[0], core.AckResult{State: core.StateCompleted})
	eq(k, "first ack of b", res[1], core.AckResult{State: core.StateFailed})
	eq(k, "second ack of a", res[2], core.AckResult{State: core.StateCompleted})
	k.is("ack of b with another outcome", res[3].Err, core.ErrLeaseLost)
	eq(k, "first ack of c", res[4], core.AckResult{State: core.StateWaiting})
	eq(k, "second ack of c", res[5], core.AckResult{State: core.StateWaiting})
	k.look("a", func(r core.Record) { k.sameResult("result of the first", r.Result, []byte("1")) })
	k.wantLedger("a", core.OutcomeComplete)
	k.wantLedger("b", core.OutcomeFail)
	k.wantLedger("c", core.OutcomeRetry)
	eq(k, "attempts of c", k.takeID("c").Attempts, 1)
}

func repeatOldAndNew(k *kit) {
	for _, newFirst := range []bool{false, true} {
		for _, stalled := range []bool{false, true} {
			id := k.add("")
			old := k.takeFor(time.Second)
			wantOld := core.AckResult{State: core.StateWaiting}
			if stalled {
				k.advance(time.Second)
				k.swept(id)
				k.advance(time.Hour)
			} else {
				k.end(old, core.OutcomeRetry, core.StateWaiting)
			}
			fresh := k.takeID(id)
			acks := []core.Ack{
				{Lease: old.lease, Outcome: core.OutcomeRetry},
				{Lease: fresh.lease, Outcome: core.OutcomeComplete, Result: []byte("new")},
			}
			if newFirst {
				acks[0], acks[1] = acks[1], acks[0]
			}
			res := k.acks(acks...)
			if newFirst {
				res[0], res[1] = res[1], res[0]
			}
			if stalled {
				k.is("the old token, taken back by a sweep", res[0].Err, core.ErrLeaseLost)
			} else {
				eq(k, "the old token, whose ack is repeated", res[0], wantOld)
			}
			eq(k, "the new token", res[1], core.AckResult{State: core.StateCompleted})
			k.look(id, func(r core.Record) { k.sameResult("result", r.Result, []byte("new")) })
		}
	}
}

func repeatRemoved(k *kit) {
	k.add("a")
	h := k.take()
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	removed, err := k.admin.Remove(k.ctx, "a")
	k.ok("Remove", err)
	eq(k, "removed", removed, true)
	k.refused(h.lease, core.OutcomeComplete, core.ErrNotFound)
	k.gone("a")
	k.add("a")
	k.refused(h.lease, core.OutcomeComplete, core.ErrLeaseLost)
	k.takeID("a")
}
