package memstore

import (
	"fmt"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// txKey is what a transaction makes of a key. It holds by Commit if the key is still as the transaction found it.
type txKey struct {
	found hold // zero: nobody had taken it
	job   *job // who holds it now: a job of the store, or one that the transaction inserts
	end   time.Time
	// content is what a Replace makes of a job of the store: by Commit. nil: nothing.
	content *job
}

// look is who holds a key as the transaction sees it, nil where nobody does, and the job to judge that by.
func (tx *Transaction) look(k keyName) (holder *job, as hold) {
	c := tx.keys[k]
	switch {
	case c == nil:
		as = tx.store.keys[k]
		return as.job, as
	case c.content != nil:
		return c.job, hold{job: c.content, end: c.end}
	default:
		return c.job, hold{job: c.job, end: c.end}
	}
}

// change writes down who holds a key from now on.
func (tx *Transaction) change(k keyName, j *job, end time.Time) *txKey {
	c := tx.keys[k]
	if c == nil {
		c = &txKey{found: tx.store.keys[k]}
		tx.keys[k] = c
	}
	if c.job != j {
		c.job, c.content = j, nil
	}
	c.end = end
	return c
}

// meet is Store.meet inside the transaction.
func (tx *Transaction) meet(k keyName, r *core.EnqueueRequest, now time.Time) (result core.EnqueueResult, done bool) {
	own, as := tx.look(k)
	if own == nil {
		return result, false
	}
	result = core.EnqueueResult{ID: own.rec.ID, Duplicate: true}
	holder := as.seen(now)
	if slices.ContainsFunc(tx.ends, func(c completion) bool { return c.job == own }) {
		holder.State = core.StateCompleted
	}
	switch r.Dedupe.Decide(holder, now) {
	case core.KeyFree:
		return core.EnqueueResult{}, false
	case core.KeyExtend:
		tx.change(k, own, r.Dedupe.WindowEnd(now))
	case core.KeyReplace:
		runAt, err := due(r, now)
		if err != nil {
			return core.EnqueueResult{Err: err}, true
		}
		c := tx.change(k, own, replacedEnd(as.end, r, now))
		into := own
		if own.rec.State != "" {
			into = &job{rec: own.rec}
			into.rec.State, c.content = "", into
		}
		overwrite(&into.rec, r)
		into.rec.RunAt = runAt
	}
	return result, true
}

// check says whether the key, and the job that is replaced, are as they were.
func (c *txKey) check(k keyName, s *Store, now time.Time) error {
	if s.keys[k] != c.found {
		return fmt.Errorf("%w: key %q of %q was taken meanwhile", core.ErrRetryTx, k.key, k.name)
	}
	if c.content != nil && c.job.seen(now) != core.StateDelayed {
		return fmt.Errorf("%w: job %q was due, claimed or ended meanwhile", core.ErrRetryTx, c.job.rec.ID)
	}
	return nil
}

func (c *txKey) apply(k keyName, s *Store, now time.Time) {
	s.take(k, c.job, c.end)
	if c.content == nil {
		return
	}
	rec, to := &c.job.rec, &c.content.rec
	rec.Payload, rec.Metadata, rec.Trace = to.Payload, to.Metadata, to.Trace
	rec.Priority, rec.MaxAttempts, rec.MaxStalls = to.Priority, to.MaxAttempts, to.MaxStalls
	rec.Backoff, rec.Keep, rec.Timeout = to.Backoff, to.Keep, to.Timeout
	s.pend(c.job, to.RunAt, now)
	s.ring(c.job.lane.queue)
}
