package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
// before all others: the claim has to know of that too (Q4). While it is open, younger jobs are enqueued and claimed: a
// store may learn from these that there is nothing older.
func committed(k, o *kit) {
	o.none("nothing is there")
	due := time.Hour
	for i := range committedRounds {
		id := fmt.Sprintf("now-%d", i)
		due -= time.Minute
		view, commit, _ := k.open()
		lost := o.passes("")
		txAdd(k, view, request(id), request(fmt.Sprintf("later-%d", i), delay(due)))
		for n := range 3 {
			lost = append(lost, o.passes(fmt.Sprintf("%s%d-%d", younger, i, n))...)
		}
		commit()
		c := o.claim(want(10))
		if len(lost) > 0 && !slices.Contains(c.ids(), id) {
			o.until(id+" is claimed", func() bool {
				return o.holdsAny(lost, id) || slices.Contains(o.claim(want(10)).ids(), id)
			})
			return
		}
		eqs(o, "claimed after the commit", slices.DeleteFunc(c.ids(), isYounger), []string{id})
		if c.NextIn <= 0 || c.NextIn > due {
			o.failf("NextIn after the commit is %v, with a job due in %v", c.NextIn, due)
		}
		for _, l := range c.leases() {
			o.ack(core.Ack{Lease: l, Outcome: core.OutcomeComplete})
		}
		if len(lost) > 0 && i > 0 {
			return // others wait for the transaction, which takes time
		}
	}
}

const younger = "younger-"

func isYounger(id string) bool { return strings.HasPrefix(id, younger) }

// passes makes a claim while a transaction is open, of a job that it enqueues; "": of nothing. It must not get anything
// else. A store may make it wait for the transaction: it returns the token of a claim that was not answered, which may
// be done later.
func (k *kit) passes(id string) (lost []string) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.ctx, 50*time.Millisecond)
	defer cancel()
	token := core.NewToken()
	if id != "" {
		if _, err := k.store.Enqueue(ctx, []core.EnqueueRequest{request(id)}); err != nil {
			return []string{token} // it may come later
		}
	}
	got, err := k.store.Claim(ctx, core.ClaimRequest{Wants: wants(10), Token: token, Lease: theLease})
	if err != nil {
		return []string{token}
	}
	if early := slices.DeleteFunc(recordIDs(got.Jobs), isYounger); len(early) > 0 {
		k.failf("a claim got %v before the commit", early)
	}
	return nil
}

// holdsAny reports whether a job is leased under one of the tokens.
func (k *kit) holdsAny(tokens []string, id string) bool {
	k.Helper()
	for _, token := range tokens {
		if slices.Contains(k.claimAs(core.ClaimRequest{Token: token, Lease: theLease}).ids(), id) {
			return true
		}
	}
	return false
}
