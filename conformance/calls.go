package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// mod changes a request.
type mod func(*core.EnqueueRequest)

func named(name string) mod     { return func(r *core.EnqueueRequest) { r.Name = name } }
func onQueue(queue string) mod  { return func(r *core.EnqueueRequest) { r.Queue = queue } }
func prio(p int) mod            { return func(r *core.EnqueueRequest) { r.Priority = p } }
func delay(d time.Duration) mod { return func(r *core.EnqueueRequest) { r.Delay = d } }
func runAt(t time.Time) mod     { return func(r *core.EnqueueRequest) { r.RunAt = t } }
func payload(b []byte) mod      { return func(r *core.EnqueueRequest) { r.Payload = b } }
func keyed(key string) mod      { return func(r *core.EnqueueRequest) { r.ID, r.Key = "", key } }
func maxStalls(n int) mod       { return func(r *core.EnqueueRequest) { r.MaxStalls = n } }
func tagged(key, value string) mod {
	return func(r *core.EnqueueRequest) { r.Metadata = map[string]string{key: value} }
}

// request is a plain job; id "" leaves the id to the store.
func request(id string, mods ...mod) core.EnqueueRequest {
	r := core.EnqueueRequest{
		ID: id, Name: theName, Queue: theQueue, Payload: []byte(`{"n":1}`), MaxAttempts: 3,
		Backoff: core.DefaultBackoff(),
	}
	for _, m := range mods {
		m(&r)
	}
	return r
}

// enqueue stores requests; items may carry errors.
func (k *kit) enqueue(reqs ...core.EnqueueRequest) []core.EnqueueResult {
	k.Helper()
	res, err := k.store.Enqueue(k.ctx, reqs)
	k.ok("Enqueue", err)
	if len(res) != len(reqs) {
		k.failf("Enqueue of %d items answered %d results", len(reqs), len(res))
	}
	return res
}

// add enqueues one job, which must be new.
func (k *kit) add(id string, mods ...mod) string {
	k.Helper()
	res := k.enqueue(request(id, mods...))[0]
	k.ok("Enqueue of "+id, res.Err)
	if res.Duplicate || res.ID == "" || id != "" && res.ID != id {
		k.failf("Enqueue of new job %q answered %+v", id, res)
	}
	return res.ID
}

// addAll enqueues jobs one by one.
func (k *kit) addAll(ids ...string) {
	k.Helper()
	for _, id := range ids {
		k.add(id)
	}
}

// want asks for n default jobs.
func want(n int) core.Want { return core.Want{Queue: theQueue, Names: []string{theName}, Limit: n} }

func wantFrom(queue string, n int) core.Want {
	return core.Want{Queue: queue, Names: []string{theName}, Limit: n}
}

// claims is an answered claim.
type claims struct {
	core.Claimed
	token string
}

func (c claims) ids() []string {
	ids := make([]string, len(c.Jobs))
	for i, j := range c.Jobs {
		ids[i] = j.ID
	}
	return ids
}

func (c claims) leases() []core.Lease {
	ls := make([]core.Lease, len(c.Jobs))
	for i, j := range c.Jobs {
		ls[i] = core.Lease{ID: j.ID, Token: c.token, Ref: j.Ref}
	}
	return ls
}

// claim claims with a fresh token for the default lease.
func (k *kit) claim(wants ...core.Want) claims {
	k.Helper()
	return k.claimFor(theLease, wants...)
}

func (k *kit) claimFor(lease time.Duration, wants ...core.Want) claims {
	k.Helper()
	return k.claimAs(core.ClaimRequest{Wants: wants, Token: core.NewToken(), Lease: lease, Worker: "worker-1"})
}

// claimAs claims and holds the answer against what every claim must keep.
func (k *kit) claimAs(req core.ClaimRequest) claims {
	k.Helper()
	got, err := k.store.Claim(k.ctx, req)
	k.ok("Claim", err)
	if slices.ContainsFunc(req.Wants, func(w core.Want) bool { return w.Limit > 0 }) {
		k.checkClaim(req, got)
	}
	return claims{got, req.Token}
}

// held is one job under a lease.
type held struct {
	core.Record
	lease core.Lease
}

// take claims one default job.
func (k *kit) take() held {
	k.Helper()
	return k.takeFor(theLease)
}

func (k *kit) takeFor(lease time.Duration) held {
	k.Helper()
	c := k.claimFor(lease, want(1))
	if len(c.Jobs) != 1 {
		k.failf("Claim of one runnable job answered %d", len(c.Jobs))
	}
	return held{c.Jobs[0], c.leases()[0]}
}

// takeID claims one default job, which must be the one with that id.
func (k *kit) takeID(id string) held {
	k.Helper()
	h := k.take()
	eq(k, "claimed job", h.ID, id)
	return h
}

// none checks that nothing is claimable with the default want.
func (k *kit) none(why string) claims {
	k.Helper()
	c := k.claim(want(10))
	if len(c.Jobs) != 0 {
		k.failf("%s, yet Claim handed out %v", why, c.ids())
	}
	return c
}

// drain claims up to 100 default jobs and checks their order.
func (k *kit) drain(what string, ids ...string) claims {
	k.Helper()
	c := k.claim(want(100))
	eqs(k, what, c.ids(), ids)
	return c
}

// acks sends acks, which is all one call.
func (k *kit) acks(acks ...core.Ack) []core.AckResult {
	k.Helper()
	res, err := k.store.Ack(k.ctx, acks)
	k.ok("Ack", err)
	if len(res) != len(acks) {
		k.failf("Ack of %d items answered %d results", len(acks), len(res))
	}
	return res
}

// ack ends a lease, which must work.
func (k *kit) ack(a core.Ack) core.State {
	k.Helper()
	res := k.acks(a)[0]
	k.ok(fmt.Sprintf("Ack %s of %q", a.Outcome, a.Lease.ID), res.Err)
	return res.State
}

// end ends a lease with a plain outcome and checks where the job went.
func (k *kit) end(h held, outcome core.Outcome, state core.State) {
	k.Helper()
	k.endIn(h, outcome, 0, state)
}

func (k *kit) endIn(h held, outcome core.Outcome, d time.Duration, state core.State) {
	k.Helper()
	got := k.ack(core.Ack{Lease: h.lease, Outcome: outcome, Delay: d})
	eq(k, fmt.Sprintf("state answered to %s", outcome), got, state)
	k.wantState(h.ID, state)
}

// refused checks that an ack is answered with an error.
func (k *kit) refused(lease core.Lease, outcome core.Outcome, target error) {
	k.Helper()
	res := k.acks(core.Ack{Lease: lease, Outcome: outcome})[0]
	k.is(fmt.Sprintf("Ack %s of %q", outcome, lease.ID), res.Err, target)
}

// holds checks that a lease is still current, by extending it by nothing.
func (k *kit) holds(l core.Lease) {
	k.Helper()
	x := k.extend(0, l)
	if len(x.Lost)+len(x.Busy) != 0 {
		k.failf("lease of %q should still be held, Extend answered %+v", l.ID, x)
	}
}

// lost checks that a lease is not current any more, by Extend and by Ack.
func (k *kit) lost(l core.Lease) {
	k.Helper()
	x := k.extend(time.Hour, l)
	eqs(k, "Lost", leaseIDs(x.Lost), []string{l.ID})
	k.refused(l, core.OutcomeComplete, core.ErrLeaseLost)
}

func (k *kit) extend(d time.Duration, leases ...core.Lease) core.Extended {
	k.Helper()
	x, err := k.store.Extend(k.ctx, leases, d)
	k.ok("Extend", err)
	return x
}

func leaseIDs(leases []core.Lease) []string {
	ids := make([]string, len(leases))
	for i, l := range leases {
		ids[i] = l.ID
	}
	return ids
}

// sweep takes back ended leases and returns what became of each job.
func (k *kit) sweep(req core.RecoverRequest) []core.Recovered {
	k.Helper()
	got, err := k.store.RecoverStalled(k.ctx, req)
	k.ok("RecoverStalled", err)
	return got
}

// swept sweeps at once, tolerating plenty of stalls, and checks which jobs were taken.
func (k *kit) swept(ids ...string) []core.Recovered {
	k.Helper()
	got := k.sweep(core.RecoverRequest{MaxStalls: 1000})
	eqs(k, "jobs taken by RecoverStalled", recoveredIDs(got), ids)
	return got
}

func recoveredIDs(rs []core.Recovered) []string {
	ids := make([]string, len(rs))
	for i, r := range rs {
		ids[i] = r.ID
	}
	return ids
}
