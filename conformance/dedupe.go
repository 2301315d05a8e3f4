package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
)

func dedupeCases() []testCase {
	needs, admin := []Capability{CapDedupe}, []Capability{CapDedupe, CapAdmin}
	return []testCase{
		{rule: "Q12", name: "invalid", run: dedupeInvalid, needs: needs, timeless: true,
			demands: "a dedupe that is out of range is refused with an InvalidError that names the field"},
		{rule: "Q12", name: "record", run: dedupeRecord, needs: needs, timeless: true,
			demands: "the key comes back byte for byte wherever a record does"},
		{rule: "Q12", name: "pending", run: dedupePending, needs: needs, timeless: true,
			demands: "without a TTL a key is taken while its job is waiting, delayed or active, and free when that has ended, however it did"},
		{rule: "Q12", name: "scope", run: dedupeScope, needs: needs, timeless: true,
			demands: "a key is of its name: other names, queues and ids do not matter"},
		{rule: "Q12", name: "id-first", run: dedupeIDFirst, needs: needs,
			demands: "an id that exists decides alone: the key is not looked at, and nothing is replaced, extended or taken"},
		{rule: "Q12", name: "id-and-key", run: dedupeIDAndKey, needs: needs, timeless: true,
			demands: "a new id under a taken key is a duplicate of the job that has the key, and does not exist"},
		{rule: "Q12", name: "window", run: dedupeWindow, needs: needs,
			demands: "a window lasts from the insert for its TTL, whatever becomes of the job; drops do not move it; at its end the key is free"},
		{rule: "Q12", name: "window-over-pending", run: dedupeWindowPending, needs: needs,
			demands: "a window that ends frees its key even while its job is pending"},
		{rule: "Q12", name: "extend", run: dedupeExtend, needs: needs,
			demands: "with Extend each drop moves the end of the window to now + TTL"},
		{rule: "Q12", name: "modes-mixed", run: dedupeMixed, needs: needs,
			demands: "what took the key decides, not what is asked later: a drop opens no window, and closes none"},
		{rule: "Q12", name: "ended-in-window", run: dedupeEndedInWindow, needs: admin,
			demands: "a job that was cancelled or removed frees its key inside its window; one that failed does not"},
		{rule: "Q12", name: "batch", run: dedupeBatch, needs: needs,
			demands: "repeats of a key inside one batch behave like separate enqueues in their order"},
		{rule: "Q12", name: "batch-ids", run: dedupeBatchIDs, needs: needs,
			demands: "ids and keys inside one batch behave like separate enqueues in their order"},
		{rule: "Q12", name: "batch-large", run: dedupeBatchLarge, needs: needs, limit: 60 * time.Second,
			demands: "thousands of keys are one call, placed in the order of the request"},
		{rule: "Q12", name: "retried-into-delay", run: dedupeRetried, needs: needs,
			demands: "acks do not touch a key: a job that is delayed by a retry, or stalled, holds it and may be replaced"},
		{rule: "Q12", name: "cancel-by-key", run: dedupeCancelByKey, needs: admin,
			demands: "CancelByKey cancels the pending job that took the key last, asks an active one to end, and is false otherwise"},
		{rule: "Q12", name: "cancel-by-key-window", run: dedupeCancelByKeyWindow, needs: admin,
			demands: "CancelByKey asks no window, and frees the key"},
		{rule: "Q15", name: "cancel-by-key-wakes", run: dedupeCancelByKeyWakes, needs: []Capability{CapDedupe, CapAdmin, CapWake}, timeless: true,
			demands: "CancelByKey of an active job wakes its worker with Control"},
		{rule: "Q8", name: "retry", run: dedupeRetry, needs: admin,
			demands: "a retried job takes its key again; if another job holds it that is a ConflictError and nothing happens"},
		{rule: "Q8", name: "retry-window", run: dedupeRetryWindow, needs: admin,
			demands: "a retried job is within its own open window as it was, and otherwise holds its key without one"},
		{rule: "Q28", name: "pruned", run: dedupePruned, needs: []Capability{CapDedupe, CapAdmin, CapRetain},
			demands: "a job that is pruned keeps its open window, with its id, unless it was cancelled"},
		{rule: "Q8", name: "remove", run: dedupeRemove, needs: admin, timeless: true,
			demands: "Remove frees the key of its job, and of no other"},
	}
}

func deduped(d core.Dedupe) mod { return func(r *core.EnqueueRequest) { r.Dedupe = &d } }

// onKey is the pending mode.
func onKey(key string) mod { return deduped(core.Dedupe{Key: key}) }

func inWindow(key string, ttl time.Duration) mod { return deduped(core.Dedupe{Key: key, TTL: ttl}) }

// dropped enqueues a job, which must be a duplicate of one that is there.
func (k *kit) dropped(why, of string, mods ...mod) {
	k.Helper()
	if got := k.enqueue(request("", mods...))[0]; got != (core.EnqueueResult{ID: of, Duplicate: true}) {
		k.failf("%s: Enqueue answered %+v, want a duplicate of %q", why, got, of)
	}
}

// finish takes one job, which must be the one with that id, and ends it.
func (k *kit) finish(id string, how core.Outcome) {
	k.Helper()
	k.ack(core.Ack{Lease: k.takeID(id).lease, Outcome: how})
}

// cancelledByKey checks what CancelByKey answers for a default job's key.
func (k *kit) cancelledByKey(what, key string, want bool) {
	k.Helper()
	got, err := k.admin.CancelByKey(k.ctx, theName, key)
	k.ok("CancelByKey", err)
	eq(k, "CancelByKey of "+what, got, want)
}

func dedupeInvalid(k *kit) {
	for _, c := range []struct {
		field string
		d     core.Dedupe
	}{
		{"Dedupe.Key", core.Dedupe{}},
		{"Dedupe.Key", core.Dedupe{TTL: time.Second}},
		{"Dedupe.Key", core.Dedupe{Key: "a\x00"}},
		{"Dedupe.Key", core.Dedupe{Key: "\xff"}},
		{"Dedupe.Key", core.Dedupe{Key: strings.Repeat("k", core.MaxKeyBytes+1)}},
		{"Dedupe.TTL", core.Dedupe{Key: "k", TTL: -1}},
		{"Dedupe.Extend", core.Dedupe{Key: "k", Extend: true}},
	} {
		res := k.enqueue(request("bad", deduped(c.d)), request(""))
		eq(k, "field", wantError[*core.InvalidError](k, "a bad "+c.field, res[0].Err).Field, c.field)
		k.ok("its neighbour", res[1].Err)
		k.finish(res[1].ID, core.OutcomeComplete)
		k.gone("bad")
	}
	if k.admin != nil {
		for _, key := range []string{"", "k", "a\x00", "\xff", strings.Repeat("k", core.MaxKeyBytes+1)} {
			k.cancelledByKey(fmt.Sprintf("a key that nobody took, %.10q", key), key, false)
		}
	}
}

func dedupeRecord(k *kit) {
	key := "a:b/c #1 größe ✓ " + strings.Repeat("k", 200)
	id := k.add("", onKey(key))
	k.add("bare")
	k.look(id, func(r core.Record) {
		eq(k, "key from Get", r.DedupeKey, key)
		eq(k, "key from List", k.list(core.Query{Ascending: true}).Jobs[0].DedupeKey, key)
	})
	h := k.takeID(id)
	eq(k, "key from Claim", h.DedupeKey, key)
	eq(k, "key of a job without", k.takeID("bare").DedupeKey, "")
	held := k.claimAs(core.ClaimRequest{Token: h.lease.Token})
	eq(k, "key from the claim that asks what a token holds", held.Jobs[0].DedupeKey, key)
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	k.look(id, func(r core.Record) { eq(k, "key of a finished job", r.DedupeKey, key) })
}

func dedupePending(k *kit) {
	first := k.add("", onKey("k"))
	k.dropped("waiting", first, onKey("k"), payload([]byte("newer")))
	h := k.takeID(first)
	k.sameBytes("payload", h.Payload, []byte(`{"n":1}`))
	k.dropped("active", first, onKey("k"))
	k.end(h, core.OutcomeRelease, core.StateWaiting)
	k.dropped("released", first, onKey("k"))
	for _, how := range []core.Outcome{core.OutcomeComplete, core.OutcomeFail, core.OutcomeCancel} {
		k.finish(first, how)
		first = k.add("", onKey("k"))
	}
	k.finish(first, core.OutcomeComplete)
	first = k.add("", onKey("k"), delay(time.Hour))
	k.dropped("delayed", first, onKey("k"))
	k.none("one job is delayed")
}

func dedupeScope(k *kit) {
	k.add("a", onKey("k"))
	k.add("b", onKey("k"), named("other"))
	k.add("c", onKey("K"))
	k.add("d", onKey("k "))
	k.add("", keyed("k"))
	k.dropped("on another queue", "a", onKey("k"), onQueue("elsewhere"))
	k.dropped("another name", "b", onKey("k"), named("other"))
	k.total(5)
}

func dedupeIDFirst(k *kit) {
	k.add("x", onKey("k"))
	k.finish("x", core.OutcomeComplete)
	k.add("j", onKey("k"), delay(time.Minute), payload([]byte("j")))
	res := k.enqueue(request("x", deduped(core.Dedupe{Key: "k", TTL: time.Hour, Replace: true}), payload([]byte("x"))),
		request("x", onKey("k"), named("rival")), request("x", onKey("new")))
	eq(k, "an id that exists", res[0], core.EnqueueResult{ID: "x", Duplicate: true})
	eq(k, "its holder", wantError[*core.ConflictError](k, "an id of another name", res[1].Err).Name, theName)
	eq(k, "under a key that is free", res[2], core.EnqueueResult{ID: "x", Duplicate: true})
	k.add("y", onKey("new"))
	k.finish("y", core.OutcomeComplete)
	k.advance(time.Minute)
	h := k.takeID("j")
	k.sameBytes("payload", h.Payload, []byte("j"))
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	k.add("z", onKey("k")) // no window was opened
}

func dedupeIDAndKey(k *kit) {
	k.add("one", onKey("k"))
	got := k.enqueue(request("two", onKey("k")))[0]
	eq(k, "another id under the key", got, core.EnqueueResult{ID: "one", Duplicate: true})
	k.gone("two")
	got = k.enqueue(request("", keyed("id"), onKey("k")))[0]
	eq(k, "an idempotency key under the key", got, core.EnqueueResult{ID: "one", Duplicate: true})
	k.finish("one", core.OutcomeComplete)
	got = k.enqueue(request("one", onKey("k")))[0]
	eq(k, "the id of a finished job", got, core.EnqueueResult{ID: "one", Duplicate: true})
	k.add("two", onKey("k"))
	k.total(2)
}

func dedupeWindow(k *kit) {
	const ttl = time.Minute
	first := k.add("", inWindow("k", ttl))
	k.dropped("waiting", first, inWindow("k", ttl))
	k.finish(first, core.OutcomeComplete)
	k.advance(ttl / 2)
	k.dropped("completed, inside the window", first, inWindow("k", ttl))
	k.advance(ttl/2 - time.Microsecond)
	k.dropped("the last microsecond of the window", first, inWindow("k", ttl))
	k.advance(time.Microsecond)
	second := k.add("", inWindow("k", ttl))
	k.finish(second, core.OutcomeFail)
	k.dropped("failed, inside the window", second, inWindow("k", time.Hour))
	k.advance(ttl)
	k.add("", inWindow("k", time.Nanosecond))
	k.advance(time.Microsecond)
	k.add("", inWindow("k", ttl))
}

func dedupeWindowPending(k *kit) {
	first := k.add("", inWindow("k", time.Minute))
	k.advance(time.Minute)
	second := k.add("", inWindow("k", time.Minute))
	k.dropped("the second window", second, onKey("k"))
	k.finish(first, core.OutcomeComplete) // writes nothing of the key's
	k.dropped("the second window", second, onKey("k"))
	h := k.takeID(second)
	k.advance(time.Minute)
	k.add("", onKey("k"))
	k.end(h, core.OutcomeComplete, core.StateCompleted)
}

func dedupeExtend(k *kit) {
	const ttl = time.Minute
	extend := deduped(core.Dedupe{Key: "k", TTL: ttl, Extend: true})
	first := k.add("", extend)
	for range 3 {
		k.advance(45 * time.Second)
		k.dropped("45 s after the one before", first, extend)
	}
	k.finish(first, core.OutcomeComplete)
	k.advance(ttl - time.Microsecond)
	k.dropped("just before the end", first, extend)
	k.advance(ttl)
	second := k.add("", inWindow("k", time.Hour))
	k.dropped("by less than was left", second, extend)
	k.advance(ttl)
	k.add("", onKey("k"))
}

func dedupeMixed(k *kit) {
	pending := k.add("", onKey("p"))
	k.dropped("no window is opened", pending, inWindow("p", time.Hour))
	k.dropped("nor by Extend", pending, deduped(core.Dedupe{Key: "p", TTL: time.Hour, Extend: true}))
	k.advance(2 * time.Hour)
	k.dropped("pending for ever", pending, onKey("p"))
	k.finish(pending, core.OutcomeComplete)
	k.add("", onKey("p"))

	window := k.add("", inWindow("w", time.Minute))
	k.dropped("the window is kept", window, onKey("w"))
	k.dropped("and not moved", window, inWindow("w", time.Hour))
	k.advance(time.Minute)
	k.add("", inWindow("w", time.Minute))
}

func dedupeEndedInWindow(k *kit) {
	id := k.add("", inWindow("k", time.Hour))
	k.cancel(id, core.StateCancelled)
	id = k.add("", inWindow("k", time.Hour))
	h := k.takeID(id)
	k.cancel(id, core.StateActive)
	k.dropped("asked to end, and did not yet", id, onKey("k"))
	k.end(h, core.OutcomeRelease, core.StateCancelled)
	id = k.add("", inWindow("k", time.Hour))
	removed, err := k.admin.Remove(k.ctx, id)
	k.ok("Remove", err)
	eq(k, "removed", removed, true)
	id = k.add("", inWindow("k", time.Hour))
	k.finish(id, core.OutcomeFail)
	k.dropped("failed", id, onKey("k"))
	removed, err = k.admin.Remove(k.ctx, id)
	k.ok("Remove", err)
	eq(k, "removed", removed, true)
	k.add("", onKey("k"))
}

func dedupeBatch(k *kit) {
	res := k.enqueue(request("", onKey("k")), request(""), request("", onKey("k")), request("", onKey("k"), named("other")))
	for i, dup := range []bool{false, false, true, false} {
		if res[i].Err != nil || res[i].Duplicate != dup {
			k.failf("result %d is %+v, want Duplicate %v", i, res[i], dup)
		}
	}
	eq(k, "the third id", res[2].ID, res[0].ID)
	k.drain("jobs", res[0].ID, res[1].ID)

	replace := deduped(core.Dedupe{Key: "r", Replace: true})
	res = k.enqueue(
		request("a", replace, delay(time.Hour), payload([]byte("1"))),
		request("", replace, delay(time.Minute), payload([]byte("2")), prio(3)),
		request("b"),
		request("bad", replace, prio(99)),
		request("w", inWindow("w", time.Minute)),
		request("", deduped(core.Dedupe{Key: "w", TTL: time.Hour, Extend: true})),
	)
	for i, want := range []core.EnqueueResult{{ID: "a"}, {ID: "a", Duplicate: true}, {ID: "b"}, {}, {ID: "w"}, {ID: "w", Duplicate: true}} {
		if i == 3 {
			wantError[*core.InvalidError](k, "the bad item", res[i].Err)
		} else if res[i] != want {
			k.failf("result %d is %+v, want %+v", i, res[i], want)
		}
	}
	k.drain("jobs", "b", "w")
	k.advance(time.Minute)
	h := k.takeID("a")
	k.sameBytes("payload", h.Payload, []byte("2"))
	eq(k, "priority", h.Priority, 3)
	k.dropped("the window that was extended at once", "w", onKey("w"))

	// A job that was there, made to wait by the first of three.
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	k.add("c", replace, delay(time.Hour))
	res = k.enqueue(request("", replace, payload([]byte("now"))), request("", replace, payload([]byte("late"))), request("d", onKey("r")))
	for i := range res {
		eq(k, "result", res[i], core.EnqueueResult{ID: "c", Duplicate: true})
	}
	k.sameBytes("payload", k.takeID("c").Payload, []byte("now"))
	k.gone("d")
}

func dedupeBatchIDs(k *kit) {
	res := k.enqueue(
		request("a", onKey("k")), request("b", onKey("k")), request("b"), request("a", onKey("l")), request("c", onKey("l")),
		request("c", onKey("m"), named("rival")), request("d", onKey("m"), named("rival")),
	)
	for i, want := range []core.EnqueueResult{
		{ID: "a"}, {ID: "a", Duplicate: true}, {ID: "b"}, {ID: "a", Duplicate: true}, {ID: "c"}, {}, {ID: "d"},
	} {
		if i == 5 {
			wantError[*core.ConflictError](k, "an id of another name", res[i].Err)
		} else if res[i] != want {
			k.failf("result %d is %+v, want %+v", i, res[i], want)
		}
	}
	c := k.drain("jobs", "a", "b", "c")
	eq(k, "key of a", c.Jobs[0].DedupeKey, "k")
	eq(k, "key of b", c.Jobs[1].DedupeKey, "")
	k.total(4)
}

func dedupeBatchLarge(k *kit) {
	const n = 800
	reqs := make([]core.EnqueueRequest, n)
	for i := range reqs {
		reqs[i] = request("", onKey(fmt.Sprintf("key-%d", (i*7)%(n/2))))
	}
	reqs[n/2-1] = request("last")
	res := k.enqueue(reqs...)
	first := map[string]string{}
	var order []string
	for i, r := range res {
		k.ok("Enqueue", r.Err)
		if reqs[i].Dedupe == nil {
			order = append(order, r.ID)
			continue
		}
		id, seen := first[reqs[i].Dedupe.Key]
		if r.Duplicate != seen || seen && r.ID != id {
			k.failf("result %d is %+v, with %q there before", i, r, id)
		}
		if !seen {
			first[reqs[i].Dedupe.Key] = r.ID
			order = append(order, r.ID)
		}
	}
	eqs(k, "jobs", k.claim(want(n)).ids(), order)
	for i, r := range k.enqueue(reqs...) {
		if r.Err != nil || !r.Duplicate {
			k.failf("result %d of the repeat is %+v", i, r)
		}
	}
}
