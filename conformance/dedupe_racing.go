package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func dedupeRacingCases() []testCase {
	const limit = 60 * time.Second
	needs, tx := []Capability{CapDedupe}, []Capability{CapDedupe, CapTx}
	return []testCase{
		{rule: "Q12", name: "first-enqueues", run: dedupeFirst, needs: needs, limit: limit, timeless: true,
			demands: "concurrent first enqueues under one key make one job; all but one are its duplicates"},
		{rule: "Q12", name: "taken-over", run: dedupeTakenOver, needs: needs, limit: limit,
			demands: "concurrent enqueues under a key that became free make one job"},
		{rule: "Q11", name: "overlapping-batches", run: dedupeOverlapping, needs: needs, limit: limit,
			demands: "batches that overlap in ids and keys, in any order, make one job for each and do not deadlock"},
		{rule: "Q8", name: "retries", run: dedupeRacingRetries, needs: []Capability{CapDedupe, CapAdmin}, limit: limit,
			demands: "of retries and enqueues that race for a key one gets it"},
		{rule: "Q12", name: "everything-at-once", run: dedupeEverything, needs: []Capability{CapDedupe, CapAdmin, CapInspector}, limit: limit,
			demands: "under any racing calls a key has one pending job at most, and what runs is what its record says"},
		{rule: "Q14", name: "tx-commit", run: dedupeTxCommit, needs: tx, timeless: true,
			demands: "a key that a transaction took is taken by commit"},
		{rule: "Q14", name: "tx-rollback", run: dedupeTxRollback, needs: tx,
			demands: "what a transaction that is rolled back did about keys never was"},
		{rule: "Q14", name: "tx-inside", run: dedupeTxInside, needs: tx,
			demands: "a transaction sees what it did about keys itself, and that the job that it completes has ended"},
		{rule: "Q14", name: "tx-replace", run: dedupeTxReplace, needs: tx,
			demands: "a replace in a transaction takes effect by commit"},
		{rule: "Q14", name: "tx-race", run: dedupeTxRace, needs: tx, limit: limit, timeless: true,
			demands: "an enqueue that races a transaction for its key makes the only job if that is rolled back, and none if it commits"},
	}
}

func dedupeFirst(k *kit) {
	const racers, rounds = 6, 8
	stores := []core.Store{k.store}
	if k.suite.has[CapOpen] {
		stores = append(stores, k.other().store)
	}
	for round := range rounds {
		key, made := fmt.Sprintf("key-%d", round), newTally()
		ids := make([]string, racers)
		k.race(racers, func(ctx context.Context, worker int) error {
			d := core.Dedupe{Key: key}
			if round%2 == 0 {
				d.TTL = time.Hour
			}
			res, err := stores[worker%len(stores)].Enqueue(ctx, []core.EnqueueRequest{request("", deduped(d))})
			if err := firstErr(res, err); err != nil {
				return err
			}
			if ids[worker] = res[0].ID; !res[0].Duplicate {
				made.add(key)
			}
			return nil
		})
		eq(k, "first enqueues under "+key, made.n[key], 1)
		for _, id := range ids {
			eq(k, "id answered under "+key, id, ids[0])
		}
	}
	eq(k, "jobs", len(k.claim(want(racers*rounds)).Jobs), rounds)
}

func dedupeTakenOver(k *kit) {
	const racers = 4
	for round := range 8 {
		d := core.Dedupe{Key: "k"}
		if round%2 == 0 {
			d.TTL = time.Minute
		}
		made := newTally()
		k.race(racers, func(ctx context.Context, _ int) error {
			res, err := k.store.Enqueue(ctx, []core.EnqueueRequest{request("", deduped(d))})
			if err := firstErr(res, err); err != nil {
				return err
			}
			if !res[0].Duplicate {
				made.add(res[0].ID)
			}
			return nil
		})
		eq(k, "jobs made", len(made.n), 1)
		h := k.take()
		eq(k, "made", made.n[h.ID], 1)
		k.end(h, core.OutcomeComplete, core.StateCompleted)
		k.none("there was one")
		k.advance(time.Minute)
	}
}

func dedupeOverlapping(k *kit) {
	const n, racers = 60, 4
	made := newTally()
	k.race(racers, func(ctx context.Context, worker int) error {
		reqs := make([]core.EnqueueRequest, n)
		for i := range reqs {
			at := i
			switch worker % 3 {
			case 1:
				at = n - 1 - i
			case 2:
				at = (i*7 + worker*31) % n
			}
			reqs[i] = request("", onKey(fmt.Sprintf("key-%d", at)))
			switch at % 3 {
			case 1:
				reqs[i] = request(fmt.Sprintf("id-%d", n-at))
			case 2:
				reqs[i] = request(fmt.Sprintf("id-%d", n-at), onKey(fmt.Sprintf("key-%d", at)))
			}
		}
		res, err := k.store.Enqueue(ctx, reqs)
		if err != nil {
			return err
		}
		for _, r := range res {
			switch {
			case r.Err != nil:
				return r.Err
			case !r.Duplicate && made.add(r.ID) > 1:
				return fmt.Errorf("two batches were told that they made %q", r.ID)
			}
		}
		return nil
	})
	eq(k, "jobs made", len(made.n), n)
	eq(k, "jobs", len(k.claim(want(n*racers)).Jobs), n)
	k.total(n)
}

func dedupeRacingRetries(k *kit) {
	for round := range 6 {
		key := fmt.Sprintf("key-%d", round)
		ids := []string{key + "-a", key + "-b"}
		for _, id := range ids {
			k.add(id, onKey(key))
			k.finish(id, core.OutcomeFail)
		}
		won := newTally()
		k.race(4, func(ctx context.Context, worker int) error {
			if worker < 2 {
				err := k.admin.Retry(ctx, ids[worker])
				if err == nil {
					won.add(ids[worker])
				}
				if _, ok := errors.AsType[*core.ConflictError](err); ok {
					err = nil
				}
				return err
			}
			res, err := k.store.Enqueue(ctx, []core.EnqueueRequest{request("", onKey(key))})
			if err := firstErr(res, err); err != nil {
				return err
			}
			if !res[0].Duplicate {
				won.add(res[0].ID)
			}
			return nil
		})
		eq(k, "who got "+key, len(won.n), 1)
		h := k.take()
		eq(k, "the job that runs", won.n[h.ID], 1)
		k.end(h, core.OutcomeComplete, core.StateCompleted)
		k.none("one got the key")
	}
}

func dedupeTxCommit(k *kit) {
	view, commit, _ := k.open()
	res := txAdd(k, view, request("", onKey("k")), request("", onKey("k")), request("b", inWindow("w", time.Hour)))
	if res[0].Duplicate || res[0].Err != nil || res[1] != (core.EnqueueResult{ID: res[0].ID, Duplicate: true}) {
		k.failf("Enqueue in a transaction answered %+v", res)
	}
	commit()
	k.dropped("taken by the commit", res[0].ID, onKey("k"))
	k.dropped("taken by the commit", "b", onKey("w"))
	view, commit, _ = k.open()
	eq(k, "a duplicate in a transaction", txAdd(k, view, request("", onKey("k")))[0], core.EnqueueResult{ID: res[0].ID, Duplicate: true})
	commit()
	k.total(2)
}

func dedupeTxRollback(k *kit) {
	k.add("dead", onKey("dead"))
	k.finish("dead", core.OutcomeComplete)
	k.add("window", inWindow("window", time.Minute))
	k.add("later", onKey("later"), delay(time.Minute), payload([]byte("old")))
	view, _, rollback := k.open()
	res := txAdd(k, view, request("new", onKey("new")), request("over", onKey("dead")),
		request("", deduped(core.Dedupe{Key: "window", TTL: time.Hour, Extend: true})),
		request("", deduped(core.Dedupe{Key: "later", TTL: time.Hour, Replace: true}), payload([]byte("new"))))
	for i, want := range []core.EnqueueResult{{ID: "new"}, {ID: "over"}, {ID: "window", Duplicate: true}, {ID: "later", Duplicate: true}} {
		eq(k, "result", res[i], want)
	}
	rollback()
	k.gone("new")
	k.gone("over")
	k.add("n", onKey("new"))
	k.add("o", onKey("dead"))
	k.advance(time.Minute)
	k.add("w", onKey("window"))
	for _, j := range k.claim(want(10)).Jobs {
		if j.ID == "later" {
			k.sameBytes("payload", j.Payload, []byte("old"))
		}
	}
	k.dropped("pending", "later", onKey("later"))
}

func dedupeTxInside(k *kit) {
	k.add("a", onKey("k"))
	h := k.takeID("a")
	view, commit, _ := k.open()
	eq(k, "before its end", txAdd(k, view, request("b", onKey("k")))[0], core.EnqueueResult{ID: "a", Duplicate: true})
	k.ok("Complete", view.Complete(k.ctx, h.lease, nil))
	replace := deduped(core.Dedupe{Key: "k", Replace: true})
	res := txAdd(k, view, request("c", onKey("k"), delay(time.Hour)), request("", replace, delay(time.Minute), payload([]byte("2"))))
	eq(k, "its follow-up", res[0], core.EnqueueResult{ID: "c"})
	eq(k, "a replace", res[1], core.EnqueueResult{ID: "c", Duplicate: true})
	eq(k, "another call", txAdd(k, view, request("", replace, delay(time.Second), payload([]byte("3"))))[0],
		core.EnqueueResult{ID: "c", Duplicate: true})
	commit()
	k.wantState("a", core.StateCompleted)
	k.advance(time.Second)
	k.sameBytes("payload", k.takeID("c").Payload, []byte("3"))
	k.gone("b")
}

func dedupeTxReplace(k *kit) {
	replace := deduped(core.Dedupe{Key: "k", Replace: true})
	k.add("a", onKey("k"), delay(time.Hour), payload([]byte("old")))
	view, commit, _ := k.open()
	eq(k, "a replace", txAdd(k, view, request("", replace, payload([]byte("new")), prio(5)))[0], core.EnqueueResult{ID: "a", Duplicate: true})
	lost := k.passes("")
	commit()
	if len(lost) == 0 {
		k.sameBytes("payload", k.takeID("a").Payload, []byte("new"))
	}
}

// dedupeTxRace lets an enqueue race an open transaction that took its key. The enqueue may wait for the transaction, or
// win: then the transaction's commit is refused.
func dedupeTxRace(k *kit) {
	for _, commits := range []bool{false, true} {
		key := fmt.Sprintf("key-%v", commits)
		view, commit, rollback := k.suite.h.Begin(k.TB, k.store)
		k.pending = append(k.pending, rollback)
		at := len(k.pending) - 1
		inside := txAdd(k, view, request("", onKey(key)))[0]
		k.ok("Enqueue in a transaction", inside.Err)
		type answer struct {
			res []core.EnqueueResult
			err error
		}
		done := make(chan answer, 1)
		go func() {
			res, err := k.store.Enqueue(k.ctx, []core.EnqueueRequest{request("", onKey(key))})
			done <- answer{res, err}
		}()
		var early bool
		var got answer
		select {
		case got = <-done:
			early = true
		case <-time.After(quiet):
		}
		k.pending[at] = nil
		var err error
		if commits {
			err = commit()
		} else {
			k.ok("rollback", rollback())
		}
		if !early {
			got = <-done
		}
		outside := firstErr(got.res, got.err)
		switch {
		case errors.Is(outside, core.ErrUnavailable): // it did not wait so long
			k.ok("commit", err)
		case outside != nil:
			k.failf("Enqueue beside a transaction: %v", outside)
		case commits && err == nil:
			eq(k, "the answer", got.res[0], core.EnqueueResult{ID: inside.ID, Duplicate: true})
		case commits:
			k.is("commit", err, core.ErrRetryTx)
			eq(k, "Duplicate", got.res[0].Duplicate, false)
		default:
			eq(k, "Duplicate", got.res[0].Duplicate, false)
		}
		if outside == nil || commits {
			h := k.take()
			k.dropped("the only job", h.ID, onKey(key))
			k.none("there is one job")
		}
	}
}
