package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

func txCases() []testCase {
	needs := []Capability{CapTx}
	return []testCase{
		{rule: "Q14", name: "enqueue-commit", run: txCommit, needs: needs, timeless: true,
			demands: "what is enqueued in a transaction is there by commit, and not before"},
		{rule: "Q14", name: "enqueue-rollback", run: txRollback, needs: needs, timeless: true,
			demands: "what is enqueued in a transaction that is rolled back never was: its ids are free"},
		{rule: "Q14", name: "enqueue-like-any-other", run: txEnqueue, needs: needs,
			demands: "an enqueue in a transaction is checked, answered and stored like any other"},
		{rule: "Q14", name: "wakes-by-commit", run: txWake, needs: []Capability{CapTx, CapWake}, timeless: true,
			demands: "an enqueue in a transaction wakes by commit only; one that is rolled back takes nobody's wake"},
		{rule: "Q14", name: "complete-commit", run: txComplete, needs: needs,
			demands: "Complete in a transaction ends the job by commit, like an ack, and not before"},
		{rule: "Q14", name: "complete-rollback", run: txCompleteRollback, needs: needs, timeless: true,
			demands: "a rolled back Complete leaves the lease as it was"},
		{rule: "Q14", name: "complete-refused", run: txCompleteRefused, needs: needs,
			demands: "Complete of a lost lease is ErrLeaseLost, of an unknown job ErrNotFound, and the rest of the transaction lands"},
		{rule: "Q14", name: "complete-once", run: txCompleteOnce, needs: needs, timeless: true,
			demands: "a repeated Complete is ErrLeaseLost, in the same transaction and in a later one"},
		{rule: "Q14", name: "complete-among-heartbeats", run: txCompleteAmongHeartbeats, needs: needs, timeless: true,
			demands: "a lease that is extended at the same moment is completed all the same"},
		{rule: "Q14", name: "complete-by-id", run: txCompleteByID, needs: needs, timeless: true,
			demands: "where a lease's Ref and id disagree, Complete goes by the id"},
		{rule: "Q14", name: "complete-and-enqueue", run: txCompleteAndEnqueue, needs: needs, timeless: true,
			demands: "a job's end and its follow-up are one commit"},
		{rule: "Q14", name: "complete-wins-over-cancel", run: txCompleteCancel, needs: []Capability{CapTx, CapAdmin}, timeless: true,
			demands: "Complete in a transaction wins over a pending cancel, as an ack does"},
	}
}

// open begins a transaction. A case that fails before it ends it leaves that to undo.
func (k *kit) open() (core.TxView, func(), func()) {
	k.Helper()
	view, commit, rollback := k.suite.h.Begin(k.TB, k.store)
	at := len(k.pending)
	k.pending = append(k.pending, rollback)
	end := func(what string, how func() error) func() {
		return func() {
			k.Helper()
			k.pending[at] = nil
			k.ok(what, how())
		}
	}
	return view, end("commit", commit), end("rollback", rollback)
}

// undo rolls back what a failed case left open: the store's own cleanup may have to wait for it.
func (k *kit) undo() {
	for _, rollback := range k.pending {
		if rollback != nil {
			_ = rollback() // the case has failed already
		}
	}
}

// stillActive checks from outside that a job has not ended while a transaction is open.
func (k *kit) stillActive(id string) {
	k.Helper()
	if k.insp == nil {
		return
	}
	ctx, cancel := context.WithTimeout(k.ctx, 50*time.Millisecond)
	defer cancel()
	if r, err := k.insp.Get(ctx, id); err == nil {
		eq(k, "state before the commit", r.State, core.StateActive)
	}
}

func txAdd(k *kit, view core.TxView, reqs ...core.EnqueueRequest) []core.EnqueueResult {
	k.Helper()
	res, err := view.Enqueue(k.ctx, reqs)
	k.ok("Enqueue in a transaction", err)
	eq(k, "results", len(res), len(reqs))
	return res
}

func txCommit(k *kit) {
	view, commit, _ := k.open()
	res := txAdd(k, view, request("a"), request(""), request("b", delay(time.Hour)))
	for _, r := range res {
		if r.Err != nil || r.Duplicate || r.ID == "" {
			k.failf("Enqueue in a transaction answered %+v", r)
		}
	}
	lost := k.passes("")
	commit()
	k.total(3)
	if len(lost) == 0 {
		k.drain("jobs after the commit", "a", res[1].ID)
		return
	}
	var ids []string
	for _, id := range []string{"a", res[1].ID} {
		k.until(id+" is claimed", func() bool {
			ids = append(ids, k.claim(want(100)).ids()...)
			return slices.Contains(ids, id) || k.holdsAny(lost, id)
		})
	}
}

func txRollback(k *kit) {
	view, _, rollback := k.open()
	txAdd(k, view, request("a", payload([]byte("rolled back"))), request(""))
	k.passes("")
	rollback()
	k.total(0)
	k.gone("a")
	k.none("it was rolled back")
	k.add("a", payload([]byte("later")))
	k.sameBytes("payload", k.takeID("a").Payload, []byte("later"))
}

func txEnqueue(k *kit) {
	k.add("held", named("holder"))
	k.add("there")
	k.takeID("there")
	view, commit, _ := k.open()
	full := fullRequest("full")
	res := txAdd(k, view, request("bad", prio(99)), request("held"), request("there"), full, request("a"), request("a"))
	wantError[*core.InvalidError](k, "a bad item", res[0].Err)
	eq(k, "the holder's name", wantError[*core.ConflictError](k, "a held id", res[1].Err).Name, "holder")
	for i, want := range []core.EnqueueResult{2: {ID: "there", Duplicate: true}, 3: {ID: "full"}, 4: {ID: "a"}, 5: {ID: "a", Duplicate: true}} {
		if i >= 2 {
			eq(k, "result", res[i], want)
		}
	}
	eq(k, "a repeat in a later call", txAdd(k, view, request("a"))[0], core.EnqueueResult{ID: "a", Duplicate: true})
	eq(k, "results of an empty call", len(txAdd(k, view)), 0)
	commit()
	k.gone("bad")
	k.total(4)
	now := k.now()
	k.takeID("a")
	k.advance(full.Delay)
	h := k.takeID("full")
	k.sameRecord("the job", h.Record, core.Record{
		ID: "full", Ref: h.Ref, Name: full.Name, Queue: full.Queue, State: core.StateActive, Payload: full.Payload,
		Metadata: full.Metadata, Priority: full.Priority, MaxAttempts: full.MaxAttempts, MaxStalls: full.MaxStalls, Fence: 1,
		Backoff: full.Backoff, Keep: full.Keep, Timeout: full.Timeout, Trace: full.Trace,
		EnqueuedAt: now, RunAt: now.Add(full.Delay), ClaimedAt: k.now(),
	})
}

func txWake(k *kit) {
	for range 2 {
		view, commit, _ := k.open()
		txAdd(k, view, request(""))
		since := k.settled(theQueue)
		commit()
		k.woken("commit, AwaitWake called later", k.await([]string{theQueue}, since))
	}
	since := k.settled(theQueue)
	w := k.await([]string{theQueue}, since)
	view, commit, _ := k.open()
	txAdd(k, view, request("", delay(time.Hour)))
	commit()
	k.woken("commit, AwaitWake called before", w)

	since = k.settled(theQueue)
	w = k.await([]string{theQueue}, since)
	view, _, rollback := k.open()
	txAdd(k, view, request("x"))
	rollback()
	if w.stays() {
		k.add("x")
		k.woken("enqueue after a rollback", w)
	}
}

func txComplete(k *kit) {
	k.add("a")
	h := k.take()
	k.advance(time.Second)
	view, commit, _ := k.open()
	k.ok("Complete", view.Complete(k.ctx, h.lease, []byte("done")))
	k.stillActive("a")
	commit()
	k.wantState("a", core.StateCompleted)
	k.look("a", func(r core.Record) {
		eq(k, "attempts", r.Attempts, 1)
		k.sameResult("result", r.Result, []byte("done"))
		k.wantTime("FinishedAt", r.FinishedAt, k.now())
		k.wantTime("ClaimedAt", r.ClaimedAt, h.ClaimedAt)
		a := k.attempts("a")[0]
		k.sameResult("result in the ledger", a.Result, []byte("done"))
		k.wantTime("StartedAt", a.StartedAt, h.ClaimedAt)
		eq(k, "worker", a.Worker, "worker-1")
	})
	k.wantLedger("a", core.OutcomeComplete)
	k.end(h, core.OutcomeComplete, core.StateCompleted) // a repeat, to the store
	k.refused(h.lease, core.OutcomeRetry, core.ErrLeaseLost)
	eq(k, "jobs still held", len(k.claimAs(core.ClaimRequest{Token: h.lease.Token}).Jobs), 0)
	k.none("it is completed")
}

func txCompleteRollback(k *kit) {
	k.add("a")
	h := k.take()
	view, _, rollback := k.open()
	k.ok("Complete", view.Complete(k.ctx, h.lease, []byte("rolled back")))
	rollback()
	k.wantState("a", core.StateActive)
	k.wantLedger("a")
	k.holds(h.lease)
	k.end(h, core.OutcomeRetry, core.StateWaiting)
	eq(k, "attempts", k.takeID("a").Attempts, 1)
}

func txCompleteRefused(k *kit) {
	k.addAll("swept", "released", "ended", "again")
	swept, released, ended, earlier := k.takeFor(time.Second), k.take(), k.take(), k.take()
	k.advance(time.Second)
	k.swept("swept")
	k.end(earlier, core.OutcomeRelease, core.StateWaiting)
	again := k.takeID("again")
	k.end(released, core.OutcomeRelease, core.StateWaiting)
	k.end(ended, core.OutcomeFail, core.StateFailed)
	view, commit, _ := k.open()
	for _, h := range []held{swept, released, ended, earlier} {
		k.is("Complete of "+h.ID, view.Complete(k.ctx, h.lease, nil), core.ErrLeaseLost)
	}
	k.is("Complete of an unknown job", view.Complete(k.ctx, core.Lease{ID: "nobody", Token: core.NewToken()}, nil), core.ErrNotFound)
	wantError[*core.InvalidError](k, "Complete with a result over the limit",
		view.Complete(k.ctx, released.lease, make([]byte, core.DefaultPayload+1)))
	txAdd(k, view, request("b"))
	commit()
	k.wantState("ended", core.StateFailed)
	k.end(again, core.OutcomeComplete, core.StateCompleted) // under the token that it has now
	k.drain("jobs after the commit", "released", "b")
}

func txCompleteAmongHeartbeats(k *kit) {
	for range 50 {
		k.add("")
		h := k.take()
		ctx, cancel := context.WithCancel(k.ctx)
		begun, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for n := 0; ctx.Err() == nil; n++ {
				_, _ = k.store.Extend(ctx, []core.Lease{h.lease}, theLease) // it is Complete that is looked at
				if n == 0 {
					close(begun)
				}
			}
		}()
		<-begun
		view, commit, _ := k.open()
		err := view.Complete(k.ctx, h.lease, nil)
		if err == nil {
			commit()
		}
		cancel()
		<-ended
		k.ok("Complete of a lease that is extended meanwhile", err)
	}
}

func txCompleteOnce(k *kit) {
	k.add("a")
	h := k.take()
	view, commit, _ := k.open()
	k.ok("Complete", view.Complete(k.ctx, h.lease, nil))
	k.is("a repeat in the transaction", view.Complete(k.ctx, h.lease, nil), core.ErrLeaseLost)
	commit()
	view, commit, _ = k.open()
	k.is("a repeat in another", view.Complete(k.ctx, h.lease, nil), core.ErrLeaseLost)
	commit()
	k.wantLedger("a", core.OutcomeComplete)
}

func txCompleteByID(k *kit) {
	k.addAll("a", "b")
	c := k.claim(want(2))
	l := c.leases()
	view, commit, _ := k.open()
	k.is("Complete of an unknown job", view.Complete(k.ctx, core.Lease{ID: "nobody", Token: c.token, Ref: l[1].Ref}, nil), core.ErrNotFound)
	k.ok("Complete", view.Complete(k.ctx, core.Lease{ID: "a", Token: c.token, Ref: l[1].Ref}, nil))
	commit()
	k.wantState("a", core.StateCompleted)
	k.holds(l[1])
}

func txCompleteAndEnqueue(k *kit) {
	for _, commits := range []bool{false, true} {
		h := held{}
		if !commits {
			k.add("a")
			h = k.take()
		} else {
			h = k.takeID("a")
		}
		view, commit, rollback := k.open()
		txAdd(k, view, request("next"))
		k.ok("Complete", view.Complete(k.ctx, h.lease, nil))
		if commits {
			commit()
			k.wantState("a", core.StateCompleted)
			k.takeID("next")
		} else {
			rollback()
			k.gone("next")
			k.end(h, core.OutcomeRelease, core.StateWaiting)
		}
	}
}

func txCompleteCancel(k *kit) {
	k.add("a")
	h := k.take()
	k.cancel("a", core.StateActive)
	view, commit, _ := k.open()
	k.ok("Complete", view.Complete(k.ctx, h.lease, nil))
	commit()
	k.wantState("a", core.StateCompleted)
	k.look("a", func(r core.Record) {
		eq(k, "CancelRequested", r.CancelRequested, false)
		k.sameResult("result", r.Result, nil)
	})
	k.wantLedger("a", core.OutcomeComplete)
}
