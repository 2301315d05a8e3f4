package litesql

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// Pruning has two steps: a reader finds out what is not kept any more, as ends up to which all of a group goes, and then
// short turns of the writer delete that. A job that is revived and ends again in between ends later than what was read,
// and so stays.
const (
	// The groups of finished jobs, lane by lane: how many, the oldest one's end, the newest one and its Keep.
	sqlEnds = `select e.lane, e.name, e.state, e.n, o.finished_at, w.finished_at, w.seq, j.keep from (
			select lane, name, state, n,
				(select seq from stint_finished where lane = g.lane and state = g.state order by finished_at, seq limit 1) as oldest,
				(select seq from stint_finished where lane = g.lane and state = g.state order by finished_at desc, seq desc limit 1) as newest
			from (
				select lane, name, 5 as state, completed as n from stint_lanes
				union all select lane, name, 6, failed from stint_lanes
				union all select lane, name, 7, cancelled from stint_lanes) g
			where n > 0) e
		cross join stint_finished o on o.seq = e.oldest
		cross join stint_finished w on w.seq = e.newest
		cross join stint_jobs j on j.seq = e.newest`

	sqlNewestEnds = `select finished_at, seq from stint_finished where lane = ? and state = ?
		order by finished_at desc, seq desc limit ? offset ?`

	sqlOldestEnds = `select finished_at, seq from stint_finished where lane = ? and state = ? and (finished_at, seq) <= (?, ?)
		order by finished_at, seq limit ?`

	// Row by row, as Remove does. What is not finished any more is not deleted.
	sqlPruneFinished = `delete from stint_finished where seq in (select value from json_each(?))`
	sqlPruneRuns     = `delete from stint_runs where seq in (select value from json_each(?))`
	sqlPruneJobs     = `delete from stint_jobs where seq in (select value from json_each(?))`
)

// Expired are finished jobs of one name and state that are not kept any more: all up to an end.
type Expired struct {
	state int64
	lanes []int64
	upTo  position
}

// ends are the finished jobs of one name and state.
type ends struct {
	lanes  []int64
	n      int64
	oldest int64 // µs
	newest position
	keep   *string // the newest one's
}

// Expired says what Prune deletes (Q28).
func (s *Session) Expired(ctx context.Context, req core.PruneRequest) ([]Expired, error) {
	type group struct {
		name  string
		state int64
	}
	groups := make(map[group]*ends)
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var g group
		var lane, n, oldest int64
		var newest position
		var keep *string
		if err := r.Scan(&lane, &g.name, &g.state, &n, &oldest, &newest.at, &newest.seq, &keep); err != nil {
			return err
		}
		e := groups[g]
		if e == nil {
			e = &ends{oldest: math.MaxInt64, newest: position{at: math.MinInt64}}
			groups[g] = e
		}
		e.lanes, e.n, e.oldest = append(e.lanes, lane), e.n+n, min(e.oldest, oldest)
		if e.newest.before(newest, true) {
			e.newest, e.keep = newest, keep
		}
		return nil
	}, sqlEnds)
	if err != nil {
		return nil, err
	}
	var expired []Expired
	for g, e := range groups {
		upTo, some, err := s.expired(ctx, req, g.state, e)
		if err != nil {
			return nil, err
		}
		if some {
			expired = append(expired, Expired{g.state, e.lanes, upTo})
		}
	}
	return expired, nil
}

// expired is the end up to which a group is not kept.
func (s *Session) expired(ctx context.Context, req core.PruneRequest, state int64, e *ends) (upTo position, some bool, err error) {
	var keep core.Keep
	if e.keep != nil && json.Unmarshal([]byte(*e.keep), &keep) != nil {
		return upTo, false, nil // a later release wrote it, and may have meant for ever
	}
	rule := req.Rule(stateName(state), keep)
	if rule.None {
		return e.newest, true, nil
	}
	upTo.at = math.MinInt64
	if aged := s.now - micros(rule.Age); rule.Age > 0 && e.oldest <= aged {
		upTo, some = position{at: aged, seq: math.MaxInt64}, true
	}
	if rule.Count > 0 && e.n > int64(rule.Count) {
		first, found, err := s.beyond(ctx, state, e.lanes, rule.Count)
		if err != nil {
			return upTo, false, err
		}
		if found && upTo.before(first, true) {
			upTo, some = first, true
		}
	}
	return upTo, some, nil
}

// beyond is the newest end of a group but for count.
func (s *Session) beyond(ctx context.Context, state int64, lanes []int64, count int) (position, bool, error) {
	if len(lanes) == 1 {
		one, err := s.positions(ctx, sqlNewestEnds, lanes[0], state, 1, count)
		return append(one, position{})[0], len(one) == 1, err
	}
	var newest []position
	for _, lane := range lanes {
		some, err := s.positions(ctx, sqlNewestEnds, lane, state, count+1, 0)
		if err != nil {
			return position{}, false, err
		}
		newest = firstOf(append(newest, some...), count+1, false)
	}
	if len(newest) <= count {
		return position{}, false, nil
	}
	return newest[count], true, nil
}

// Prune deletes up to limit of the expired jobs, the oldest first (Q28).
func (s *Session) Prune(ctx context.Context, e Expired, limit int) (int, error) {
	var oldest []position
	laneOf := make(map[int64]int64)
	for _, lane := range e.lanes {
		some, err := s.positions(ctx, sqlOldestEnds, lane, e.state, e.upTo.at, e.upTo.seq, limit)
		if err != nil {
			return 0, err
		}
		for _, p := range some {
			laneOf[p.seq] = lane
		}
		oldest = firstOf(append(oldest, some...), limit, true)
	}
	if len(oldest) == 0 {
		return 0, nil
	}
	less := totals{}
	for _, p := range oldest {
		less.add(laneOf[p.seq], e.state, -1)
	}
	if err := less.exec(ctx, s.x); err != nil {
		return 0, err
	}
	list := slices.Sorted(slices.Values(numbersOf(oldest)))
	if e.state == cancelled { // else they would keep their windows once nobody knows how they ended (Q12)
		if err := s.FreeKeys(ctx, list); err != nil {
			return 0, err
		}
	}
	seqs := numbers(list)
	for _, text := range []string{sqlPruneFinished, sqlPruneRuns, sqlPruneJobs} {
		if _, err := s.x.Exec(ctx, text, seqs); err != nil {
			return 0, err
		}
	}
	return len(oldest), nil
}
