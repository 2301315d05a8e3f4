package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

func retainCases() []testCase {
	needs := []Capability{CapRetain, CapInspector}
	admin := append(slices.Clone(needs), CapAdmin)
	return []testCase{
		{rule: "Q28", name: "count", run: retainCount, needs: needs,
			demands: "with Count the newest so many of a name and state stay, by FinishedAt; what went is gone for good"},
		{rule: "Q28", name: "age", run: retainAge, needs: needs,
			demands: "with Age those go that finished at now - Age or before, to the microsecond"},
		{rule: "Q28", name: "count-and-age", run: retainCountAndAge, needs: needs,
			demands: "with Count and Age either is enough to go"},
		{rule: "Q28", name: "none", run: retainNone, needs: needs,
			demands: "with None all of the group go, and pending jobs are never touched, due or not"},
		{rule: "Q28", name: "ties", run: retainTies, needs: needs,
			demands: "of jobs that finished at one moment the one enqueued first goes first"},
		{rule: "Q28", name: "states", run: retainStates, needs: needs,
			demands: "each terminal state has its own rule"},
		{rule: "Q28", name: "cancelled", run: retainCancelled, needs: admin,
			demands: "cancelled jobs are kept by the rule for them"},
		{rule: "Q28", name: "defaults", run: retainDefaults, needs: admin,
			demands: "where nobody says, completed jobs stay a day, failed and cancelled ones a week"},
		{rule: "Q28", name: "default", run: retainDefault, needs: needs,
			demands: "PruneRequest.Default holds where the newest job's Keep says nothing of its state, and there only"},
		{rule: "Q28", name: "ceiling", run: retainCeiling, needs: needs,
			demands: "PruneRequest.Ceiling bounds whatever holds, Forever included, and never has anything stay longer"},
		{rule: "Q28", name: "newest-rules", run: retainNewest, needs: needs,
			demands: "the Keep of the newest finished job rules the whole group, whatever the older ones say"},
		{rule: "Q28", name: "newest-changes", run: retainNewestChanges, needs: admin,
			demands: "when the newest job is removed or revived the next one's Keep rules"},
		{rule: "Q28", name: "groups", run: retainGroups, needs: needs,
			demands: "a group is the finished jobs of one name and state over all queues"},
		{rule: "Q28", name: "limit", run: retainLimit, needs: needs,
			demands: "Prune deletes Limit jobs at most, oldest first over all queues of the group, and answers how many"},
		{rule: "Q28", name: "late", run: retainLate, needs: needs,
			demands: "what finished behind the back of an earlier Prune, earlier than what that deleted, goes as well"},
		{rule: "Q28", name: "revived", run: retainRevived, needs: admin,
			demands: "a job that Retry revived is not finished; when it ends again it counts from then"},
		{rule: "Q28", name: "gone", run: retainGone, needs: needs,
			demands: "a pruned job is gone with its ledger: its lease is unknown and its id makes a new job"},
		{rule: "Q28", name: "counts", run: retainCounts, needs: admin,
			demands: "counts and lists follow, and so do removals and revivals between prunes"},
		{rule: "Q13", name: "invalid", run: retainInvalid, needs: needs, timeless: true,
			demands: "a prune with a negative limit or a rule that contradicts itself is an InvalidError, and deletes nothing"},
		{rule: "Guarantees", name: "ended", run: retainEnded, needs: needs,
			demands: "a Prune whose context had ended deletes nothing, and its error wraps the context's and core.ErrUnavailable"},
	}
}

// The shorthands of the cases.
var (
	keepNone    = core.KeepRule{None: true}
	keepForever = core.KeepRule{Forever: true}
)

func keepCount(n int) core.KeepRule         { return core.KeepRule{Count: n} }
func keepAge(d time.Duration) core.KeepRule { return core.KeepRule{Age: d} }

func keeping(completed core.KeepRule) mod { return keepingAll(core.Keep{Completed: completed}) }
func keepingAll(keep core.Keep) mod       { return func(r *core.EnqueueRequest) { r.Keep = keep } }

func everyState(r core.KeepRule) core.Keep { return core.Keep{Completed: r, Failed: r, Cancelled: r} }

func (k *kit) retainer() core.Retainer {
	k.Helper()
	r, _ := core.As[core.Retainer](k.store)
	return r
}

// prunes prunes and checks how many jobs that deleted.
func (k *kit) prunes(want int, req core.PruneRequest) {
	k.Helper()
	n, err := k.retainer().Prune(k.ctx, req)
	k.ok("Prune", err)
	eq(k, fmt.Sprintf("jobs deleted by Prune %+v", req), n, want)
}

// ended enqueues a job, claims it and ends it. Nothing else of its name and queue may be runnable.
func (k *kit) ended(id string, outcome core.Outcome, mods ...mod) {
	k.Helper()
	k.add(id, mods...)
	r := request(id, mods...)
	c := k.claim(core.Want{Queue: r.Queue, Names: []string{r.Name}, Limit: 1})
	eqs(k, "claimed jobs", c.ids(), []string{id})
	k.ack(core.Ack{Lease: c.leases()[0], Outcome: outcome})
}

// completed does so with several jobs, a millisecond apart.
func (k *kit) completed(keep core.KeepRule, ids ...string) {
	k.Helper()
	for _, id := range ids {
		k.ended(id, core.OutcomeComplete, keeping(keep))
		k.advance(time.Millisecond)
	}
}

// left checks which jobs there are, in the order of insertion.
func (k *kit) left(ids ...string) {
	k.Helper()
	eqs(k, "jobs that are left", recordIDs(k.list(core.Query{Ascending: true}).Jobs), ids)
	k.total(int64(len(ids)))
}

func retainCount(k *kit) {
	k.completed(keepCount(2), "a", "b", "c", "d")
	k.prunes(2, core.PruneRequest{})
	k.left("c", "d")
	k.prunes(0, core.PruneRequest{})
	k.completed(keepCount(2), "e")
	k.prunes(1, core.PruneRequest{})
	k.left("d", "e")
	k.gone("a")
	k.advance(1000 * 24 * time.Hour) // a rule of its own: the default's Age does not hold beside it
	k.prunes(0, core.PruneRequest{})
	k.add("early", keeping(keepCount(2))) // inserted before, finished after
	early := k.takeID("early")
	k.completed(keepCount(2), "f")
	k.end(early, core.OutcomeComplete, core.StateCompleted)
	k.completed(keepCount(2), "g")
	k.prunes(3, core.PruneRequest{})
	k.left("early", "g")
}

func retainAge(k *kit) {
	k.ended("a", core.OutcomeComplete, keeping(keepAge(10*time.Second)))
	k.advance(time.Microsecond)
	k.ended("b", core.OutcomeComplete, keeping(keepAge(10*time.Second)))
	k.advance(10*time.Second - 2*time.Microsecond)
	k.prunes(0, core.PruneRequest{})
	k.left("a", "b")
	k.advance(time.Microsecond)
	k.prunes(1, core.PruneRequest{})
	k.left("b")
	k.advance(time.Microsecond)
	k.prunes(1, core.PruneRequest{})
	k.left()
	k.ended("c", core.OutcomeComplete, keeping(keepAge(time.Microsecond+1))) // less than a microsecond over counts as one
	k.advance(time.Microsecond)
	k.prunes(0, core.PruneRequest{})
	k.advance(time.Microsecond)
	k.prunes(1, core.PruneRequest{})
}

func retainCountAndAge(k *kit) {
	rule := core.KeepRule{Count: 2, Age: 10 * time.Second}
	for _, id := range []string{"a", "b", "c"} {
		k.ended(id, core.OutcomeComplete, keeping(rule))
		if id != "c" {
			k.advance(6 * time.Second)
		}
	}
	k.prunes(1, core.PruneRequest{})
	k.left("b", "c")
	k.advance(4 * time.Second)
	k.prunes(1, core.PruneRequest{})
	k.left("c")
	k.ended("d", core.OutcomeComplete, keeping(rule))
	k.ended("e", core.OutcomeComplete, keeping(rule))
	k.prunes(1, core.PruneRequest{})
	k.left("d", "e")
}

func retainNone(k *kit) {
	none := everyState(keepNone)
	k.ended("a", core.OutcomeComplete, keepingAll(none))
	k.ended("b", core.OutcomeFail, keepingAll(none))
	k.add("active", keepingAll(none))
	k.takeID("active")
	k.add("stalled", keepingAll(none))
	k.takeFor(0)
	k.add("waiting", keepingAll(none))
	k.add("due", keepingAll(none), delay(time.Second))
	k.add("delayed", keepingAll(none), delay(10000*time.Hour))
	k.advance(5000 * time.Hour)
	k.prunes(2, core.PruneRequest{Default: none, Ceiling: none})
	k.prunes(0, core.PruneRequest{Default: none, Ceiling: none})
	k.left("active", "stalled", "waiting", "due", "delayed")
}

// retainTies ends a batch in one call, in another order than it was enqueued in.
func retainTies(k *kit) {
	for _, id := range []string{"a", "b", "c"} {
		k.add(id, keeping(keepCount(1)))
	}
	c := k.claim(want(3))
	var acks []core.Ack
	for _, l := range slices.Backward(c.leases()) {
		acks = append(acks, core.Ack{Lease: l, Outcome: core.OutcomeComplete})
	}
	k.acks(acks...)
	k.prunes(1, core.PruneRequest{Limit: 1})
	k.left("b", "c")
	k.prunes(1, core.PruneRequest{})
	k.left("c")
}

func retainStates(k *kit) {
	only := keepingAll(core.Keep{Completed: keepCount(1)})
	k.ended("a", core.OutcomeComplete, only)
	k.ended("b", core.OutcomeFail, only)
	k.advance(time.Second)
	k.ended("c", core.OutcomeComplete, only)
	k.ended("d", core.OutcomeFail, only)
	k.prunes(1, core.PruneRequest{})
	k.left("b", "c", "d")
	k.wantCounts("", map[core.State]int64{core.StateCompleted: 1, core.StateFailed: 2})
	k.ended("e", core.OutcomeFail, keepingAll(core.Keep{Failed: keepNone, Cancelled: keepNone}))
	k.ended("f", core.OutcomeCancel, keepingAll(core.Keep{Failed: keepNone, Completed: keepNone}))
	k.prunes(3, core.PruneRequest{})
	k.left("c", "f")
}

func retainCancelled(k *kit) {
	for _, id := range []string{"a", "b", "c"} {
		k.add(id, keepingAll(core.Keep{Cancelled: keepCount(1)}))
		k.cancel(id, core.StateCancelled)
		k.advance(10 * time.Millisecond)
	}
	k.prunes(2, core.PruneRequest{})
	k.left("c")
	k.wantCounts("", map[core.State]int64{core.StateCancelled: 1})
}

func retainLimit(k *kit) {
	k.completed(keepNone, "a")
	k.ended("b", core.OutcomeComplete, keeping(keepNone), onQueue("another"))
	k.advance(time.Millisecond)
	k.completed(keepNone, "c")
	k.ended("d", core.OutcomeComplete, keeping(keepNone), onQueue("another"))
	k.advance(time.Millisecond)
	k.completed(keepNone, "e", "f", "g")
	k.prunes(1, core.PruneRequest{Limit: 1})
	k.left("b", "c", "d", "e", "f", "g")
	k.prunes(3, core.PruneRequest{Limit: 3})
	k.left("e", "f", "g")
	k.prunes(3, core.PruneRequest{Limit: 4})
	k.left()
	k.completed(keepCount(1), "h", "i", "j", "k")
	k.ended("x", core.OutcomeFail, keepingAll(everyState(keepNone)))
	k.ended("y", core.OutcomeComplete, keepingAll(everyState(keepNone)), named("other"))
	k.prunes(2, core.PruneRequest{Limit: 2})
	k.prunes(2, core.PruneRequest{Limit: 2})
	k.prunes(1, core.PruneRequest{Limit: 2})
	k.prunes(0, core.PruneRequest{Limit: 2})
	k.left("k")
}

// retainLate has a full batch that goes up to a moment, and then jobs that end at or before it.
func retainLate(k *kit) {
	k.add("early", keeping(keepNone))
	early := k.takeID("early")
	k.completed(keepNone, "a")
	k.ended("b", core.OutcomeComplete, keeping(keepNone))
	k.prunes(2, core.PruneRequest{Limit: 2})
	k.end(early, core.OutcomeComplete, core.StateCompleted) // at the same moment as b, and inserted before
	k.prunes(1, core.PruneRequest{Limit: 2})
	k.left()
	k.completed(keepNone, "c", "d")
	k.prunes(2, core.PruneRequest{Limit: 2})
	k.advance(-time.Hour)
	k.completed(keepNone, "e")
	k.prunes(1, core.PruneRequest{})
	k.left()
}

func retainRevived(k *kit) {
	hour := keepingAll(core.Keep{Failed: keepAge(time.Hour), Cancelled: keepAge(time.Hour), Completed: keepAge(time.Hour)})
	k.ended("a", core.OutcomeFail, hour)
	k.ended("b", core.OutcomeCancel, hour)
	k.ended("c", core.OutcomeFail, hour)
	k.advance(2 * time.Hour)
	k.ok("Retry", k.admin.Retry(k.ctx, "a"))
	k.ok("Retry", k.admin.Retry(k.ctx, "b"))
	k.prunes(1, core.PruneRequest{})
	k.left("a", "b")
	k.wantLedger("a", core.OutcomeFail)
	c := k.drain("jobs that were revived", "a", "b")
	k.ack(core.Ack{Lease: c.leases()[0], Outcome: core.OutcomeFail})
	k.prunes(0, core.PruneRequest{})
	k.wantLedger("a", core.OutcomeFail, core.OutcomeFail)
	k.advance(time.Hour)
	k.prunes(1, core.PruneRequest{})
	k.left("b")
}

func retainGone(k *kit) {
	k.add("a", keeping(keepNone), payload([]byte("old")))
	h := k.takeID("a")
	k.endIn(h, core.OutcomeRetry, 0, core.StateWaiting)
	h = k.takeID("a")
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	res := k.enqueue(request("", keyed("k"), keeping(keepNone)))
	key := res[0].ID
	k.end(k.takeID(key), core.OutcomeComplete, core.StateCompleted)
	k.prunes(2, core.PruneRequest{})
	for _, id := range []string{"a", key} {
		k.gone(id)
	}
	k.refused(h.lease, core.OutcomeComplete, core.ErrNotFound)
	k.total(0)
	eqs(k, "list of finished jobs", recordIDs(k.list(core.Query{OrderBy: core.OrderFinished, States: []core.State{core.StateCompleted}}).Jobs), nil)
	k.none("everything is gone")
	k.add("a", payload([]byte("new")))
	if res := k.enqueue(request("", keyed("k")))[0]; res.Err != nil || res.Duplicate || res.ID != key {
		k.failf("Enqueue with the key of a job that was pruned answered %+v", res)
	}
	k.refused(h.lease, core.OutcomeComplete, core.ErrLeaseLost)
	again := k.takeID("a")
	k.sameBytes("payload", again.Payload, []byte("new"))
	eq(k, "fence of a new job", again.Fence, 1)
	eq(k, "runs of a new job", again.Runs, 0)
	k.wantLedger("a")
}

func retainCounts(k *kit) {
	k.completed(keepCount(1), "a", "b", "c")
	k.prunes(2, core.PruneRequest{})
	k.add("d")
	k.cancel("d", core.StateCancelled)
	k.ended("e", core.OutcomeFail)
	k.ok("Retry", k.admin.Retry(k.ctx, "e"))
	k.prunes(0, core.PruneRequest{})
	if removed, err := k.admin.Remove(k.ctx, "c"); err != nil || !removed {
		k.failf("Remove: %v, %v", removed, err)
	}
	k.prunes(0, core.PruneRequest{})
	want := map[core.State]int64{core.StateWaiting: 1, core.StateCancelled: 1}
	k.wantCounts("", want)
	k.wantCounts(theQueue, want)
	k.left("d", "e")
}

func retainInvalid(k *kit) {
	k.add("a", keeping(keepNone))
	k.end(k.takeID("a"), core.OutcomeComplete, core.StateCompleted)
	for field, req := range map[string]core.PruneRequest{
		"Limit":             {Limit: -1},
		"Default.Completed": {Default: core.Keep{Completed: keepCount(-1)}},
		"Default.Failed":    {Default: core.Keep{Failed: keepAge(-1)}},
		"Ceiling.Cancelled": {Ceiling: core.Keep{Cancelled: core.KeepRule{None: true, Forever: true}}},
		"Ceiling.Completed": {Ceiling: core.Keep{Completed: core.KeepRule{None: true, Count: 1}}},
	} {
		n, err := k.retainer().Prune(k.ctx, req)
		eq(k, "InvalidError.Field", wantError[*core.InvalidError](k, "Prune with a bad "+field, err).Field, field)
		eq(k, "jobs deleted", n, 0)
	}
	k.left("a")
}

func retainEnded(k *kit) {
	k.completed(keepNone, "a")
	for _, ctx := range k.endedContexts() {
		n, err := k.retainer().Prune(ctx, core.PruneRequest{})
		k.is("Prune with a context that had ended", err, ctx.Err())
		k.is("Prune with a context that had ended", err, core.ErrUnavailable)
		eq(k, "jobs deleted", n, 0)
	}
	k.left("a")
}
