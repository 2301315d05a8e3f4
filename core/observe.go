package core

import (
	"sync"
	"time"
)

// What a worker tells its audience. Nothing here is done, nor measured, where nobody listens.

// begin tells of a run whose handler is about to start.
func (w *Worker) begin(r *run) {
	if w.audience == nil {
		return
	}
	r.seen.Store(&seen{began: time.Now()})
	tell(w.audience, ofStart, r.info())
}

// returned notes that the handler did.
func (r *run) returned() {
	if s := r.seen.Load(); s != nil {
		s.ran = time.Since(s.began)
	}
}

// tellFinish tells of an outcome that is in the store.
func (w *Worker) tellFinish(e settling, state State, inTx bool) {
	s := e.run.seen.Load()
	if s == nil || s.told.Swap(true) {
		return
	}
	f := Finished{Run: e.run.info(), Outcome: e.ack.Outcome, State: state, Err: e.err, Failure: e.ack.Failure, InTx: inTx, Ran: s.ran}
	if state == StateWaiting || state == StateDelayed {
		f.RetryIn = e.ack.Delay
	}
	f.Wait = max(e.run.rec.ClaimedAt.Sub(e.run.rec.RunAt), 0)
	f.Total = f.Wait + time.Since(s.began)
	tell(w.audience, ofFinish, f)
}

// tellLost tells of a run that ends without an outcome of its own.
func (w *Worker) tellLost(r *run, outcome Outcome, why error) {
	if s := r.seen.Load(); s != nil && !s.told.Swap(true) {
		tell(w.audience, ofLeaseLost, LostLease{Run: r.info(), Outcome: outcome, Err: why})
	}
}

// tellFailure tells of a failed attempt, OnFailure included.
func (w *Worker) tellFailure(f Failed) {
	w.failures.tell(f)
	tell(w.audience, ofFailure, f)
}

// hearsFailures reports whether anybody would be told of one.
func (w *Worker) hearsFailures() bool {
	for _, l := range w.audience {
		if l.hooks.Failure != nil {
			return true
		}
	}
	return w.opts.OnFailure != nil
}

// tellClaim tells of a claim.
func (w *Worker) tellClaim(wants []Want, claimed Claimed, took time.Duration, err error) {
	c := ClaimCall{Queues: make([]QueueClaim, len(wants)), Took: took, Err: err}
	got := make(map[string]int, len(wants))
	for i := range claimed.Jobs {
		got[claimed.Jobs[i].Queue]++
	}
	for i, want := range wants {
		c.Queues[i] = QueueClaim{Queue: want.Queue, Asked: want.Limit, Got: got[want.Queue]}
	}
	tell(w.audience, ofClaim, c)
}

// closeHooks waits for the calls of hooks, those of OnFailure meanwhile. The runs that are left are ShutdownError's.
func (w *Worker) closeHooks(patience time.Duration) {
	for _, r := range w.flights.all() {
		w.tellLost(r, "", ErrStopping)
	}
	var all sync.WaitGroup
	all.Go(func() { w.failures.close(patience) })
	all.Go(func() { w.audience.close(patience) })
	all.Wait()
}
