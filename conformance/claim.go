package conformance

import (
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func claimCases() []testCase {
	return []testCase{
		{rule: "Q4", name: "lease", run: claimLease,
			demands: "a claimed job is active with ClaimedAt = now and its fence grown by one, and nobody else gets it"},
		{rule: "Q4", name: "fence", run: claimFence,
			demands: "a job's fence grows by exactly one with each claim, whatever ended the one before"},
		{rule: "Q4", name: "names", run: claimNames, timeless: true,
			demands: "only jobs whose name is wanted are handed out; without names none are"},
		{rule: "Q4", name: "queues", run: claimQueues, timeless: true,
			demands: "only jobs of the wanted queue are handed out; one name may live on many queues"},
		{rule: "Q4", name: "limit", run: claimLimit, timeless: true,
			demands: "at most Limit jobs per want, and that many if there are"},
		{rule: "Q4", name: "wants", run: claimWants, timeless: true,
			demands: "one call serves several wants, each by its own limit, in the order of the wants"},
		{rule: "Q4", name: "wants-overlap", run: claimWantsOverlap, timeless: true,
			demands: "wants that overlap never get one job twice"},
		{rule: "Q4", name: "held-by-token", run: claimHeld,
			demands: "without wants nothing is claimed or extended: the answer is what the token still holds"},
		{rule: "Q4", name: "no-names", run: claimNoNames, timeless: true,
			demands: "a want without names claims nothing, and is not the question what the token holds"},
		{rule: "Q4", name: "payload-cap", run: claimPayloadCap,
			demands: "one call hands out at most 16 MiB of payload, stopping before the job that would exceed it"},
		{rule: "Q4", name: "payload-cap-over-wants", run: claimPayloadCapWants,
			demands: "the 16 MiB hold for the whole call, not per want"},
		{rule: "Q4", name: "poison", run: claimPoison,
			demands: "at most one job that stalled before per want and call"},
		{rule: "Q4", name: "zero-lease", run: claimZeroLease,
			demands: "a lease of zero ends at once: a sweep may take it, and until then it is held"},
		{rule: "Q1", name: "one-state", run: claimOneState, needs: []Capability{CapInspector},
			demands: "at every moment a job is in exactly one state"},
	}
}

func claimLease(k *kit) {
	k.add("a", delay(time.Second))
	k.advance(3 * time.Second)
	h := k.take()
	k.wantTime("ClaimedAt", h.ClaimedAt, k.now())
	k.wantTime("RunAt, which coming due keeps", h.RunAt, k.now().Add(-2*time.Second))
	k.wantTime("EnqueuedAt", h.EnqueuedAt, k.now().Add(-3*time.Second))
	eq(k, "fence", h.Fence, 1)
	k.look("a", func(r core.Record) { k.sameRecord("Get of the claimed job", r, h.Record) })
	k.advance(time.Hour)
	k.none("an ended lease is the sweep's to take, not the next claim's")
}

func claimFence(k *kit) {
	k.add("a")
	fence := int64(0)
	claimed := func() held {
		h := k.takeID("a")
		fence++
		eq(k, "fence", h.Fence, fence)
		return h
	}
	k.end(claimed(), core.OutcomeRelease, core.StateWaiting)
	k.end(claimed(), core.OutcomeRetry, core.StateWaiting)
	k.end(claimed(), core.OutcomeSnooze, core.StateWaiting)
	claimed()
	k.advance(theLease)
	k.swept("a")
	k.advance(time.Hour)
	h := claimed()
	k.holds(h.lease)
	if k.admin == nil {
		return
	}
	k.end(h, core.OutcomeFail, core.StateFailed)
	k.ok("Retry", k.admin.Retry(k.ctx, "a"))
	k.end(claimed(), core.OutcomeComplete, core.StateCompleted)
}

func claimNames(k *kit) {
	k.add("a", named("one"))
	k.add("b", named("two"))
	k.add("c", named("three"))
	ask := func(names ...string) []string {
		return k.claim(core.Want{Queue: theQueue, Names: names, Limit: 10}).ids()
	}
	eqs(k, "claimed without names", ask(), nil)
	eqs(k, "claimed under a name that nobody has", ask("four"), nil)
	eqs(k, "claimed under an empty name", ask(""), nil)
	eqs(k, "claimed under two names, in order", ask("three", "one"), []string{"a", "c"})
	eqs(k, "what is left", ask("one", "two", "three"), []string{"b"})
	for _, id := range []string{"a", "b", "c"} {
		k.wantState(id, core.StateActive)
	}
}

func claimQueues(k *kit) {
	k.add("a", onQueue("left"))
	k.add("b", onQueue("right"))
	k.none("both jobs are on other queues")
	eqs(k, "claimed from right", k.claim(wantFrom("right", 10)).ids(), []string{"b"})
	eqs(k, "claimed from an unknown queue", k.claim(wantFrom("nowhere", 10)).ids(), nil)
	eqs(k, "claimed from left", k.claim(wantFrom("left", 10)).ids(), []string{"a"})
}

func claimLimit(k *kit) {
	k.addAll("a", "b", "c", "d", "e")
	eqs(k, "claimed with limit 0", k.claim(want(0), wantFrom("other", 1)).ids(), nil)
	eqs(k, "claimed with limit 1", k.claim(want(1)).ids(), []string{"a"})
	eqs(k, "claimed with limit 3", k.claim(want(3)).ids(), []string{"b", "c", "d"})
	eqs(k, "claimed with a limit that is more than there is", k.claim(want(1_000_000)).ids(), []string{"e"})
}

func claimWants(k *kit) {
	for i := range 4 {
		k.add(fmt.Sprintf("d%d", i))
		k.add(fmt.Sprintf("o%d", i), onQueue("other"))
	}
	k.add("urgent", onQueue("other"), prio(9))
	c := k.claim(wantFrom("other", 2), wantFrom("none", 5), want(3))
	eqs(k, "jobs of three wants", c.ids(), []string{"urgent", "o0", "d0", "d1", "d2"})
	c = k.claim(want(0), wantFrom("other", 10))
	eqs(k, "jobs of a want beside one with limit 0", c.ids(), []string{"o1", "o2", "o3"})
	for _, l := range c.leases() {
		k.holds(l)
	}
}

func claimWantsOverlap(k *kit) {
	k.addAll("a", "b", "c")
	k.add("x", named("other"))
	c := k.claim(want(1), core.Want{Queue: theQueue, Names: []string{"other", theName}, Limit: 10})
	seen := map[string]bool{}
	for _, id := range c.ids() {
		if seen[id] {
			k.failf("%q was handed out twice in one call", id)
		}
		seen[id] = true
	}
	eq(k, "jobs handed out", len(seen), 4)
	eq(k, "the first want's job", c.Jobs[0].ID, "a")
}

func claimHeld(k *kit) {
	k.addAll("a", "b", "c")
	c := k.claimFor(10*time.Second, want(2))
	held := func(wants ...core.Want) []core.Record {
		k.Helper()
		return k.claimAs(core.ClaimRequest{Wants: wants, Token: c.token, Lease: time.Hour}).Jobs
	}
	for _, got := range [][]core.Record{held(), held(want(0)), held(wantFrom("nowhere", 0))} {
		eq(k, "jobs held under the token", len(got), 2)
		for _, g := range got {
			for _, j := range c.Jobs {
				if j.ID == g.ID {
					k.sameRecord("a held job", g, j)
				}
			}
		}
	}
	eq(k, "jobs held under a token of nobody's", len(k.claim().Jobs), 0)
	k.end(held1(c, 0), core.OutcomeComplete, core.StateCompleted)
	eqs(k, "jobs held after one was acked", recordIDs(held()), []string{"b"})
	k.advance(10 * time.Second)
	eqs(k, "jobs held after the lease ended", recordIDs(held()), []string{"b"})
	k.swept("b")
	eqs(k, "jobs held after the sweep", recordIDs(held()), nil)
	k.takeID("c")
}

func claimNoNames(k *kit) {
	k.addAll("a", "b")
	c := k.claim(want(1))
	for what, wants := range map[string][]core.Want{
		"no names":              {{Queue: theQueue, Limit: 1}},
		"an empty list":         {{Queue: theQueue, Names: []string{}, Limit: 5}},
		"no names, and limit 0": {{Queue: theQueue, Limit: 1}, want(0)},
		"a name of nobody's":    {{Queue: theQueue, Names: []string{"nobody"}, Limit: 1}},
		"a queue of nobody's":   {wantFrom("nowhere", 1)},
	} {
		got, err := k.store.Claim(k.ctx, core.ClaimRequest{Wants: wants, Token: c.token, Lease: theLease})
		k.ok("Claim", err)
		eqs(k, "jobs of a want with "+what+", under a token that holds one", recordIDs(got.Jobs), nil)
	}
	eqs(k, "jobs held under the token", k.claimAs(core.ClaimRequest{Token: c.token}).ids(), []string{"a"})
	k.takeID("b")
}

// held1 is the i-th job of a claim.
func held1(c claims, i int) held { return held{c.Jobs[i], c.leases()[i]} }

func claimPayloadCap(k *kit) {
	big := make([]byte, core.DefaultPayload)
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = k.add(fmt.Sprintf("big-%02d", i), payload(big))
	}
	const most = core.MaxClaimBytes / core.DefaultPayload
	eqs(k, "jobs of the first call", k.claim(want(20)).ids(), ids[:most])
	c := k.claim(want(20))
	eqs(k, "jobs of the second call", c.ids(), ids[most:])
	if c.NextIn != 0 {
		k.failf("NextIn is %v after the last job was claimed", c.NextIn)
	}
}

func claimPayloadCapWants(k *kit) {
	big := make([]byte, core.DefaultPayload)
	const most = core.MaxClaimBytes / core.DefaultPayload
	for _, left := range []int{most / 2, most} { // the first want leaves room for some, or for none
		const right = 10
		for range left {
			k.add("", onQueue("left"), payload(big))
		}
		for range right {
			k.add("", onQueue("right"), payload(big))
		}
		c := k.claim(wantFrom("left", left), wantFrom("right", right))
		if len(c.Jobs) > most || len(c.Jobs) == 0 {
			k.failf("one call handed out %d MiB of payload", len(c.Jobs))
		}
		eq(k, "NextIn with jobs left over", c.NextIn, 1)
		rest := len(c.Jobs)
		for rest < left+right {
			n := len(k.claim(wantFrom("left", left), wantFrom("right", right)).Jobs)
			if n == 0 {
				k.failf("claims ended after %d of %d jobs", rest, left+right)
			}
			rest += n
		}
	}
}

func claimPoison(k *kit) {
	k.addAll("p1", "p2", "p3")
	k.claimFor(time.Second, want(3))
	k.add("q", onQueue("other"))
	k.claimFor(time.Second, wantFrom("other", 1))
	k.advance(time.Second)
	eq(k, "jobs taken back", len(k.sweep(core.RecoverRequest{MaxStalls: 5})), 4)
	k.advance(time.Hour)
	k.addAll("a", "b")
	seen := map[string]int{}
	for call := range 3 {
		poison := map[string]int{}
		c := k.claim(want(10), wantFrom("other", 10))
		for _, j := range c.Jobs {
			seen[j.ID]++
			if j.Stalls > 0 {
				poison[j.Queue]++
			}
		}
		if poison[theQueue] != 1 || call == 0 && poison["other"] != 1 {
			k.failf("claim %d handed out stalled jobs %v, want one per want while there are", call, poison)
		}
		if call == 0 && (seen["a"] != 1 || seen["b"] != 1) {
			k.failf("stalled jobs kept healthy ones from being claimed: %v", c.ids())
		}
		if call < 2 {
			eq(k, "NextIn with stalled jobs left over", c.NextIn, 1)
		}
	}
	eq(k, "jobs claimed in the end", len(seen), 6)
}

func claimZeroLease(k *kit) {
	k.add("a")
	h := k.takeFor(0)
	k.none("a job under an ended lease is not waiting")
	k.holds(h.lease)
	k.swept("a")
	k.lost(h.lease)
}

func claimOneState(k *kit) {
	one := func(state core.State) {
		k.Helper()
		k.wantCounts("", map[core.State]int64{state: 1})
		for _, s := range core.States() {
			n := len(k.list(core.Query{States: []core.State{s}}).Jobs)
			if (n == 1) != (s == state) {
				k.failf("a %s job is listed %d times as %s", state, n, s)
			}
		}
		k.wantState("a", state)
	}
	k.add("a", delay(time.Second))
	one(core.StateDelayed)
	k.advance(time.Second)
	one(core.StateWaiting)
	h := k.take()
	one(core.StateActive)
	k.endIn(h, core.OutcomeRetry, time.Second, core.StateDelayed)
	one(core.StateDelayed)
	k.advance(time.Second)
	h = k.take()
	k.end(h, core.OutcomeRelease, core.StateWaiting)
	one(core.StateWaiting)
	k.take()
	k.advance(theLease)
	one(core.StateActive)
	k.swept("a")
	one(core.StateDelayed)
	k.advance(time.Hour)
	k.end(k.take(), core.OutcomeComplete, core.StateCompleted)
	one(core.StateCompleted)
}
