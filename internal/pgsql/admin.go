package pgsql

import (
	"context"
	"errors"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// One job moves from one zone to another, or is not there any more: then no row comes back.
const (
	cancelFrom = `, f as (
			insert into {}.finished (seq, finished_at, run_at, fence, attempts, stalls, snoozes, runs, state, queue, name, outcome)
			select seq, (select now from t), run_at, fence, attempts, stalls, snoozes, runs + 1, 7, queue, name, 'cancel' from d),
		k as (insert into {}.tallies (queue, name, completed, failed, cancelled) select queue, name, 0, 0, 1 from d)
		select runs + 1 from d`
	sqlCancelReady   = `with ` + moment + `, d as (delete from {}.ready where seq = $2::bigint returning *)` + cancelFrom
	sqlCancelDelayed = `with ` + moment + `, d as (delete from {}.delayed where seq = $2::bigint returning *)` + cancelFrom

	sqlAskCancel = `update {}.leases set cancel = true where seq = $1::bigint`

	// The end becomes an ordinary ledger entry. It has no result: what completed is never revived.
	sqlRevive = `with ` + moment + `,
		f as (delete from {}.finished where seq = $2::bigint and state in (6, 7) returning *),
		` + revived

	// The same with a dedupe key, which it takes: from an entry that is what it was seen to be ($5 is its turn), or where
	// there is none (0). until stays within the job's own window.
	sqlReviveKeyed = `with ` + moment + `,
		h as materialized (
			select ctid as tid from {}.dedupe where name = $3::text and key = $4::text and turn = $5::bigint for update),
		i as (
			insert into {}.dedupe (name, key, seq, turn, was, id)
			select $3::text, $4::text, $2::bigint, nextval({numbers}), 0, $6::text where $5::bigint = 0
			on conflict do nothing returning seq),
		f as (
			delete from {}.finished where seq = $2::bigint and state in (6, 7)
				and (select count(*) from h) + (select count(*) from i) > 0 returning *),
		e as (
			update {}.dedupe set seq = $2::bigint, id = $6::text, until = case when $7::boolean then until end,
				was = turn, turn = nextval({numbers})
			where ctid = any(array(select tid from h)) and exists (select from f)),
		` + revived

	revived = `r as (
			insert into {}.runs (seq, finished_at, started_at, token, number, answered, outcome, asked, worker, failure)
			select seq, finished_at, started_at, token, runs, state, outcome, asked, worker, failure from f),
		k as (
			insert into {}.tallies (queue, name, completed, failed, cancelled)
			select queue, name, 0, -(state = 6)::int, -(state = 7)::int from f),
		w as (
			insert into {}.ready (seq, place, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
			select f.seq, nextval({numbers}), (select now from t), f.fence, j.bytes, 0, 0, f.snoozes, f.runs, j.priority, f.queue, f.name
			from f cross join lateral (
				select priority, coalesce(octet_length(payload), 0) as bytes from {}.jobs where seq = f.seq limit 1) j
			returning queue, place)
		select queue, place from w`

	sqlPromote = `with ` + moment + `,
		d as (delete from {}.delayed where seq = $2::bigint and run_at > (select now from t) returning *),
		w as (
			insert into {}.ready (seq, place, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
			select seq, nextval({numbers}), (select now from t), fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name from d
			returning queue, place)
		select queue, place from w`

	// The key goes with its job. It is locked first, as by all that locks both, and then found by its name again: one whose
	// window moved meanwhile is where the statement's snapshot sees nothing.
	lockKey = `with h as materialized (
			select e.name, e.key from (select seq, name, dedupe_key from {}.jobs where seq = $1::bigint) j
			cross join lateral (
				select name, key from {}.dedupe where name = j.name and key = j.dedupe_key and seq = j.seq limit 1 for update) e), `
	withKey    = ` and (select count(*) from h) >= 0`
	removeFrom = `, x as (
			delete from {}.dedupe where name = (select name from h) and key = (select key from h) and exists (select from d)),
		r as (delete from {}.runs where seq = (select seq from d)),
		j as (delete from {}.jobs where seq = (select seq from d))
		select seq from d`
	sqlRemoveReady    = lockKey + `d as (delete from {}.ready where seq = $1::bigint` + withKey + ` returning seq)` + removeFrom
	sqlRemoveDelayed  = lockKey + `d as (delete from {}.delayed where seq = $1::bigint` + withKey + ` returning seq)` + removeFrom
	sqlRemoveFinished = lockKey + `d as (delete from {}.finished where seq = $1::bigint` + withKey + ` returning seq, queue, name, state),
		k as (
			insert into {}.tallies (queue, name, completed, failed, cancelled)
			select queue, name, -(state = 5)::int, -(state = 6)::int, -(state = 7)::int from d)` + removeFrom

	sqlPause  = `insert into {}.paused (queue) values ($1::text) on conflict do nothing`
	sqlResume = `delete from {}.paused where queue = $1::text`
	sqlPaused = `select queue from {}.paused order by queue`
)

// Cancel implements core.Admin (Q8).
func (s *Session) Cancel(ctx context.Context, id string) (core.State, error) {
	return s.cancel(ctx, id, 0)
}

// cancel cancels the job with an id and, unless it is 0, a number.
func (s *Session) cancel(ctx context.Context, id string, seq int64) (core.State, error) {
	state := core.StateCancelled
	err := s.change(ctx, id, func(st *standing) (bool, error) {
		switch {
		case seq != 0 && st.seq != seq:
			return false, core.ErrNotFound
		case st.state == active:
			n, err := s.x.Exec(ctx, sqlAskCancel, st.seq)
			if n > 0 {
				state = core.StateActive
				s.wake(News{Queue: control})
			}
			return n > 0, err
		case st.state >= completed:
			return false, &core.StateError{ID: id, State: stateName(st.state), Op: "cancel"}
		}
		text := sqlCancelReady
		if st.inDelayed {
			text = sqlCancelDelayed
		}
		var runs int64
		done, err := sqlexec.One(ctx, s.x, []any{&runs}, text, s.now, st.seq)
		if err == nil && runs > core.LedgerLimit {
			// What this forgets is no part of the answer: a ledger that is too long is trimmed by its next entry.
			_, _ = s.x.Exec(ctx, sqlTrim, st.seq, runs-core.LedgerLimit)
		}
		return done, err
	})
	if err != nil {
		return "", err
	}
	return state, nil
}

// Retry implements core.Admin (Q8): the budgets start again, the ledger goes on.
func (s *Session) Retry(ctx context.Context, id string) error {
	return s.change(ctx, id, func(st *standing) (bool, error) {
		if st.state < failed {
			return false, &core.StateError{ID: id, State: stateName(st.state), Op: "retry"}
		}
		if st.key == nil {
			return s.moved(ctx, sqlRevive, st.seq)
		}
		turn, asItWas, err := s.retake(ctx, st)
		if err != nil {
			return false, err
		}
		var own any
		if id != ownID(st.seq) {
			own = id
		}
		return s.moved(ctx, sqlReviveKeyed, st.seq, st.name, *st.key, turn, own, asItWas)
	})
}

// Promote implements core.Admin (Q8).
func (s *Session) Promote(ctx context.Context, id string) error {
	return s.change(ctx, id, func(st *standing) (bool, error) {
		if st.state != delayed {
			return false, &core.StateError{ID: id, State: stateName(st.state), Op: "promote"}
		}
		return s.moved(ctx, sqlPromote, st.seq)
	})
}

// moved runs a statement that makes a job waiting, and wakes its queue.
func (s *Session) moved(ctx context.Context, text string, seq int64, more ...any) (bool, error) {
	var news News
	done, err := sqlexec.One(ctx, s.x, []any{&news.Queue, &news.Place}, text, append([]any{s.now, seq}, more...)...)
	if done {
		s.wake(news)
	}
	return done, err
}

// Remove implements core.Admin (Q8).
func (s *Session) Remove(ctx context.Context, id string) (bool, error) {
	removed := false
	err := s.change(ctx, id, func(st *standing) (done bool, err error) {
		text := sqlRemoveReady
		switch {
		case st.state == active:
			return true, nil
		case st.state >= completed:
			text = sqlRemoveFinished
		case st.inDelayed:
			text = sqlRemoveDelayed
		}
		var seq int64
		removed, err = sqlexec.One(ctx, s.x, []any{&seq}, text, st.seq)
		return removed, err
	})
	if errors.Is(err, core.ErrNotFound) {
		return false, nil
	}
	return removed && err == nil, err
}

// Pause implements core.Admin (Q8).
func (s *Session) Pause(ctx context.Context, queue string) error {
	if err := core.ValidateQueue("queue", queue); err != nil {
		return err
	}
	_, err := s.x.Exec(ctx, sqlPause, queue)
	return err
}

// Resume implements core.Admin (Q8).
func (s *Session) Resume(ctx context.Context, queue string) error {
	if err := core.ValidateQueue("queue", queue); err != nil {
		return err
	}
	_, err := s.x.Exec(ctx, sqlResume, queue)
	s.wake(News{Queue: queue})
	return err
}

// Paused implements core.Admin.
func (s *Session) Paused(ctx context.Context) ([]string, error) {
	queues := []string{}
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var q string
		err := r.Scan(&q)
		queues = append(queues, q)
		return err
	}, sqlPaused)
	return queues, err
}
