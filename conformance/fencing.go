package conformance

import (
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func fencingCases() []testCase {
	return []testCase{
		{rule: "Q5", name: "wrong-token", run: ackWrongToken, timeless: true,
			demands: "an ack with a token that is not the job's gets ErrLeaseLost and changes nothing"},
		{rule: "Q5", name: "unknown-id", run: ackUnknown, timeless: true,
			demands: "an ack of an unknown id gets ErrNotFound"},
		{rule: "Q5", name: "not-active", run: ackNotActive,
			demands: "whatever leaves active loses its token"},
		{rule: "Q5", name: "expired", run: ackExpired,
			demands: "a lease that ended but was not taken back may still be acked"},
		{rule: "Q5", name: "without-ref", run: ackWithoutRef, timeless: true,
			demands: "a lease with Ref 0 is found by its id"},
		{rule: "Q5", name: "id-counts", run: ackIDCounts,
			demands: "where a lease's Ref and id disagree the id counts, even if both jobs are held under its token"},
		{rule: "Q5", name: "batch", run: ackBatch, timeless: true,
			demands: "answers are positional and items independent: a lost lease does not touch its neighbours"},
		{rule: "Q1", name: "large-batch", run: ackLarge, limit: 60 * time.Second,
			demands: "a thousand acks of mixed outcomes in one call each land"},
	}
}

func ackWrongToken(k *kit) {
	k.addAll("a", "b")
	a, b := k.take(), k.take()
	for _, outcome := range []core.Outcome{
		core.OutcomeComplete, core.OutcomeFail, core.OutcomeRetry, core.OutcomeCancel, core.OutcomeRelease, core.OutcomeSnooze,
	} {
		for _, token := range []string{core.NewToken(), b.lease.Token, ""} {
			k.refused(core.Lease{ID: "a", Token: token, Ref: a.Ref}, outcome, core.ErrLeaseLost)
		}
	}
	k.wantState("a", core.StateActive)
	k.wantLedger("a")
	k.holds(a.lease)
	k.end(a, core.OutcomeComplete, core.StateCompleted)
	k.end(b, core.OutcomeComplete, core.StateCompleted)
}

func ackUnknown(k *kit) {
	for _, id := range []string{"nobody", "", "a\x00b", "\xff"} {
		k.refused(core.Lease{ID: id, Token: core.NewToken()}, core.OutcomeComplete, core.ErrNotFound)
	}
}

func ackNotActive(k *kit) {
	k.add("a")
	k.refused(core.Lease{ID: "a", Token: core.NewToken()}, core.OutcomeComplete, core.ErrLeaseLost)
	var old []held
	leave := func(outcome core.Outcome, d time.Duration) {
		h := k.takeID("a")
		k.ack(core.Ack{Lease: h.lease, Outcome: outcome, Delay: d})
		old = append(old, h)
		for _, o := range old {
			k.lostAfter(o.lease, outcome)
		}
	}
	leave(core.OutcomeRelease, 0)
	leave(core.OutcomeSnooze, 0)
	leave(core.OutcomeRetry, time.Second)
	k.advance(time.Second)
	leave(core.OutcomeFail, 0)
}

// lostAfter checks that a token is worth nothing after its lease ended, whatever ended it.
func (k *kit) lostAfter(l core.Lease, outcome core.Outcome) {
	k.Helper()
	x := k.extend(time.Hour, l)
	eqs(k, "Lost after "+string(outcome), leaseIDs(x.Lost), []string{l.ID})
	k.refused(l, core.OutcomeComplete, core.ErrLeaseLost)
	k.refused(l, core.OutcomeCancel, core.ErrLeaseLost)
	k.refused(core.Lease{ID: l.ID, Token: "", Ref: l.Ref}, core.OutcomeComplete, core.ErrLeaseLost)
}

func ackExpired(k *kit) {
	k.addAll("a", "b")
	a, b := k.takeFor(time.Second), k.takeFor(time.Second)
	k.advance(time.Hour)
	k.end(a, core.OutcomeComplete, core.StateCompleted)
	k.end(b, core.OutcomeRelease, core.StateWaiting)
	k.swept()
	k.takeID("b")
}

func ackWithoutRef(k *kit) {
	k.addAll("a", "b", "c")
	a, b, c := k.take(), k.take(), k.take()
	for _, h := range []*held{&a, &b, &c} {
		h.lease.Ref = 0
	}
	x := k.extend(time.Hour, a.lease, b.lease, core.Lease{ID: "nobody", Token: core.NewToken()})
	eqs(k, "Lost", leaseIDs(x.Lost), []string{"nobody"})
	k.end(a, core.OutcomeComplete, core.StateCompleted)
	res := k.acks(core.Ack{Lease: b.lease, Outcome: core.OutcomeFail}, core.Ack{Lease: c.lease, Outcome: core.OutcomeRelease})
	eq(k, "state of b", res[0], core.AckResult{State: core.StateFailed})
	eq(k, "state of c", res[1], core.AckResult{State: core.StateWaiting})
}

// ackIDCounts crosses the leases of one claim. The Ref of a job that was removed may be what they bring, too.
func ackIDCounts(k *kit) {
	k.addAll("a", "b", "c")
	c := k.claimFor(time.Second, want(3))
	l := c.leases()
	crossed := func(id string, other core.Lease) core.Lease {
		return core.Lease{ID: id, Token: c.token, Ref: other.Ref}
	}
	nobody := []core.Lease{crossed("nobody", l[1]), crossed(fmt.Sprintf("#%d", l[1].Ref), l[1])}
	x := k.extend(time.Hour, append(nobody, crossed("a", l[1]), crossed("c", l[0]))...)
	eqs(k, "Lost", leaseIDs(x.Lost), leaseIDs(nobody))
	k.advance(time.Minute)
	k.swept("b")
	for _, lease := range nobody {
		k.refused(lease, core.OutcomeComplete, core.ErrNotFound)
	}
	eq(k, "the answer", k.acks(core.Ack{Lease: crossed("a", l[2]), Outcome: core.OutcomeComplete})[0],
		core.AckResult{State: core.StateCompleted})
	k.wantState("a", core.StateCompleted)
	k.wantState("c", core.StateActive)
	eq(k, "the answer to a repeat", k.acks(core.Ack{Lease: crossed("a", l[1]), Outcome: core.OutcomeComplete})[0],
		core.AckResult{State: core.StateCompleted})
	k.refused(crossed("b", l[2]), core.OutcomeComplete, core.ErrLeaseLost)
	k.holds(l[2])
}

func ackBatch(k *kit) {
	k.addAll("a", "b", "c", "d", "e", "f")
	c := k.claim(want(6))
	l := c.leases()
	res := k.acks(
		core.Ack{Lease: l[5], Outcome: core.OutcomeComplete, Result: []byte("f")},
		core.Ack{Lease: core.Lease{ID: "a", Token: core.NewToken(), Ref: l[0].Ref}, Outcome: core.OutcomeComplete},
		core.Ack{Lease: l[1], Outcome: core.OutcomeFail},
		core.Ack{Lease: core.Lease{ID: "nobody", Token: c.token}, Outcome: core.OutcomeComplete},
		core.Ack{Lease: l[2], Outcome: core.OutcomeRetry, Delay: time.Hour},
		core.Ack{Lease: l[3], Outcome: core.OutcomeRelease},
		core.Ack{Lease: l[4], Outcome: core.OutcomeCancel},
	)
	want := []core.State{core.StateCompleted, "", core.StateFailed, "", core.StateDelayed, core.StateWaiting, core.StateCancelled}
	for i, r := range res {
		switch i {
		case 1:
			k.is("the ack with a foreign token", r.Err, core.ErrLeaseLost)
		case 3:
			k.is("the ack of an unknown job", r.Err, core.ErrNotFound)
		default:
			eq(k, fmt.Sprintf("answer %d", i), r, core.AckResult{State: want[i]})
		}
	}
	for i, id := range []string{"f", "", "b", "", "c", "d", "e"} {
		if id != "" {
			k.wantState(id, want[i])
		}
	}
	k.look("f", func(r core.Record) { k.sameResult("result of f", r.Result, []byte("f")) })
	k.holds(l[0])
}

func ackLarge(k *kit) {
	const n = 1000
	reqs := make([]core.EnqueueRequest, n)
	for i := range reqs {
		reqs[i] = request(fmt.Sprintf("j%d", i))
	}
	k.enqueue(reqs...)
	outcomes := []core.Outcome{core.OutcomeComplete, core.OutcomeFail, core.OutcomeCancel, core.OutcomeRelease, core.OutcomeRetry}
	states := []core.State{core.StateCompleted, core.StateFailed, core.StateCancelled, core.StateWaiting, core.StateDelayed}
	acks := make([]core.Ack, n)
	for i, l := range k.claim(want(n)).leases() {
		acks[i] = core.Ack{Lease: l, Outcome: outcomes[i%5], Delay: time.Hour, Result: []byte(l.ID)}
	}
	for i, r := range k.acks(acks...) {
		if r.Err != nil || r.State != states[i%5] {
			k.failf("answer %d to %s is %+v", i, outcomes[i%5], r)
		}
	}
	k.wantCounts("", map[core.State]int64{
		core.StateCompleted: n / 5, core.StateFailed: n / 5, core.StateCancelled: n / 5, core.StateWaiting: n / 5, core.StateDelayed: n / 5,
	})
	k.look("j995", func(r core.Record) { k.sameResult("result", r.Result, []byte("j995")) })
	eq(k, "released jobs", len(k.claim(want(n)).Jobs), n/5)
}
