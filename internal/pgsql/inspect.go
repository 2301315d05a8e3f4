package pgsql

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	recordColumns = bodyColumns + `, ` + standColumns + `, w.state, w.cancel, w.claimed_at, w.finished_at, w.result, w.failure::text`

	sqlGet = `select ` + recordColumns + ` from {}.jobs j ` + zones + ` where j.seq = $2::bigint`

	sqlAttempts = `select number, outcome, started_at, finished_at, worker, failure::text, null::bytea from {}.runs where seq = $1::bigint
		union all
		(select runs, outcome, started_at, finished_at, worker, failure::text, result from {}.finished
			where seq between $1::bigint and $1::bigint order by seq limit 1)
		order by 1`

	sqlCounts = `select
		(select count(*) from {}.ready where $2::text = '' or queue = $2::text),
		(select count(*) from {}.delayed where $2::text = '' or queue = $2::text),
		(select count(*) from {}.delayed where ($2::text = '' or queue = $2::text) and run_at <= ` + since + `),
		(select count(*) from {}.leases where $2::text = '' or queue = $2::text),
		coalesce(sum(completed), 0)::bigint, coalesce(sum(failed), 0)::bigint, coalesce(sum(cancelled), 0)::bigint
		from {}.tallies where $2::text = '' or queue = $2::text`

	sqlStranded = `select queue, name, sum(n)::bigint from (
			select queue, name, count(*) as n from {}.ready group by queue, name
			union all select queue, name, count(*) from {}.delayed group by queue, name
			union all select queue, name, count(*) from {}.leases group by queue, name) pending
		where name <> all($1::text[]) group by queue, name order by queue, name`

	// Runnable jobs of a queue that come before a place; due ones that did not join yet will do so behind the waiting
	// ones of their priority. Without a place ($4) it is asked for one of those.
	sqlAhead = `select
		(select count(*) from {}.ready where queue = $2::text
			and (priority > $3::bigint or priority = $3::bigint and ($4::bigint is null or place < $4::bigint))) +
		(select count(*) from {}.delayed where queue = $2::text and run_at <= ` + since + `
			and (priority > $3::bigint or priority = $3::bigint and $4::bigint is null and (run_at, seq) < ($5::timestamptz, $6::bigint)))`

	sqlIsPaused = `select count(*) from {}.paused where queue = $1::text`
)

// Get implements core.Inspector. One statement sees one moment, so a job that moves is never missed.
func (s *Session) Get(ctx context.Context, id string) (core.Record, error) {
	var rec core.Record
	seq, found, err := s.find(ctx, id)
	if err == nil && found {
		found = false
		var b body
		err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) (err error) {
			found = true
			rec, err = b.scanRecord(r)
			return err
		}, sqlGet, s.now, seq)
	}
	if err == nil && !found {
		err = core.ErrNotFound
	}
	return rec, err
}

// Attempts implements core.Inspector (Q9).
func (s *Session) Attempts(ctx context.Context, id string) ([]core.Attempt, error) {
	attempts := []core.Attempt{}
	seq, found, err := s.find(ctx, id)
	if err != nil || !found {
		return attempts, err
	}
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var a core.Attempt
		var startedAt *time.Time
		var worker, failure *string
		if err := r.Scan(&a.Number, (*string)(&a.Outcome), &startedAt, &a.FinishedAt, &worker, &failure, &a.Result); err != nil {
			return err
		}
		a.StartedAt, a.FinishedAt, a.Worker = utc(startedAt), a.FinishedAt.UTC(), value(worker)
		a.Failure = failureOf(failure)
		attempts = append(attempts, a)
		return nil
	}, sqlAttempts, seq)
	return attempts[max(0, len(attempts)-core.LedgerLimit):], err
}

// Counts implements core.Inspector (Q27). Finished jobs are summed, not counted.
func (s *Session) Counts(ctx context.Context, queue string) (map[core.State]int64, error) {
	counts := make(map[core.State]int64)
	for _, state := range core.States() {
		counts[state] = 0
	}
	if !sane(queue) {
		return counts, nil
	}
	var ready, later, due, leased, comp, fail, canc int64
	if _, err := sqlexec.One(ctx, s.x, []any{&ready, &later, &due, &leased, &comp, &fail, &canc}, sqlCounts, s.now, queue); err != nil {
		return nil, err
	}
	counts[core.StateWaiting], counts[core.StateDelayed], counts[core.StateActive] = ready+due, later-due, leased
	counts[core.StateCompleted], counts[core.StateFailed], counts[core.StateCancelled] = comp, fail, canc
	return counts, nil
}

// Stranded implements core.Inspector.
func (s *Session) Stranded(ctx context.Context, known []string) ([]core.Stranded, error) {
	stranded := []core.Stranded{}
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var st core.Stranded
		err := r.Scan(&st.Queue, &st.Name, &st.Count)
		stranded = append(stranded, st)
		return err
	}, sqlStranded, saneOnly(known))
	return stranded, err
}

// Explain implements core.Inspector (Q27).
func (s *Session) Explain(ctx context.Context, id string) (core.Explanation, error) {
	ex := core.Explanation{ID: id}
	st, err := s.look(ctx, id)
	if err != nil {
		return ex, err
	}
	ex.State = stateName(st.state)
	switch {
	case st.state >= completed:
		ex.Reason = core.ReasonFinished
		return ex, nil
	case st.state == active:
		ex.Reason, ex.Worker, ex.LeaseFor = core.ReasonLeased, value(st.worker), st.until.Sub(st.now)
		return ex, nil
	case st.state == delayed:
		ex.Reason, ex.DueIn = core.ReasonDelayed, st.runAt.Sub(st.now)
		return ex, nil
	}
	var paused int64
	if _, err := sqlexec.One(ctx, s.x, []any{&paused}, sqlIsPaused, st.queue); err != nil {
		return ex, err
	}
	if paused > 0 {
		ex.Reason = core.ReasonPaused
		return ex, nil
	}
	ex.Reason = core.ReasonQueued
	_, err = sqlexec.One(ctx, s.x, []any{&ex.Ahead}, sqlAhead, s.now, st.queue, st.priority, st.place, st.runAt, st.seq)
	return ex, err
}
