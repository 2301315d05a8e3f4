package litesql

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	// json_each comes first and in order: the rows are read as they were chosen, none further than the cap.
	sqlRecords = `select ` + bodyColumns + `, ` + anyColumns + `
		from json_each(?) e cross join ` + anyFrom + ` where j.seq = e.value`

	sqlMetadata = `select j.seq, j.metadata from json_each(?) e cross join stint_jobs j on j.seq = e.value`

	sqlLaneTotals = `select lane, completed, failed, cancelled from stint_lanes
		where (?1 = '' or queue = ?1) and (?2 = '' or name = ?2)`
)

// List implements core.Inspector (Q27): candidates in order, filtered by metadata, then their records.
func (s *Session) List(ctx context.Context, q core.Query) (core.Page, error) {
	page := core.Page{Jobs: []core.Record{}}
	if err := q.Validate(); err != nil {
		return page, err
	}
	after, err := readCursor(q)
	if err != nil || q.States != nil && len(q.States) == 0 {
		return page, err
	}
	next, err := s.source(ctx, q)
	if err != nil {
		return page, err
	}
	want := q.PageSize() + 1 // one more than the page: it tells whether there is another
	batch := want
	if len(q.Metadata) > 0 {
		batch = max(want, 500)
	}
	var chosen []position
	for len(chosen) < want {
		found, err := next(ctx, after, batch)
		if err != nil {
			return page, err
		}
		if len(found) > 0 {
			after = found[len(found)-1]
		}
		end := len(found) < batch
		if found, err = s.withMetadata(ctx, q.Metadata, found); err != nil {
			return page, err
		}
		chosen = append(chosen, found...)
		if end {
			break
		}
	}
	if page.Jobs, err = s.records(ctx, chosen[:min(len(chosen), want-1)]); err != nil {
		return page, err
	}
	if n := len(page.Jobs); n < len(chosen) {
		page.Cursor = cursorText(q, chosen[n-1])
	}
	return page, nil
}

// source returns positions of an order, up to limit behind after.
type source func(ctx context.Context, after position, limit int) ([]position, error)

func (s *Session) source(ctx context.Context, q core.Query) (source, error) {
	switch order(q) {
	case core.OrderFinished:
		return s.finishedSource(ctx, q)
	case core.OrderRun:
		if len(q.States) != 1 || q.States[0] != core.StateDelayed || q.Queue == "" {
			return nil, &core.UnsupportedError{Op: "List by run time",
				Reason: "the SQLite store does so for States {delayed} and a Queue only"}
		}
		return s.delayedSource(ctx, q)
	default:
		return s.enqueuedSource(q), nil
	}
}

func direction(ascending bool) (than, dir string) {
	if ascending {
		return ">", "asc"
	}
	return "<", "desc"
}

// enqueuedSource walks the order of insertion and leaves out what a filter refuses.
func (s *Session) enqueuedSource(q core.Query) source {
	than, dir := direction(q.Ascending)
	text := `select j.enqueued_at, j.seq from stint_jobs j where (j.enqueued_at, j.seq) ` + than + ` (?, ?)`
	var filter []any
	if q.Queue != "" || q.Name != "" {
		text += ` and j.lane in (select lane from stint_lanes where (?3 = '' or queue = ?3) and (?4 = '' or name = ?4))`
	}
	filter = append(filter, q.Queue, q.Name)
	if q.States != nil {
		states := make([]int64, len(q.States))
		for i, state := range q.States {
			states[i] = stateCode(state)
		}
		text += ` and coalesce(
			(select case when w.state = 2 and w.run_at <= ?5 then 1 else w.state end from stint_work w where w.seq = j.seq),
			(select f.state from stint_finished f where f.seq = j.seq)) in (select value from json_each(?6))`
		filter = append(filter, s.now, numbers(states))
	}
	text += ` order by j.enqueued_at ` + dir + `, j.seq ` + dir + ` limit `
	return func(ctx context.Context, after position, limit int) ([]position, error) {
		args := append([]any{after.at, after.seq}, filter...)
		return s.positions(ctx, text+strconv.Itoa(limit), args...)
	}
}

// finishedSource merges the finished jobs of lanes and states, each of which has its own order in the index.
func (s *Session) finishedSource(ctx context.Context, q core.Query) (source, error) {
	states := q.States
	if states == nil {
		states = core.States()
	}
	type group struct{ lane, state int64 }
	var groups []group
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var lane int64
		var totals [3]int64
		if err := r.Scan(&lane, &totals[0], &totals[1], &totals[2]); err != nil {
			return err
		}
		for i, n := range totals {
			if state := completed + int64(i); n > 0 && slices.Contains(states, stateName(state)) {
				groups = append(groups, group{lane, state})
			}
		}
		return nil
	}, sqlLaneTotals, q.Queue, q.Name)
	if err != nil {
		return nil, err
	}
	than, dir := direction(q.Ascending)
	text := `select finished_at, seq from stint_finished where lane = ? and state = ? and (finished_at, seq) ` + than +
		` (?, ?) order by finished_at ` + dir + `, seq ` + dir + ` limit `
	return func(ctx context.Context, after position, limit int) ([]position, error) {
		var all []position
		for _, g := range groups {
			some, err := s.positions(ctx, text+strconv.Itoa(limit), g.lane, g.state, after.at, after.seq)
			if err != nil {
				return nil, err
			}
			all = firstOf(append(all, some...), limit, q.Ascending)
		}
		return all, nil
	}, nil
}

// delayedSource merges the delayed jobs of a queue's lanes.
func (s *Session) delayedSource(ctx context.Context, q core.Query) (source, error) {
	var lanes []int64
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var lane, skip int64
		err := r.Scan(&lane, &skip, &skip, &skip)
		lanes = append(lanes, lane)
		return err
	}, sqlLaneTotals, q.Queue, q.Name)
	if err != nil {
		return nil, err
	}
	than, dir := direction(q.Ascending)
	text := `select run_at, seq from stint_work where lane = ? and state = 2 and run_at > ? and (run_at, seq) ` + than +
		` (?, ?) order by run_at ` + dir + `, seq ` + dir + ` limit `
	return func(ctx context.Context, after position, limit int) ([]position, error) {
		var all []position
		for _, lane := range lanes {
			some, err := s.positions(ctx, text+strconv.Itoa(limit), lane, s.now, after.at, after.seq)
			if err != nil {
				return nil, err
			}
			all = firstOf(append(all, some...), limit, q.Ascending)
		}
		return all, nil
	}, nil
}

func (s *Session) positions(ctx context.Context, text string, args ...any) ([]position, error) {
	var list []position
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var p position
		err := r.Scan(&p.at, &p.seq)
		list = append(list, p)
		return err
	}, text, args...)
	return list, err
}

// firstOf sorts positions and keeps the first limit.
func firstOf(list []position, limit int, ascending bool) []position {
	slices.SortFunc(list, func(a, b position) int {
		if a.before(b, ascending) {
			return -1
		}
		return 1
	})
	return list[:min(len(list), limit)]
}

// withMetadata keeps the jobs that have all of want.
func (s *Session) withMetadata(ctx context.Context, want map[string]string, list []position) ([]position, error) {
	if len(want) == 0 || len(list) == 0 {
		return list, nil
	}
	has := make(map[int64]bool, len(list))
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var seq int64
		var doc *string
		if err := r.Scan(&seq, &doc); err != nil || doc == nil {
			return err
		}
		var metadata map[string]string
		if err := json.Unmarshal([]byte(*doc), &metadata); err != nil {
			return err
		}
		for k, v := range want {
			if got, ok := metadata[k]; !ok || got != v {
				return nil
			}
		}
		has[seq] = true
		return nil
	}, sqlMetadata, numbers(numbersOf(list)))
	return slices.DeleteFunc(list, func(p position) bool { return !has[p.seq] }), err
}

// records reads jobs in the order of list, up to core.MaxPageBytes but one at least.
func (s *Session) records(ctx context.Context, list []position) ([]core.Record, error) {
	records := make([]core.Record, 0, len(list))
	if len(list) == 0 {
		return records, nil
	}
	rows, err := s.x.Query(ctx, sqlRecords, numbers(numbersOf(list)))
	if err != nil {
		return nil, err
	}
	total := 0
	for rows.Next() {
		rec, err := scanRecord(rows, s.now)
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		if total += len(rec.Payload) + len(rec.Result); total > core.MaxPageBytes && len(records) > 0 {
			break
		}
		records = append(records, rec)
	}
	return records, errors.Join(rows.Err(), rows.Close())
}

func numbersOf(list []position) []int64 {
	seqs := make([]int64, len(list))
	for i, p := range list {
		seqs[i] = p.seq
	}
	return seqs
}
