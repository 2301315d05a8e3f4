package litesql

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	scheduleColumns = `key, owner, cron, zone, every, misfire, catch_up, overlap, name, queue, payload, metadata, priority,
		max_attempts, max_stalls, timeout, backoff_kind, backoff_base, backoff_max, backoff_factor, backoff_exact, keep,
		next_at, last_slot, last_id`

	// Whatever is not among the columns goes back to its default: the error of the last tick is forgotten.
	sqlPutSchedule = `insert or replace into stint_schedules (` + scheduleColumns + `)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlRemoveSchedule = `delete from stint_schedules where key = ?`

	selectSchedules = `select ` + scheduleColumns + `, last_error, retry_at, failures from stint_schedules`
	sqlSchedule     = selectSchedules + ` where key = ?`
	sqlSchedules    = selectSchedules + ` where (?1 = '' or key = ?1) and (?2 is null or owner = ?2) and (?3 = '' or name = ?3)
		order by key`
	sqlDueSchedules = selectSchedules + ` where due_at <= ? order by next_at, key limit ?`
	sqlDueHead      = `select (select count(*) from (select 1 from stint_schedules where due_at <= ?1 limit ?2)),
		(select min(due_at) from stint_schedules where due_at > ?1)`

	sqlMoveSchedule = `update stint_schedules set next_at = ?, last_slot = ?, last_id = ?,
		last_error = null, retry_at = null, failures = 0 where key = ?`
	sqlPutOff = `update stint_schedules set last_error = ?, retry_at = ?, failures = failures + 1 where key = ?`

	sqlIsPending = `select 1 from stint_jobs j cross join stint_work w on w.seq = j.seq where j.id = ?`
)

// PutSchedule implements core.Scheduler (Q26).
func (s *Session) PutSchedule(ctx context.Context, c core.ScheduleSpec, first time.Time) error {
	if err := c.Validate(s.limits); err != nil {
		return err
	}
	if err := core.ValidateSlot("first", first); err != nil {
		return err
	}
	r := core.ScheduleRecord{ScheduleSpec: c, NextAt: core.Micros(first)}
	old, found, err := s.schedule(ctx, c.Key)
	if err != nil {
		return err
	}
	if found {
		r.LastSlot, r.LastID = old.LastSlot, old.LastID
		if c.SameCadence(&old.ScheduleSpec) {
			r.NextAt = old.NextAt
		}
	}
	args, err := scheduleArgs(&r)
	if err != nil {
		return err
	}
	if _, err := s.x.Exec(ctx, sqlPutSchedule, args...); err != nil {
		return err
	}
	s.wake(control)
	return s.flush(ctx)
}

func scheduleArgs(r *core.ScheduleRecord) ([]any, error) {
	q := &r.Request
	metadata, err := doc(q.Metadata, len(q.Metadata) == 0)
	if err != nil {
		return nil, err
	}
	keep, err := doc(q.Keep, q.Keep == core.Keep{})
	if err != nil {
		return nil, err
	}
	b := q.Backoff
	return []any{
		r.Key, r.Group, r.Cron, r.Zone, int64(r.Every), string(r.Misfire), r.CatchUp, string(r.Overlap),
		q.Name, q.Queue, bytes(q.Payload), metadata, q.Priority, q.MaxAttempts, q.MaxStalls, int64(q.Timeout),
		b.Kind, int64(b.Base), int64(b.Max), b.Factor, b.NoJitter, keep,
		r.NextAt.UnixMicro(), instant(r.LastSlot), text(r.LastID),
	}, nil
}

// instant is a time as an argument: the zero time is null.
func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// RemoveSchedule implements core.Scheduler.
func (s *Session) RemoveSchedule(ctx context.Context, key string) (bool, error) {
	if !sane(key) {
		return false, nil
	}
	n, err := s.x.Exec(ctx, sqlRemoveSchedule, key)
	return n > 0, err
}

// Schedules implements core.Scheduler.
func (s *Session) Schedules(ctx context.Context, q core.ScheduleQuery) ([]core.ScheduleRecord, error) {
	if !sane(q.Key) || !sane(q.Name) || q.Group != nil && !sane(*q.Group) {
		return nil, nil
	}
	var group any
	if q.Group != nil {
		group = *q.Group
	}
	return s.readSchedules(ctx, sqlSchedules, q.Key, group, q.Name)
}

// DueSchedules implements core.Scheduler.
func (s *Session) DueSchedules(ctx context.Context, limit int) (core.DueSchedules, error) {
	if limit < 0 {
		return core.DueSchedules{}, &core.InvalidError{Field: "limit", Reason: "must not be negative"}
	}
	limit = min(limit, math.MaxInt32)
	out := core.DueSchedules{Now: moment(&s.now)}
	var due int
	var next *int64
	if _, err := sqlexec.One(ctx, s.x, []any{&due, &next}, sqlDueHead, s.now, limit+1); err != nil {
		return out, err
	}
	switch {
	case due > limit:
		out.NextIn = 1
	case next != nil:
		out.NextIn = time.Duration(min(*next-s.now, math.MaxInt64/1000)) * time.Microsecond
	}
	var err error
	if due > 0 && limit > 0 {
		out.Due, err = s.readSchedules(ctx, sqlDueSchedules, s.now, limit)
	}
	return out, err
}

func (s *Session) schedule(ctx context.Context, key string) (r core.ScheduleRecord, found bool, err error) {
	rs, err := s.readSchedules(ctx, sqlSchedule, key)
	if err != nil || len(rs) == 0 {
		return r, false, err
	}
	return rs[0], true, nil
}

func (s *Session) readSchedules(ctx context.Context, query string, args ...any) (out []core.ScheduleRecord, err error) {
	err = sqlexec.Each(ctx, s.x, func(row sqlexec.Rows) error {
		r, err := scanSchedule(row)
		out = append(out, r)
		return err
	}, query, args...)
	return out, err
}

func scanSchedule(row sqlexec.Rows) (r core.ScheduleRecord, err error) {
	var every, timeout, base, most, next int64
	var last, retry *int64
	var misfire, overlap string
	var payload blob
	var metadata, keep, lastID, lastError *string
	q := &r.Request
	if err := row.Scan(&r.Key, &r.Group, &r.Cron, &r.Zone, &every, &misfire, &r.CatchUp, &overlap, &q.Name, &q.Queue,
		&payload, &metadata, &q.Priority, &q.MaxAttempts, &q.MaxStalls, &timeout, &q.Backoff.Kind, &base, &most,
		&q.Backoff.Factor, &q.Backoff.NoJitter, &keep, &next, &last, &lastID, &lastError, &retry, &r.Failures); err != nil {
		return r, err
	}
	r.Every, r.Misfire, r.Overlap = time.Duration(every), core.Misfire(misfire), core.Overlap(overlap)
	q.Payload, q.Timeout, q.Backoff.Base, q.Backoff.Max = payload, time.Duration(timeout), time.Duration(base), time.Duration(most)
	r.NextAt, r.LastSlot, r.RetryAt = moment(&next), moment(last), moment(retry)
	r.LastID, r.LastError = value(lastID), value(lastError)
	return r, errors.Join(fromDoc(metadata, &q.Metadata), fromDoc(keep, &q.Keep))
}
