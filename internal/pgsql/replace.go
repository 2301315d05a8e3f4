package pgsql

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
	"github.com/stintmq/stint/internal/sqlexec"
)

// sqlReplace gives delayed jobs the content of requests. It changes where the job stands as well as the body, so that a
// claim with an older snapshot takes nothing: what it would take is not there any more. A job that is due, or was claimed
// or ended, is left alone, and so is its entry.
//
// Arrays are parallel to $2, in which the jobs' numbers ascend. As in sqlInsert the transaction has its own number before
// it takes the time, and the time before it draws places. The lane on which a job stands then is made by the same
// transaction, unless that is the caller's.
const sqlReplace = `with t as materialized (
		select case when pg_current_xact_id() is not null then coalesce($1::timestamptz, clock_timestamp()) end as now),
	` + ofTurns + `,
	d as materialized (
		select r.tid, h.seq, h.tid as entry, h.pos, greatest((select now from t), ($9::timestamptz[])[h.pos])
			+ (($8::bigint[])[h.pos] / 1000000) * interval '1 second' + (($8::bigint[])[h.pos] % 1000000) * interval '1 microsecond' as due
		from (select *, width_bucket(seq, $2::bigint[]) as pos from h order by seq) h
		cross join lateral (
			select ctid as tid from {}.delayed where seq between h.seq and h.seq and run_at > (select now from t) order by seq limit 1 for update) r),
	b as (
		update {}.jobs set run_at = (select due from d where d.seq = jobs.seq), payload = ($10::bytea[])[width_bucket(seq, $2::bigint[])],
			priority = ($11::smallint[])[width_bucket(seq, $2::bigint[])], max_attempts = ($12::integer[])[width_bucket(seq, $2::bigint[])],
			max_stalls = ($13::integer[])[width_bucket(seq, $2::bigint[])],
			timeout = nullif(($14::bigint[])[width_bucket(seq, $2::bigint[])], 0),
			metadata = nullif(($15::text[])[width_bucket(seq, $2::bigint[])], '')::jsonb,
			backoff = nullif(($16::text[])[width_bucket(seq, $2::bigint[])], ''),
			keep = nullif(($17::text[])[width_bucket(seq, $2::bigint[])], '')::jsonb,
			trace = nullif(($18::text[])[width_bucket(seq, $2::bigint[])], '')::jsonb
		where seq = any(array(select seq from d))),
	g as (delete from {}.delayed where ctid = any(array(select tid from d where due <= (select now from t))) returning *),
	w as (
		insert into {}.ready (seq, place, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
		select seq, nextval({numbers}), (select now from t), fence, coalesce(octet_length(($10::bytea[])[width_bucket(seq, $2::bigint[])]), 0),
			attempts, stalls, snoozes, runs, ($11::smallint[])[width_bucket(seq, $2::bigint[])], queue, name
		from (select * from g order by seq) g
		returning seq, queue, priority, place, null::timestamptz as due),
	y as (
		update {}.delayed set run_at = (select due from d where d.seq = delayed.seq),
			priority = ($11::smallint[])[width_bucket(seq, $2::bigint[])],
			bytes = coalesce(octet_length(($10::bytea[])[width_bucket(seq, $2::bigint[])]), 0)
		where ctid = any(array(select tid from d where due > (select now from t)))
		returning seq, queue, priority, 0::bigint as place, run_at as due),
	e as (update {}.dedupe set ` + windowMoves + ` where ctid = any(array(select entry from d))),
	z as materialized (select * from w union all select * from y),
	l as (
		insert into {}.lanes (queue, priority) select distinct queue, priority from z
		where $21::boolean and not exists (select from {}.lanes l where l.queue = z.queue and l.priority = z.priority)
		order by queue, priority on conflict do nothing),
	n as materialized (
		select pg_notify($19::text, $20::text || ' ' || place || ' ' || due || ' ' || queue)
		from (
			select queue, coalesce(min(nullif(place, 0)), 0) as place, coalesce((extract(epoch from min(due)) * 1000000)::bigint, 0) as due
			from z group by queue) q
		where $19::text is not null)
	select seq, queue, priority, place, due, $21::boolean or exists (select from {}.lanes l where l.queue = z.queue and l.priority = z.priority),
		(select count(*) from n)
	from z`

// replace gives the jobs of touches other content, and returns the numbers of those that were delayed still.
func (e *enqueueing) replace(ctx context.Context, touches []keyplan.Touch, at []int, patience any) (map[int64]bool, error) {
	at = byJob(touches, at)
	reqs := make([]*core.EnqueueRequest, len(at))
	for k, i := range at {
		reqs[k] = &e.reqs[touches[i].Content]
	}
	c, err := contentOf(reqs)
	if err != nil {
		return nil, err
	}
	args := append([]any{e.s.now}, turns(touches, at, patience)...)
	args = append(args, c.delay, c.runAt, c.payload, c.priority, c.maxAttempts, c.maxStalls, c.timeout, c.metadata, c.backoff,
		c.keep, c.trace, e.notify.channel(), e.notify.Origin, !e.s.tx)
	done := make(map[int64]bool, len(at))
	err = sqlexec.Each(ctx, e.s.x, func(r sqlexec.Rows) error {
		var seq, place, told int64
		var queue string
		var priority int
		var due *time.Time
		var known bool
		if err := r.Scan(&seq, &queue, &priority, &place, &due, &known, &told); err != nil {
			return err
		}
		done[seq] = true
		if !known {
			e.s.strayed = append(e.s.strayed, core.EnqueueRequest{Queue: queue, Priority: priority})
		}
		e.s.wake(News{Queue: queue, Place: place, Due: utc(due)})
		return nil
	}, sqlReplace, args...)
	return done, err
}
