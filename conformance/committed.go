package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// committedRounds is how often a commit is followed by a claim: a store that relies on a notification to see what was
// committed wins some of these races.
const committedRounds = 30

func committedCases() []testCase {
	return []testCase{
		{rule: "Q14", name: "claimed-at-once", run: func(k *kit) { committed(k, k) }, needs: []Capability{CapTx}, timeless: true,
			demands: "a claim right after the commit sees what it enqueued, also where claims went by while the transaction was open"},
		{rule: "Q14", name: "claimed-at-once-elsewhere", run: func(k *kit) { committed(k, k.other()) },
			needs: []Capability{CapTx, CapOpen}, timeless: true,
			demands: "a claim of another process right after the commit sees what it enqueued"},
	}
}

// committed claims on o what transactions of k's store enqueue. Each transaction leaves a delayed job as well, due
// before all others: the claim has to know of that too (Q4).
func committed(k, o *kit) {
	o.none("nothing is there")
	due := time.Hour
	for i := range committedRounds {
		id := fmt.Sprintf("now-%d", i)
		due -= time.Minute
		view, commit, _ := k.open()
		o.passes()
		txAdd(k, view, request(id), request(fmt.Sprintf("later-%d", i), delay(due)))
		blocked := !o.passes() // twice: a store may learn from the first
		blocked = !o.passes() || blocked
		commit()
		c := o.claim(want(10))
		eqs(o, "claimed after the commit", c.ids(), []string{id})
		if c.NextIn <= 0 || c.NextIn > due {
			o.failf("NextIn after the commit is %v, with a job due in %v", c.NextIn, due)
		}
		o.ack(core.Ack{Lease: c.leases()[0], Outcome: core.OutcomeComplete})
		if blocked && i > 0 {
			return // claims wait for the transaction, which takes time
		}
	}
}

// passes makes a claim while a transaction is open, which must not get anything. It reports whether the claim was
// answered: a store may make it wait for the transaction.
func (k *kit) passes() bool {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.ctx, 50*time.Millisecond)
	defer cancel()
	got, err := k.store.Claim(ctx, core.ClaimRequest{Wants: wants(10), Token: core.NewToken(), Lease: theLease})
	if err == nil && len(got.Jobs) > 0 {
		k.failf("a claim got %v before the commit", recordIDs(got.Jobs))
	}
	return err == nil
}
