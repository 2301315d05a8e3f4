package memstore

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// PutSchedule implements core.Scheduler (Q26).
func (s *Store) PutSchedule(ctx context.Context, sched core.ScheduleSpec, first time.Time) error {
	if err := sched.Validate(s.limits); err != nil {
		return err
	}
	if err := core.ValidateSlot("first", first); err != nil {
		return err
	}
	if _, err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r := &core.ScheduleRecord{ScheduleSpec: copySchedule(sched), NextAt: core.Micros(first)}
	if old := s.schedules[sched.Key]; old != nil {
		r.LastSlot, r.LastID = old.LastSlot, old.LastID
		if sched.SameCadence(&old.ScheduleSpec) {
			r.NextAt = old.NextAt
		}
	}
	s.schedules[sched.Key] = r
	s.ringControl()
	return nil
}

// RemoveSchedule implements core.Scheduler.
func (s *Store) RemoveSchedule(ctx context.Context, key string) (bool, error) {
	if _, err := s.enter(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	_, there := s.schedules[key]
	delete(s.schedules, key)
	return there, nil
}

// Schedules implements core.Scheduler. It goes through all schedules, and so does DueSchedules.
func (s *Store) Schedules(ctx context.Context, q core.ScheduleQuery) ([]core.ScheduleRecord, error) {
	if _, err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []core.ScheduleRecord
	for _, r := range s.schedules {
		if (q.Key == "" || q.Key == r.Key) && (q.Name == "" || q.Name == r.Request.Name) &&
			(q.Group == nil || *q.Group == r.Group) {
			out = append(out, copyScheduleRecord(r))
		}
	}
	slices.SortFunc(out, func(a, b core.ScheduleRecord) int { return cmp.Compare(a.Key, b.Key) })
	return out, nil
}

// DueSchedules implements core.Scheduler.
func (s *Store) DueSchedules(ctx context.Context, limit int) (core.DueSchedules, error) {
	if limit < 0 {
		return core.DueSchedules{}, &core.InvalidError{Field: "limit", Reason: "must not be negative"}
	}
	now, err := s.enter(ctx)
	if err != nil {
		return core.DueSchedules{}, err
	}
	defer s.mu.Unlock()
	out := core.DueSchedules{Now: now}
	var due []*core.ScheduleRecord
	for _, r := range s.schedules {
		at := r.NextAt
		if r.RetryAt.After(at) {
			at = r.RetryAt
		}
		if !at.After(now) {
			due = append(due, r)
		} else if in := until(at.UnixMicro(), now); out.NextIn == 0 || in < out.NextIn {
			out.NextIn = in
		}
	}
	if len(due) > limit {
		out.NextIn = 1
	}
	slices.SortFunc(due, func(a, b *core.ScheduleRecord) int {
		return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.Key, b.Key))
	})
	for _, r := range due[:min(limit, len(due))] {
		out.Due = append(out.Due, copyScheduleRecord(r))
	}
	return out, nil
}

// TickSchedule implements core.Scheduler (Q26).
func (s *Store) TickSchedule(ctx context.Context, t core.Tick) (bool, error) {
	if err := t.Validate(); err != nil {
		return false, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	r := s.schedules[t.Key]
	if r == nil || !r.NextAt.Equal(core.Micros(t.Expect)) {
		return false, nil
	}
	if t.Err != "" {
		if r.RetryAt.After(now) {
			return false, nil
		}
		r.LastError, r.RetryAt = t.Err, core.Micros(now.Add(t.RetryIn))
		r.Failures++
		return true, nil
	}
	for _, slot := range t.Slots {
		s.slot(r, slot, now)
	}
	r.LastSlot, r.NextAt = core.Micros(t.Passed), core.Micros(t.Next)
	r.LastError, r.RetryAt, r.Failures = "", time.Time{}, 0
	return true, nil
}

// slot makes the job of a slot, unless it is there, or runs would overlap that must not. Nothing can be wrong with it:
// its request was validated with the limits that the store still has.
func (s *Store) slot(r *core.ScheduleRecord, slot, now time.Time) {
	if last := s.jobs[r.LastID]; r.Overlap == core.OverlapSkip && last != nil && last.rec.State.Pending() {
		return
	}
	req := r.SlotRequest(slot)
	if s.jobs[req.ID] == nil {
		j, _ := s.build(&req, req.ID, now) // without a delay, which could be too long, there is no error
		s.insert(j, now)
	}
	r.LastID = req.ID
}

func copyScheduleRecord(r *core.ScheduleRecord) core.ScheduleRecord {
	c := *r
	c.ScheduleSpec = copySchedule(r.ScheduleSpec)
	return c
}

// copySchedule gives a schedule slices and maps of its own (Q13); it has no other pointers.
func copySchedule(s core.ScheduleSpec) core.ScheduleSpec {
	s.Request.Payload = bytes.Clone(s.Request.Payload)
	s.Request.Metadata = maps.Clone(s.Request.Metadata)
	return s
}
