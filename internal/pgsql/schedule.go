package pgsql

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	// A tick that is under way is waited for, but not for long: nobody knows whose transaction it really is.
	lockPatience = `set_config('lock_timeout', '5s', true)`

	sqlPutSchedule = `with p as materialized (select ` + lockPatience + ` as patience)
		insert into {}.schedules as s (key, owner, cron, zone, every, misfire, catch_up, overlap, name, queue, priority, max_attempts,
			max_stalls, timeout, backoff, payload, metadata, keep, next_at)
		select $1::text, $2::text, $3::text, $4::text, $5::bigint, $6::text, $7::integer, $8::text, $9::text, $10::text,
			$11::smallint, $12::integer, $13::integer, $14::bigint, nullif($15::text, ''), $16::bytea, nullif($17::text, '')::jsonb,
			nullif($18::text, '')::jsonb, $19::timestamptz
		from p where patience is not null
		on conflict (key) do update set (owner, cron, zone, every, misfire, catch_up, overlap, name, queue, priority, max_attempts,
			max_stalls, timeout, backoff, payload, metadata, keep) =
			(excluded.owner, excluded.cron, excluded.zone, excluded.every, excluded.misfire, excluded.catch_up, excluded.overlap,
			excluded.name, excluded.queue, excluded.priority, excluded.max_attempts, excluded.max_stalls, excluded.timeout,
			excluded.backoff, excluded.payload, excluded.metadata, excluded.keep),
			next_at = case when s.cron = excluded.cron and s.every = excluded.every
				and coalesce(nullif(s.zone, ''), 'UTC') = coalesce(nullif(excluded.zone, ''), 'UTC')
				then s.next_at else excluded.next_at end,
			last_error = null, retry_at = null, failures = 0`

	sqlRemoveSchedule = `delete from {}.schedules where key = (select case when ` + lockPatience + ` is not null then $1::text end)`

	scheduleColumns = `key, owner, cron, zone, every, misfire, catch_up, overlap, name, queue, priority, max_attempts, max_stalls,
		timeout, backoff, payload, metadata::text, keep::text, next_at, last_slot, last_id, last_error, retry_at, failures`

	sqlSchedules = `select ` + scheduleColumns + ` from {}.schedules where ($1::text = '' or key = $1::text)
		and ($2::text is null or owner = $2::text) and ($3::text = '' or name = $3::text) order by key`

	// What is due, and in the same moment when more is: a schedule that moves in between must not be in neither.
	sqlDueSchedules = `select h.*, d.* from (
			select ` + since + ` as now,
				(select count(*) from (select from {}.schedules where due_at <= ` + since + ` limit $2::bigint + 1) x) as due,
				(select min(due_at) from {}.schedules where due_at > ` + since + `) as later) h
		left join (select ` + scheduleColumns + ` from {}.schedules where due_at <= ` + since + `
			order by next_at, key limit $2::bigint) d on true
		order by d.next_at, d.key`
)

// PutSchedule implements core.Scheduler (Q26). The lane of its jobs must be there.
func (s *Session) PutSchedule(ctx context.Context, c core.ScheduleSpec, first time.Time) error {
	if err := c.Validate(s.limits); err != nil {
		return err
	}
	if err := core.ValidateSlot("first", first); err != nil {
		return err
	}
	q := &c.Request
	metadata, err1 := doc(q.Metadata, len(q.Metadata) == 0)
	keep, err2 := doc(q.Keep, q.Keep == core.Keep{})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	_, err := s.x.Exec(ctx, sqlPutSchedule, c.Key, c.Group, c.Cron, c.Zone, int64(c.Every), string(c.Misfire), int32(c.CatchUp),
		string(c.Overlap), q.Name, q.Queue, int16(q.Priority), int32(q.MaxAttempts), int32(q.MaxStalls), int64(q.Timeout),
		backoffText(q.Backoff), q.Payload, metadata, keep, core.Micros(first))
	if err == nil {
		s.wake(News{Queue: control})
	}
	return err
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
func (s *Session) Schedules(ctx context.Context, q core.ScheduleQuery) (out []core.ScheduleRecord, err error) {
	if !sane(q.Key) || !sane(q.Name) || q.Group != nil && !sane(*q.Group) {
		return nil, nil
	}
	var group any
	if q.Group != nil {
		group = *q.Group
	}
	err = sqlexec.Each(ctx, s.x, func(row sqlexec.Rows) error {
		var r scheduleRow
		err := row.Scan(r.columns()...)
		out = append(out, r.record())
		return err
	}, sqlSchedules, q.Key, group, q.Name)
	return out, err
}

// DueSchedules implements core.Scheduler.
func (s *Session) DueSchedules(ctx context.Context, limit int) (core.DueSchedules, error) {
	if limit < 0 {
		return core.DueSchedules{}, &core.InvalidError{Field: "limit", Reason: "must not be negative"}
	}
	limit = min(limit, math.MaxInt32)
	var out core.DueSchedules
	err := sqlexec.Each(ctx, s.x, func(row sqlexec.Rows) error {
		var now time.Time
		var due int64
		var later *time.Time
		var r scheduleRow
		if err := row.Scan(append([]any{&now, &due, &later}, r.columns()...)...); err != nil {
			return err
		}
		out.Now = now.UTC()
		switch {
		case due > int64(limit):
			out.NextIn = 1
		case later != nil:
			out.NextIn = later.Sub(now)
		}
		if r.key != nil {
			out.Due = append(out.Due, r.record())
		}
		return nil
	}, sqlDueSchedules, s.now, int64(limit))
	return out, err
}

// scheduleRow is where scans of scheduleColumns put a row, of which all is null in an outer join without one.
type scheduleRow struct {
	key, owner, cron, zone, misfire, overlap, name, queue *string
	backoff, metadata, keep, lastID, lastError            *string
	every, catchUp, priority, maxAttempts                 *int64
	maxStalls, timeout, failures                          *int64
	payload                                               []byte
	nextAt, lastSlot, retryAt                             *time.Time
}

func (r *scheduleRow) columns() []any {
	return []any{
		&r.key, &r.owner, &r.cron, &r.zone, &r.every, &r.misfire, &r.catchUp, &r.overlap, &r.name, &r.queue, &r.priority,
		&r.maxAttempts, &r.maxStalls, &r.timeout, &r.backoff, &r.payload, &r.metadata, &r.keep, &r.nextAt, &r.lastSlot, &r.lastID,
		&r.lastError, &r.retryAt, &r.failures,
	}
}

// record is what was read. As with jobs, what cannot be read is left out.
func (r *scheduleRow) record() core.ScheduleRecord {
	out := core.ScheduleRecord{
		ScheduleSpec: core.ScheduleSpec{
			Key: value(r.key), Group: value(r.owner), Cron: value(r.cron), Zone: value(r.zone), Every: time.Duration(number(r.every)),
			Misfire: core.Misfire(value(r.misfire)), CatchUp: int(number(r.catchUp)), Overlap: core.Overlap(value(r.overlap)),
			Request: core.EnqueueRequest{
				Name: value(r.name), Queue: value(r.queue), Priority: int(number(r.priority)), MaxAttempts: int(number(r.maxAttempts)),
				MaxStalls: int(number(r.maxStalls)), Timeout: time.Duration(number(r.timeout)), Payload: r.payload,
				Metadata: fromDoc[map[string]string](r.metadata), Keep: fromDoc[core.Keep](r.keep),
			},
		},
		NextAt: utc(r.nextAt), LastSlot: utc(r.lastSlot), LastID: value(r.lastID), LastError: value(r.lastError),
		RetryAt: utc(r.retryAt), Failures: int(number(r.failures)),
	}
	if r.backoff != nil {
		out.Request.Backoff, _ = parseBackoff(*r.backoff) // else the default one
	}
	return out
}

func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
