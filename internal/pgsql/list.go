package pgsql

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// Lists are read in two steps: the numbers of a page, by the order's own index, and then their records.
const (
	sqlRecords = `select ` + recordColumns + `
		from unnest($2::bigint[]) with ordinality u (seq, pos)
		cross join lateral (select * from {}.jobs where seq = u.seq limit 1) j ` + zones + ` order by u.pos`

	// The order of insertion is that of the numbers. Filters leave out as it is walked.
	listEnqueued = `select j.seq, j.enqueued_at from {}.jobs j
		where j.seq %than% $2::bigint and ($3::text = '' or j.queue = $3::text) and ($4::text = '' or j.name = $4::text)
			and ($5::text is null or j.metadata @> $5::text::jsonb)
			and ($6::bigint[] is null or (select w.state from (select) x ` + zones + `) = any($6::bigint[]))
		order by j.seq %dir% limit $7::bigint`

	// One index range per name (and state), of which no more is read than a page.
	listDelayed = `select d.seq, d.run_at from (
			with recursive names as (
				(select name from {}.delayed where queue = $3::text order by name limit 1)
				union all
				select (select name from {}.delayed where queue = $3::text and name > names.name order by name limit 1)
				from names where names.name is not null)
			select name from names where name is not null and ($4::text = '' or name = $4::text)) n
		cross join lateral (
			select seq, run_at from {}.delayed where queue = $3::text and name = n.name and run_at > ` + since + `
				and (run_at, seq) %than% ($6::timestamptz, $2::bigint)
				and ($5::text is null or (select metadata from {}.jobs where seq = delayed.seq) @> $5::text::jsonb)
			order by run_at %dir%, seq %dir% limit $7::bigint) d
		order by d.run_at %dir%, d.seq %dir% limit $7::bigint`

	listFinished = `select f.seq, f.finished_at from (
			select queue, name from {}.tallies where ($3::text = '' or queue = $3::text) and ($4::text = '' or name = $4::text)
			group by queue, name) n
		cross join unnest(array[5, 6, 7]::smallint[]) s (state)
		cross join lateral (
			select seq, finished_at from {}.finished where queue = n.queue and name = n.name and state = s.state
				and (finished_at, seq) %than% ($1::timestamptz, $2::bigint)
				and ($5::text is null or (select metadata from {}.jobs where seq = finished.seq) @> $5::text::jsonb)
			order by finished_at %dir%, seq %dir% limit $7::bigint) f
		where $6::bigint[] is null or s.state = any($6::bigint[])
		order by f.finished_at %dir%, f.seq %dir% limit $7::bigint`
)

// List implements core.Inspector (Q27).
func (s *Session) List(ctx context.Context, q core.Query) (core.Page, error) {
	page := core.Page{Jobs: []core.Record{}}
	if err := q.Validate(); err != nil {
		return page, err
	}
	after, err := readCursor(q)
	if err != nil || q.States != nil && len(q.States) == 0 {
		return page, err
	}
	if !sane(q.Queue) || !sane(q.Name) || !saneMetadata(q.Metadata) {
		return page, nil
	}
	found, err := s.positions(ctx, q, after, q.PageSize()+1) // one more than the page: it tells whether there is another
	if err != nil {
		return page, err
	}
	if len(found) > q.PageSize() {
		found = found[:q.PageSize()]
		page.Cursor = cursorText(q, found[len(found)-1])
	}
	page.Jobs, err = s.records(ctx, found)
	return page, err
}

func saneMetadata(m map[string]string) bool {
	for k, v := range m {
		if !sane(k) || !sane(v) {
			return false
		}
	}
	return true
}

// positions walks an order from behind after.
func (s *Session) positions(ctx context.Context, q core.Query, after position, limit int) ([]position, error) {
	var states []int64
	for _, state := range q.States {
		states = append(states, stateCode(state))
	}
	var metadata any
	if len(q.Metadata) > 0 {
		b, err := json.Marshal(q.Metadata)
		if err != nil {
			return nil, err
		}
		metadata = string(b)
	}
	text, args := listEnqueued, []any{s.now, after.seq, q.Queue, q.Name, metadata, states, int64(limit)}
	switch order(q) {
	case core.OrderFinished:
		text, args[0] = listFinished, after.at
	case core.OrderRun:
		if len(q.States) != 1 || q.States[0] != core.StateDelayed || q.Queue == "" {
			return nil, &core.UnsupportedError{Op: "List by run time",
				Reason: "the Postgres store does so for States {delayed} and a Queue only"}
		}
		text, args[5] = listDelayed, after.at
	}
	var list []position
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var p position
		err := r.Scan(&p.seq, &p.at)
		list = append(list, p)
		return err
	}, directed(text, q.Ascending), args...)
	return list, err
}

// records reads jobs in the order of list.
func (s *Session) records(ctx context.Context, list []position) ([]core.Record, error) {
	records := make([]core.Record, 0, len(list))
	if len(list) == 0 {
		return records, nil
	}
	seqs := make([]int64, len(list))
	for i, p := range list {
		seqs[i] = p.seq
	}
	var b body
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		rec, err := b.scanRecord(r)
		records = append(records, rec)
		return err
	}, sqlRecords, s.now, seqs)
	return slices.Clip(records), err
}

// position is a job's place in an order: the time that it is ordered by, then its number.
type position struct {
	at  time.Time
	seq int64
}
