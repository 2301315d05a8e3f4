package pgsql

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	// One process prunes a schema at a time, for as long as its transaction lasts.
	sqlPruneTurn = `select pg_try_advisory_xact_lock(hashtextextended('stint prune ' || $1::text, 0))`

	// The groups of finished jobs, queue by queue: how many, and the newest one with its Keep. With $2 also the oldest
	// one's end, which may lie behind all that was deleted and is not vacuumed yet.
	sqlEnds = `select n.queue, n.name, s.state, s.n, l.finished_at, l.seq, (select keep::text from {}.jobs where seq = l.seq),
			case when $2::boolean then (
				select finished_at from {}.finished where queue = n.queue and name = n.name and state = s.state
				order by finished_at, seq limit 1) end,
			` + since + `
		from (
			select queue, name, sum(completed)::bigint as completed, sum(failed)::bigint as failed, sum(cancelled)::bigint as cancelled
			from {}.tallies group by queue, name) n
		cross join lateral (values (5::smallint, n.completed), (6::smallint, n.failed), (7::smallint, n.cancelled)) s (state, n)
		cross join lateral (
			select finished_at, seq from {}.finished where queue = n.queue and name = n.name and state = s.state
			order by finished_at desc, seq desc limit 1) l
		where s.n > 0`

	// The newest end of a group but for $4.
	sqlBeyond = `select l.finished_at, l.seq from unnest((select $1::text[])) q (queue)
		cross join lateral (
			select finished_at, seq from {}.finished where queue = q.queue and name = $2::text and state = $3::smallint
			order by finished_at desc, seq desc limit $4::bigint + 1) l
		order by l.finished_at desc, l.seq desc offset $4::bigint limit 1`

	// The oldest of a group, behind an end and up to another, and what of them nobody holds: a job that is revived just now
	// is left alone, and one that ended again since it was looked up ended later. Its row in jobs is locked as well, so
	// that nobody is waited for there either, and of one that was cancelled the dedupe key is freed, or it stays while
	// somebody holds that, or wrote it since it was looked up (Q12). Rows are deleted by ctid, which never changes here: by
	// seq, the planner may take the index in which that comes last for as good as the one of its own.
	sqlPrune = `with c as materialized (
			select l.finished_at, l.seq from unnest((select $1::text[])) q (queue)
			cross join lateral (
				select finished_at, seq from {}.finished where queue = q.queue and name = $2::text and state = $3::smallint
					and (finished_at, seq) > ($4::timestamptz, $5::bigint) and (finished_at, seq) <= ($6::timestamptz, $7::bigint)
				order by finished_at, seq limit $8::bigint) l
			order by l.finished_at, l.seq limit $8::bigint),
		b as materialized (
			select seq, name, dedupe_key, case when $3::smallint = 7 then (
				select turn from {}.dedupe where name = j.name and key = j.dedupe_key and seq = j.seq) end as turn
			from {}.jobs j where seq = any(array(select seq from c)) order by seq for update skip locked),
		e as materialized (
			select b.seq, d.tid from b cross join lateral (
				select ctid as tid from {}.dedupe where name = b.name and key = b.dedupe_key and turn = b.turn limit 1 for update skip locked) d),
		h as materialized (
			select ctid as at from {}.finished
			where seq = any(array(select seq from b where turn is null or seq = any(array(select seq from e))))
			order by seq for update skip locked),
		d as (delete from {}.finished where ctid = any(array(select at from h)) returning seq, queue, name, state),
		k as (
			insert into {}.tallies (queue, name, completed, failed, cancelled)
			select queue, name, -count(*) filter (where state = 5), -count(*) filter (where state = 6), -count(*) filter (where state = 7)
			from d group by queue, name),
		x as (delete from {}.dedupe where ctid = any(array(select tid from e where seq = any(array(select seq from d))))),
		r as (delete from {}.runs where seq = any(array(select seq from d))),
		j as (delete from {}.jobs where seq = any(array(select seq from d)))
		select (select count(*) from c), (select count(*) from d),
			coalesce((select finished_at from c order by finished_at desc, seq desc limit 1), $4::timestamptz),
			coalesce((select seq from c order by finished_at desc, seq desc limit 1), $5::bigint)`
)

// Pruned is how far pruning has got, so that the next batch need not begin at what the last ones deleted: as long as
// somebody's transaction is older than that, nothing clears it away, and each batch would wade through all of it. The zero
// value has got nowhere.
type Pruned struct {
	open  map[ended]position // the groups that had something to delete, and the last end that was looked at
	until time.Time          // then everything is looked at again
}

// pruneAgain is how long it may take until everything is looked at again while there is more to delete than batches hold:
// what ends with an earlier time than its neighbours, or was held by somebody, waits for that.
const pruneAgain = time.Minute

// ended says which finished jobs are a group.
type ended struct {
	name  string
	state int64
}

// ends are the finished jobs of one.
type ends struct {
	queues []string
	n      int64
	oldest *time.Time
	newest position
	keep   *string // the newest one's
	now    time.Time
}

// Prune deletes up to limit jobs, inside one transaction, and returns how far it has got if that is committed (Q28).
func (s *Session) Prune(ctx context.Context, schema *Schema, req core.PruneRequest, limit int, from Pruned) (n int, to Pruned, err error) {
	var mine bool
	if _, err := sqlexec.One(ctx, s.x, []any{&mine}, sqlPruneTurn, schema.name); err != nil || !mine {
		return 0, from, err
	}
	p := pruning{s: s, req: req, limit: limit, Pruned: Pruned{maps.Clone(from.open), from.until}}
	if len(p.open) > 0 && time.Now().Before(p.until) {
		if err := p.batch(ctx, false); err != nil {
			return 0, from, err
		}
	}
	if p.n < limit {
		p.open, p.until = make(map[ended]position), time.Now().Add(pruneAgain)
		if err := p.batch(ctx, true); err != nil {
			return 0, from, err
		}
	}
	return p.n, p.Pruned, nil
}

type pruning struct {
	s     *Session
	req   core.PruneRequest
	limit int
	n     int
	Pruned
}

// batch goes through the groups that are open, or through all.
func (p *pruning) batch(ctx context.Context, all bool) error {
	groups, err := p.s.ends(ctx, all)
	if err != nil {
		return err
	}
	expired := make(map[ended]position)
	for g, e := range groups {
		if _, open := p.open[g]; !open && !all {
			continue
		}
		upTo, some, err := p.s.expired(ctx, p.req, g, e)
		if err != nil {
			return err
		}
		if some {
			expired[g] = upTo
			if all {
				p.open[g] = start(true)
			}
		}
	}
	for g := range p.open {
		upTo, some := expired[g]
		if !some { // the last ones went another way, or its rule changed
			delete(p.open, g)
			continue
		}
		if err := p.group(ctx, g, groups[g].queues, upTo); err != nil || p.n == p.limit {
			return err
		}
	}
	return nil
}

// group deletes of one group until that is done, or the limit is reached.
func (p *pruning) group(ctx context.Context, g ended, queues []string, upTo position) error {
	for p.n < p.limit {
		from, most := p.open[g], p.limit-p.n
		var seen, deleted int
		var last position
		_, err := sqlexec.One(ctx, p.s.x, []any{&seen, &deleted, &last.at, &last.seq}, sqlPrune,
			queues, g.name, g.state, from.at, from.seq, upTo.at, upTo.seq, int64(most))
		if err != nil {
			return err
		}
		p.n += deleted
		if seen < most {
			delete(p.open, g)
			return nil
		}
		p.open[g] = last // what was held by somebody is passed by
	}
	return nil
}

// ends reads the groups.
func (s *Session) ends(ctx context.Context, oldest bool) (map[ended]*ends, error) {
	groups := make(map[ended]*ends)
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var g ended
		var queue string
		var n int64
		var newest position
		var keep *string
		var first *time.Time
		var now time.Time
		if err := r.Scan(&queue, &g.name, &g.state, &n, &newest.at, &newest.seq, &keep, &first, &now); err != nil {
			return err
		}
		e := groups[g]
		if e == nil {
			e = &ends{newest: newest, keep: keep, oldest: first, now: now}
			groups[g] = e
		}
		e.queues, e.n = append(e.queues, queue), e.n+n
		if e.newest.less(newest) {
			e.newest, e.keep = newest, keep
		}
		if first != nil && e.oldest != nil && first.Before(*e.oldest) {
			e.oldest = first
		}
		return nil
	}, sqlEnds, s.now, oldest)
	return groups, err
}

// expired is the end up to which a group is not kept, if it has jobs that are not as far as is known.
func (s *Session) expired(ctx context.Context, req core.PruneRequest, g ended, e *ends) (upTo position, some bool, err error) {
	var keep core.Keep
	if e.keep != nil && json.Unmarshal([]byte(*e.keep), &keep) != nil {
		return upTo, false, nil // a later release wrote it, and may have meant for ever
	}
	rule := req.Rule(stateName(g.state), keep)
	if rule.None {
		return e.newest, true, nil
	}
	if rule.Age > 0 {
		// In two steps: the times have microseconds, and it is due when all of Age has passed.
		aged := e.now.Add(-rule.Age.Truncate(time.Microsecond))
		if rule.Age%time.Microsecond > 0 {
			aged = aged.Add(-time.Microsecond)
		}
		if e.oldest == nil || !e.oldest.After(aged) {
			upTo, some = position{at: aged, seq: math.MaxInt64}, true
		}
	}
	if rule.Count > 0 && e.n > int64(rule.Count) {
		var first position
		found, err := sqlexec.One(ctx, s.x, []any{&first.at, &first.seq}, sqlBeyond, e.queues, g.name, g.state, int64(rule.Count))
		if err != nil {
			return upTo, false, err
		}
		if found {
			upTo, some = later(upTo, first), true
		}
	}
	return upTo, some, nil
}

// less reports whether p is an earlier end.
func (p position) less(than position) bool {
	if c := p.at.Compare(than.at); c != 0 {
		return c < 0
	}
	return p.seq < than.seq
}

func later(a, b position) position {
	if a.less(b) {
		return b
	}
	return a
}
