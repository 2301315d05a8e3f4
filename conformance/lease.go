package conformance

import (
	"time"

	"github.com/stintmq/stint/core"
)

func leaseCases() []testCase {
	return []testCase{
		{rule: "Q5", name: "extend", run: leaseExtend,
			demands: "Extend moves a lease's end to now + d; what is not a current lease is Lost"},
		{rule: "Q21", name: "never-shortens", run: leaseNeverShortens,
			demands: "Extend never moves the end of a lease to an earlier time"},
		{rule: "Q5", name: "boundary", run: leaseBoundary,
			demands: "an extended lease ends exactly at now + d: ended is until <= now"},
		{rule: "Q5", name: "expired", run: leaseExpired,
			demands: "a lease that ended but was not taken back is extended like any other"},
		{rule: "Q5", name: "lost", run: leaseLost,
			demands: "a wrong token, an unknown id and a lease that was settled are Lost, and nothing changes"},
		{rule: "Q21", name: "many-tokens", run: leaseManyTokens, timeless: true,
			demands: "one Extend serves leases of many claims, and tells which are lost"},
		{rule: "Q5", name: "repeatable", run: leaseRepeatable,
			demands: "an Extend may be repeated freely, within one call too"},
		{rule: "Q5", name: "changes-nothing-else", run: leaseNothingElse, needs: []Capability{CapInspector},
			demands: "Extend changes nothing of the record"},
	}
}

func leaseExtend(k *kit) {
	k.add("mine")
	h := k.takeFor(10 * time.Second)
	x := k.extend(20*time.Second, h.lease, core.Lease{ID: "ghost", Token: core.NewToken()})
	eqs(k, "Lost", leaseIDs(x.Lost), []string{"ghost"})
	eq(k, "Busy", len(x.Busy), 0)
	eq(k, "CancelRequested", len(x.CancelRequested), 0)
	k.advance(15 * time.Second)
	k.swept()
	k.advance(5 * time.Second)
	k.swept("mine")
}

func leaseNeverShortens(k *kit) {
	k.add("a")
	h := k.takeFor(time.Minute)
	x := k.extend(time.Second, h.lease)
	eq(k, "Lost", len(x.Lost), 0)
	k.extend(0, h.lease)
	k.advance(time.Minute - time.Microsecond)
	k.swept()
	k.advance(time.Microsecond)
	k.swept("a")
}

func leaseBoundary(k *kit) {
	k.add("a")
	h := k.takeFor(time.Second)
	k.advance(500 * time.Millisecond)
	k.extend(time.Second, h.lease)
	k.advance(time.Second - time.Microsecond)
	k.swept()
	k.advance(time.Microsecond)
	k.swept("a")
}

func leaseExpired(k *kit) {
	k.add("a")
	h := k.takeFor(time.Second)
	k.advance(time.Hour)
	x := k.extend(time.Minute, h.lease)
	eq(k, "Lost", len(x.Lost), 0)
	k.advance(time.Minute - time.Microsecond)
	k.swept()
	k.end(h, core.OutcomeComplete, core.StateCompleted)
}

func leaseLost(k *kit) {
	k.addAll("a", "b", "c")
	a, b := k.takeFor(time.Second), k.take()
	k.end(b, core.OutcomeComplete, core.StateCompleted)
	bad := []core.Lease{
		{ID: "a", Token: core.NewToken(), Ref: a.Ref}, {ID: "a", Token: "", Ref: a.Ref}, {ID: "a", Token: b.lease.Token},
		{ID: "nobody", Token: a.lease.Token}, {ID: "c", Token: core.NewToken()}, {ID: "c"}, b.lease, {}, {ID: "a\x00", Token: "\xff"},
	}
	x := k.extend(time.Hour, bad...)
	eq(k, "leases lost", len(x.Lost), len(bad))
	k.advance(time.Second)
	k.swept("a")
	k.lost(a.lease)
}

func leaseManyTokens(k *kit) {
	k.addAll("a", "b", "c", "d")
	a, b, c, d := k.take(), k.take(), k.take(), k.take()
	k.end(b, core.OutcomeRelease, core.StateWaiting)
	b2 := k.takeID("b")
	x := k.extend(time.Hour, d.lease, b.lease, a.lease, b2.lease, c.lease)
	eq(k, "leases lost", len(x.Lost), 1)
	eq(k, "the lost lease", x.Lost[0], b.lease)
	for _, h := range []held{a, b2, c, d} {
		k.holds(h.lease)
	}
}

func leaseRepeatable(k *kit) {
	k.add("a")
	h := k.takeFor(time.Second)
	for range 3 {
		x := k.extend(time.Minute, h.lease, h.lease)
		eq(k, "leases in the answer", len(x.Lost)+len(x.Busy)+len(x.CancelRequested), 0)
	}
	k.advance(time.Minute)
	k.swept("a")
}

func leaseNothingElse(k *kit) {
	k.add("a")
	h := k.take()
	k.advance(time.Second)
	k.extend(time.Hour, h.lease)
	k.sameRecord("the job after Extend", k.get("a"), h.Record)
	k.wantLedger("a")
}
