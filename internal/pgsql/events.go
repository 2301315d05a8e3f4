package pgsql

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/journal"
)

// The entity's row first: it is locked until the transaction ends, and where its version is another than expected no
// seq is drawn. Seqs are drawn in the order in which rows are inserted.
const (
	headNew = `insert into {}.entities (kind, id, version) values ($2::text, $3::text, $5::bigint + 0 * $4::bigint)
		on conflict (kind, id) do nothing returning version`
	headAt  = `update {}.entities set version = version + $5::bigint where kind = $2::text and id = $3::text and version = $4::bigint returning version`
	headAny = `insert into {}.entities as e (kind, id, version) values ($2::text, $3::text, $5::bigint + 0 * $4::bigint)
		on conflict (kind, id) do update set version = e.version + excluded.version returning version`

	// The time is taken when the row is locked: events of an entity have theirs in order.
	appendTo = `), t as materialized (select version, coalesce($1::timestamptz, clock_timestamp()) as now from h)
		insert into {}.events (version, at, causation, correlation, kind, entity, type, schema, meta, payload)
		select t.version - $5::bigint + e.n, t.now, $6::bigint, $7::text, $2::text, $3::text, e.type, e.schema, e.meta, e.payload
		from t, unnest($8::text[], $9::integer[], $10::text[], $11::bytea[]) with ordinality e (type, schema, meta, payload, n)
		order by e.n
		returning seq, version, at`

	sqlAppendNew = `with h as (` + headNew + appendTo
	sqlAppendAt  = `with h as (` + headAt + appendTo
	sqlAppendAny = `with h as (` + headAny + appendTo

	sqlEntityVersion = `select version from {}.entities where kind = $1::text and id = $2::text`

	eventColumns = `seq, version, causation, at, schema, kind, entity, type, correlation, meta, payload`
)

var sqlEntityPage = `select ` + eventColumns + eventPage(`kind = $1::text and entity = $2::text and version > $3::bigint`, `version`, `$4::bigint`, `$5::bigint`)

// eventPage is the rest of a select of up to limit events that ends with the one whose payload reaches most bytes, if one
// does. To add payloads up as they lie takes a tenth of the time that finding this event takes, which most pages do not have.
func eventPage(where, order, limit, most string) string {
	events := ` from {}.events where ` + where + ` order by ` + order + ` limit `
	return events + `(select case when coalesce(sum(octet_length(payload)), 0) < ` + most + ` then ` + limit + ` else (
			select count(*) from (
				select sum(octet_length(payload)) over (order by ` + order + ` rows between unbounded preceding and current row) - octet_length(payload) as before
				from (select ` + order + `, payload` + events + limit + `) e) e
			where before < ` + most + `) end
		from (select payload` + events + limit + `) e)`
}

// Append implements journal.Store.
func (s *Session) Append(ctx context.Context, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
	n := len(rows)
	types, schemas, metas, payloads := make([]string, n), make([]int32, n), make([]string, n), make([][]byte, n)
	for i := range rows {
		r := &rows[i]
		types[i], schemas[i], payloads[i] = r.Type, int32(r.Schema), solid(r.Payload)
		if len(r.Meta) > 0 {
			text, err := json.Marshal(r.Meta)
			if err != nil {
				return journal.Recorded{}, err
			}
			metas[i] = string(text)
		}
	}
	text := sqlAppendAt
	switch want {
	case journal.NoEntity:
		text = sqlAppendNew
	case journal.AnyVersion:
		text = sqlAppendAny
	}
	rec := journal.Recorded{Key: key, Seqs: make([]int64, n)}
	var versions []int64
	var seqs []int64
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var seq, version int64
		err := r.Scan(&seq, &version, &rec.At)
		seqs, versions = append(seqs, seq), append(versions, version)
		rec.Version = max(rec.Version, version)
		return err
	}, text, s.now, key.Kind, key.ID, int64(want), int64(n), rows[0].Causation, rows[0].Correlation, types, schemas, metas, payloads)
	if err != nil {
		return journal.Recorded{}, err
	}
	if len(seqs) == 0 {
		conflict := &journal.ConflictError{Key: key, Want: want}
		if _, err := sqlexec.One(ctx, s.x, []any{&conflict.Have}, sqlEntityVersion, key.Kind, key.ID); err != nil {
			return journal.Recorded{}, err
		}
		return journal.Recorded{}, conflict
	}
	for i, v := range versions {
		rec.Seqs[int64(n-1)-(rec.Version-v)] = seqs[i]
	}
	rec.At = rec.At.UTC()
	return rec, nil
}

// solid is bytes that are no NULL.
func solid(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// event scans the columns of events. One serves many rows.
type event struct {
	journal.Row
	meta string
}

func (e *event) columns() []any {
	r := &e.Row
	return []any{&r.Seq, &r.Version, &r.Causation, &r.At, &r.Schema, &r.Key.Kind, &r.Key.ID, &r.Type, &r.Correlation, &e.meta, &r.Payload}
}

func (e *event) row() (journal.Row, error) {
	row := e.Row
	e.Payload = nil // the next one has its own
	row.At = row.At.UTC()
	if e.meta != "" {
		if err := json.Unmarshal([]byte(e.meta), &row.Meta); err != nil {
			return journal.Row{}, err
		}
	}
	return row, nil
}

func (s *Session) readEvents(ctx context.Context, text string, args ...any) ([]journal.Row, error) {
	var out []journal.Row
	var e event
	into := e.columns()
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		if err := r.Scan(into...); err != nil {
			return err
		}
		row, err := e.row()
		out = append(out, row)
		return err
	}, text, args...)
	return out, err
}

// ReadEntity implements journal.Store.
func (s *Session) ReadEntity(ctx context.Context, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
	return s.readEvents(ctx, sqlEntityPage, key.Kind, key.ID, after, int64(limit), int64(journal.MaxPageBytes))
}

// ReadLog implements journal.Store. Within an entity the order of versions is that of seqs.
func (s *Session) ReadLog(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
	conditions, args := []string{"seq > $1::bigint"}, []any{f.After}
	add := func(condition, as string, arg any) {
		args = append(args, arg)
		conditions = append(conditions, condition+" $"+strconv.Itoa(len(args))+as)
	}
	if f.Before > 0 {
		add("seq <", "::bigint", f.Before)
	}
	for _, c := range []struct{ column, value string }{{"kind", f.Kind}, {"entity", f.EntityID}, {"type", f.Type}, {"correlation", f.Correlation}} {
		if c.value != "" {
			add(c.column+" =", "::text", c.value)
		}
	}
	if !f.Since.IsZero() {
		add("at >=", "::timestamptz", core.Micros(f.Since))
	}
	order := "seq"
	if f.Kind != "" && f.EntityID != "" {
		order = "version"
	}
	if f.Newest {
		order += " desc"
	}
	args = append(args, int64(f.Limit))
	text := "select " + eventColumns + " from {}.events where " + strings.Join(conditions, " and ") + " order by " + order
	return s.readEvents(ctx, text+" limit $"+strconv.Itoa(len(args))+"::bigint", args...)
}

// microsTime is a time as it is written, or none.
func microsTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return core.Micros(t)
}
