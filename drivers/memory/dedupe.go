package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// keyName is a dedupe key, which jobs of other names do not share (Q12).
type keyName struct{ name, key string }

// hold says who took a key. Whether it is alive is found out when somebody looks: neither acks nor sweeps nor claims
// know of it. It is replaced as a whole, under a turn of its own, so that a transaction sees that it changed.
type hold struct {
	job  *job
	end  time.Time // of the window; zero: none
	turn int64     // never the same twice
}

// dedupeKeyOf is the key that a job was enqueued with; ok is false without one.
func dedupeKeyOf(j *job) (k keyName, ok bool) {
	return keyName{j.rec.Name, j.rec.DedupeKey}, j.rec.DedupeKey != ""
}

// seen is the hold as core's rules look at it.
func (h hold) seen(now time.Time) core.KeyHolder {
	return core.KeyHolder{State: h.job.seen(now), End: h.end}
}

// seen is the state as the outside sees it: what is due waits (Q27). A job that was not placed yet, in a transaction,
// stands where it will.
func (j *job) seen(now time.Time) core.State {
	if st := j.rec.State; st != core.StateDelayed && st != "" {
		return st
	}
	if j.rec.RunAt.After(now) {
		return core.StateDelayed
	}
	return core.StateWaiting
}

// take gives a key to a job.
func (s *Store) take(k keyName, j *job, end time.Time) {
	s.turns++
	s.keys[k] = hold{job: j, end: end, turn: s.turns}
}

// free frees the key of a job that leaves the store, if it is the job's. What is pruned keeps its open window and must
// not come here, but for cancelled jobs.
func (s *Store) free(j *job) {
	if k, ok := dedupeKeyOf(j); ok && s.keys[k].job == j {
		delete(s.keys, k)
	}
}

// meet decides what an item does about a key that somebody took. done is false where the key is free.
func (s *Store) meet(k keyName, r *core.EnqueueRequest, now time.Time) (result core.EnqueueResult, done bool) {
	h, taken := s.keys[k]
	if !taken {
		return result, false
	}
	result = core.EnqueueResult{ID: h.job.rec.ID, Duplicate: true}
	switch r.Dedupe.Decide(h.seen(now), now) {
	case core.KeyFree:
		return core.EnqueueResult{}, false
	case core.KeyExtend:
		s.take(k, h.job, r.Dedupe.WindowEnd(now))
	case core.KeyReplace:
		runAt, err := due(r, now)
		if err != nil {
			return core.EnqueueResult{Err: err}, true
		}
		s.take(k, h.job, replacedEnd(h.end, r, now))
		overwrite(&h.job.rec, r)
		s.pend(h.job, runAt, now)
		s.ring(h.job.lane.queue)
	}
	return result, true
}

// replacedEnd is the end of the window after a replace: a TTL opens a new one.
func replacedEnd(end time.Time, r *core.EnqueueRequest, now time.Time) time.Time {
	if r.Dedupe.TTL > 0 {
		return r.Dedupe.WindowEnd(now)
	}
	return end
}

// retake gives a revived job its key again, unless another job holds it (Q8).
func (s *Store) retake(j *job, now time.Time) error {
	k, keyed := dedupeKeyOf(j)
	if !keyed {
		return nil
	}
	h, taken := s.keys[k]
	var end time.Time
	switch {
	case taken && h.job == j:
		if now.Before(h.end) {
			end = h.end
		}
	case taken && h.seen(now).Holds(now):
		return &core.ConflictError{Name: k.name, Key: k.key, ID: h.job.rec.ID}
	}
	s.take(k, j, end)
	return nil
}

// CancelByKey implements core.Admin (Q12).
func (s *Store) CancelByKey(ctx context.Context, name, key string) (bool, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	h, taken := s.keys[keyName{name, key}]
	if !taken || !h.job.rec.State.Pending() {
		return false, nil
	}
	s.cancel(h.job, now)
	return true, nil
}

// sweepKeys deletes entries that make no difference any more, among some of them, and returns how many it looked at.
// A map is gone through in another order each time, so that what is left over has its turn.
func (s *Store) sweepKeys(now time.Time, limit int) (looked int) {
	for k, h := range s.keys {
		if looked == limit {
			break
		}
		looked++
		if h.seen(now).Dead(now) {
			delete(s.keys, k)
		}
	}
	return looked
}

// checkKeys returns an error for a key that is not its job's.
func (s *Store) checkKeys() error {
	for k, h := range s.keys {
		if own, ok := dedupeKeyOf(h.job); !ok || own != k {
			return fmt.Errorf("key %q of %q is held by job %q, whose key is %q", k.key, k.name, h.job.rec.ID, own.key)
		}
	}
	return nil
}
