package conformance

import (
	"time"

	"github.com/stintmq/stint/core"
)

func dedupeRetried(k *kit) {
	replace := deduped(core.Dedupe{Key: "k", Replace: true})
	id := k.add("", onKey("k"))
	h := k.take()
	k.endIn(h, core.OutcomeRetry, time.Minute, core.StateDelayed)
	k.dropped("a retry waits for its time", id, onKey("k"))
	k.dropped("and is replaced", id, replace, payload([]byte("newer")), delay(time.Hour))
	k.advance(time.Minute)
	k.none("it is delayed by what replaced it")
	k.advance(time.Hour - time.Minute)
	h = k.takeFor(time.Second)
	k.sameBytes("payload", h.Payload, []byte("newer"))
	eq(k, "attempts", h.Attempts, 1)
	eq(k, "fence", h.Fence, 2)
	k.advance(time.Second)
	k.swept(id)
	k.dropped("it stalled", id, replace, payload([]byte("newest")))
	h = k.takeID(id)
	k.sameBytes("payload", h.Payload, []byte("newest"))
	eq(k, "stalls", h.Stalls, 1)
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	k.add("", onKey("k"))
}

func dedupeCancelByKey(k *kit) {
	k.cancelledByKey("nobody's key", "k", false)
	k.add("delayed", onKey("k"), delay(time.Hour))
	other, err := k.admin.CancelByKey(k.ctx, "other", "k")
	k.ok("CancelByKey", err)
	eq(k, "CancelByKey of another name", other, false)
	k.cancelledByKey("a delayed job", "k", true)
	k.wantState("delayed", core.StateCancelled)
	k.wantLedger("delayed", core.OutcomeCancel)
	k.cancelledByKey("a cancelled job", "k", false)

	k.add("waiting", onKey("k"))
	k.cancelledByKey("a waiting job", "k", true)
	k.wantState("waiting", core.StateCancelled)
	k.none("it is cancelled")

	k.add("active", onKey("k"))
	h := k.takeID("active")
	k.cancelledByKey("an active job", "k", true)
	k.cancelledByKey("one that was asked before", "k", true)
	k.wantState("active", core.StateActive)
	x := k.extend(theLease, h.lease)
	eqs(k, "CancelRequested", leaseIDs(x.CancelRequested), []string{"active"})
	k.end(h, core.OutcomeRelease, core.StateCancelled)
	k.cancelledByKey("one that ended", "k", false)

	k.add("done", onKey("k"))
	k.finish("done", core.OutcomeComplete)
	k.cancelledByKey("a completed job", "k", false)
	k.wantState("done", core.StateCompleted)
	k.add("due", onKey("k"), delay(time.Second))
	k.advance(time.Second)
	k.cancelledByKey("a job that is due", "k", true)
	k.wantState("due", core.StateCancelled)
}

func dedupeCancelByKeyWindow(k *kit) {
	k.add("a", inWindow("k", time.Hour))
	k.finish("a", core.OutcomeComplete)
	k.cancelledByKey("a completed job in its window", "k", false)
	k.dropped("its window is open", "a", onKey("k"))
	k.advance(time.Hour)
	k.add("b", inWindow("k", time.Minute))
	k.advance(time.Minute)
	k.cancelledByKey("a pending job whose window ended", "k", true)
	k.wantState("b", core.StateCancelled)
	k.add("c", inWindow("k", time.Minute))
	k.cancelledByKey("a pending job in its window", "k", true)
	k.add("d", inWindow("k", time.Minute))
	k.add("e", onKey("l"))
	k.advance(time.Minute)
	k.add("f", onKey("k"))
	k.cancelledByKey("the newer of two", "k", true)
	k.wantState("d", core.StateWaiting)
	k.wantState("f", core.StateCancelled)
}

func dedupeCancelByKeyWakes(k *kit) {
	k.add("a", onKey("k"))
	k.take()
	since := k.current()
	k.cancelledByKey("an active job", "k", true)
	k.controlled("CancelByKey", nil, since)
}

// retryConflicts checks that a job cannot be retried, since another holds its key.
func (k *kit) retryConflicts(id, key, holder string) {
	k.Helper()
	err := k.admin.Retry(k.ctx, id)
	got := *wantError[*core.ConflictError](k, "Retry of "+id, err)
	eq(k, "the conflict", got, core.ConflictError{Name: theName, Key: key, ID: holder})
}

func dedupeRetry(k *kit) {
	k.add("a", onKey("k"), delay(time.Hour))
	k.cancel("a", core.StateCancelled)
	k.add("b", onKey("k"))
	k.retryConflicts("a", "k", "b")
	h := k.takeID("b")
	k.retryConflicts("a", "k", "b")
	k.wantState("a", core.StateCancelled)
	k.wantLedger("a", core.OutcomeCancel)
	k.end(h, core.OutcomeFail, core.StateFailed)
	k.ok("Retry once the key is free", k.admin.Retry(k.ctx, "a"))
	k.dropped("it has its key again", "a", onKey("k"))
	k.retryConflicts("b", "k", "a")
	k.finish("a", core.OutcomeComplete)
	k.ok("Retry of b", k.admin.Retry(k.ctx, "b"))
	k.dropped("b has its key again", "b", onKey("k"))
	k.is("Retry of a job that waits", retryState(k, "b"), nil)
	k.finish("b", core.OutcomeFail)

	k.add("w", inWindow("k", time.Minute))
	k.finish("w", core.OutcomeComplete)
	k.retryConflicts("b", "k", "w")
	k.advance(time.Minute)
	k.ok("Retry once the window ended", k.admin.Retry(k.ctx, "b"))
	k.advance(time.Hour)
	k.dropped("without a window", "b", onKey("k"))
	k.finish("b", core.OutcomeFail)

	k.add("pending", inWindow("k", time.Minute))
	k.advance(time.Minute)
	k.ok("Retry beside a pending job whose window ended", k.admin.Retry(k.ctx, "b"))
	k.dropped("it took the key", "b", onKey("k"))
}

// retryState checks that a job that is not at its end cannot be retried, key or not.
func retryState(k *kit, id string) error {
	k.Helper()
	wantError[*core.StateError](k, "Retry of "+id, k.admin.Retry(k.ctx, id))
	return nil
}

func dedupeRetryWindow(k *kit) {
	for _, end := range []core.Outcome{core.OutcomeFail, core.OutcomeCancel} {
		key, id := string(end), "in-"+string(end)
		k.add(id, inWindow(key, time.Minute))
		k.finish(id, end)
		k.ok("Retry inside the window", k.admin.Retry(k.ctx, id))
		k.dropped("inside the window", id, onKey(key))
		k.finish(id, core.OutcomeFail)
		k.dropped("the window is as it was", id, onKey(key))
		k.advance(time.Minute)
		k.ok("Retry after the window", k.admin.Retry(k.ctx, id))
		k.advance(time.Hour)
		k.dropped("pending, without a window", id, onKey(key))
		k.finish(id, core.OutcomeFail)
		k.add("after-"+string(end), onKey(key))
		k.finish("after-"+string(end), core.OutcomeComplete)
	}
}

func dedupePruned(k *kit) {
	const ttl = time.Hour
	none := core.KeepRule{None: true}
	prune := func(n int) {
		k.Helper()
		got, err := k.retainer().Prune(k.ctx, core.PruneRequest{Default: core.Keep{Completed: none, Failed: none, Cancelled: none}})
		k.ok("Prune", err)
		eq(k, "pruned", got, n)
	}
	k.add("completed", inWindow("c", ttl))
	own := k.add("", inWindow("f", ttl))
	k.finish("completed", core.OutcomeComplete)
	k.finish(own, core.OutcomeFail)
	k.add("cancelled", inWindow("x", ttl))
	k.cancel("cancelled", core.StateCancelled)
	k.add("pending", onKey("p"))
	k.finish("pending", core.OutcomeComplete)
	k.add("waits", inWindow("w", ttl))
	prune(4)
	k.gone("completed")
	k.dropped("its window is open", "completed", onKey("c"))
	k.dropped("its window is open", own, deduped(core.Dedupe{Key: "f", Extend: true, TTL: 2 * ttl}))
	k.cancelledByKey("a pruned job", "c", false)
	k.add("x", onKey("x"))
	k.add("p", onKey("p"))
	k.advance(ttl)
	prune(0)
	k.add("c", onKey("c"))
	k.dropped("its window was extended", own, onKey("f"))
	k.cancelledByKey("a pending job whose window ended", "w", true)
	k.advance(ttl)
	prune(1)
	k.add("f", onKey("f"))
	k.add("w", onKey("w"))
	prune(0)
	k.dropped("f has the key", "f", onKey("f"))
}

func dedupeRemove(k *kit) {
	remove := func(id string) {
		k.Helper()
		removed, err := k.admin.Remove(k.ctx, id)
		k.ok("Remove", err)
		eq(k, "removed "+id, removed, true)
	}
	k.add("a", onKey("k"))
	remove("a")
	k.add("b", onKey("k"))
	k.finish("b", core.OutcomeFail)
	k.add("c", onKey("k"), delay(time.Hour))
	remove("b") // whose key is c's by now
	k.dropped("c has the key", "c", onKey("k"))
	remove("c")
	k.add("d", onKey("k"))
	h := k.takeID("d")
	removed, err := k.admin.Remove(k.ctx, "d")
	k.ok("Remove", err)
	eq(k, "removed an active job", removed, false)
	k.dropped("an active job is not removed", "d", onKey("k"))
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	k.add("d2", onKey("k"))
}
