package conformance

import (
	"bytes"
	"context"
	"maps"
	"time"

	"pgregory.net/rapid"

	"github.com/stintmq/stint/core"
)

// The model's dedupe keys (Q12).

type modelKey struct{ name, key string }

type modelEntry struct {
	job *modelJob
	end time.Time // of the window; zero: none
}

// window is the end of the window that a request opens.
func window(r core.EnqueueRequest, now time.Time) time.Time {
	if r.Dedupe.TTL == 0 {
		return time.Time{}
	}
	return now.Add(r.Dedupe.TTL)
}

// alive reports whether an entry keeps its key from others.
func (e *modelEntry) alive(now time.Time) bool {
	if e.end.IsZero() {
		return e.job.State.Pending()
	}
	return now.Before(e.end) && e.job.State != core.StateCancelled
}

// meet answers a request whose key is taken, with the id of the job that has it.
func (m *modelStore) meet(r core.EnqueueRequest, now time.Time) (id string, taken bool) {
	if r.Dedupe == nil {
		return "", false
	}
	e := m.keys[modelKey{r.Name, r.Dedupe.Key}]
	if e == nil {
		return "", false
	}
	if r.Dedupe.Replace && e.job.State == core.StateDelayed {
		if r.Dedupe.TTL > 0 {
			e.end = window(r, now)
		}
		m.fill(e.job, r, now)
		return e.job.ID, true
	}
	if !e.alive(now) {
		return "", false
	}
	if r.Dedupe.Extend && !e.end.IsZero() {
		e.end = window(r, now)
	}
	return e.job.ID, true
}

// fill gives a job what a request says of it, and a place.
func (m *modelStore) fill(j *modelJob, r core.EnqueueRequest, now time.Time) {
	j.Payload, j.Metadata, j.Trace = bytes.Clone(r.Payload), maps.Clone(r.Metadata), own(r.Trace)
	j.Priority, j.MaxAttempts, j.MaxStalls = r.Priority, r.MaxAttempts, r.MaxStalls
	j.Backoff, j.Keep, j.Timeout = r.Backoff, r.Keep, r.Timeout
	at := now.Add(r.Delay)
	if r.RunAt.After(at) {
		at = r.RunAt
	}
	m.pend(j, core.Micros(at), now)
}

// retake gives the key back to a job that is retried.
func (m *modelStore) retake(j *modelJob, now time.Time) error {
	if j.DedupeKey == "" {
		return nil
	}
	k := modelKey{j.Name, j.DedupeKey}
	e := m.keys[k]
	switch {
	case e == nil || e.job != j && !e.alive(now):
		m.keys[k] = &modelEntry{job: j}
	case e.job != j:
		return &core.ConflictError{Name: k.name, Key: k.key, ID: e.job.ID}
	case !now.Before(e.end):
		e.end = time.Time{}
	}
	return nil
}

func (m *modelStore) CancelByKey(ctx context.Context, name, key string) (bool, error) {
	if m.keyless {
		return false, &core.UnsupportedError{Op: "dedupe"}
	}
	now, err := m.enter(ctx)
	if err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	e := m.keys[modelKey{name, key}]
	if e == nil || !e.job.State.Pending() {
		return false, nil
	}
	m.cancel(e.job, now)
	return true, nil
}

// The runner's part.

var modelKeys = []string{"k", "l"}

func (r *modelRunner) dedupe(t *rapid.T) *core.Dedupe {
	d := &core.Dedupe{
		Key: rapid.SampledFrom(modelKeys).Draw(t, "key"), Replace: rapid.Bool().Draw(t, "replace"),
		TTL: rapid.SampledFrom([]time.Duration{0, 0, time.Microsecond, time.Second, time.Minute}).Draw(t, "ttl"),
	}
	d.Extend = d.TTL > 0 && rapid.Bool().Draw(t, "extend")
	return d
}

func (r *modelRunner) cancelByKey(t *rapid.T) {
	name, key := rapid.SampledFrom(modelNames).Draw(t, "name"), rapid.SampledFrom(modelKeys).Draw(t, "key")
	got, err := r.admin.CancelByKey(r.k.ctx, name, key)
	r.sameErr("CancelByKey of "+key, err, nil)
	want, _ := r.model.CancelByKey(r.k.ctx, name, key)
	r.same("CancelByKey of "+key, got, want)
}
