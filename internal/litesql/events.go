package litesql

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/journal"
)

const (
	eventColumns     = `seq, version, causation, at, schema, kind, entity, type, correlation, meta, payload`
	sqlEntityVersion = `select coalesce(max(version), 0) from stint_events where kind = ? and entity = ?`
	sqlNewEvent      = `insert into stint_events (kind, entity, version, type, schema, correlation, causation, at, meta, payload)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning seq`
	sqlEntityPage = `select ` + eventColumns + ` from stint_events where kind = ? and entity = ? and version > ? order by version limit ?`
	sqlLogPage    = `select ` + eventColumns + ` from stint_events where seq > ? order by seq limit ?`
	sqlLastDrawn  = `select coalesce(max(seq), 0) from sqlite_sequence where name = 'stint_events'`
	sqlLogEnd     = `select coalesce(max(seq), 0) from stint_events`

	cursorColumns = `name, seq, inline, failures, failed_seq, last_error, parked, retry_at`
	sqlCursor     = `select ` + cursorColumns + ` from stint_cursors where name = ?`
	sqlCursors    = `select ` + cursorColumns + ` from stint_cursors order by name`
	sqlSaveCursor = `insert into stint_cursors (` + cursorColumns + `) values (?, ?, ?, ?, ?, ?, ?, ?)
		on conflict (name) do update set seq = excluded.seq, inline = excluded.inline, failures = excluded.failures,
			failed_seq = excluded.failed_seq, last_error = excluded.last_error, parked = excluded.parked, retry_at = excluded.retry_at`

	sqlPutNote    = `insert into stint_notes (space, key, value) values (?, ?, ?) on conflict (space, key) do update set value = excluded.value`
	sqlDeleteNote = `delete from stint_notes where space = ? and key = ?`
	sqlNotes      = `select key, value from stint_notes where space = ? and key >= ? and key < ? and key > ? order by key limit ?`
)

// Append implements journal.Store: the transaction has SQLite's write lock.
func (s *Session) Append(ctx context.Context, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
	rec := journal.Recorded{Key: key, At: moment(&s.now)}
	if _, err := sqlexec.One(ctx, s.x, []any{&rec.Version}, sqlEntityVersion, key.Kind, key.ID); err != nil {
		return journal.Recorded{}, err
	}
	if !want.Holds(rec.Version) {
		return journal.Recorded{}, &journal.ConflictError{Key: key, Want: want, Have: rec.Version}
	}
	for i := range rows {
		r := &rows[i]
		meta := ""
		if len(r.Meta) > 0 {
			text, err := json.Marshal(r.Meta)
			if err != nil {
				return journal.Recorded{}, err
			}
			meta = string(text)
		}
		rec.Version++
		var seq int64
		_, err := sqlexec.One(ctx, s.x, []any{&seq}, sqlNewEvent, key.Kind, key.ID, rec.Version, r.Type, r.Schema, r.Correlation,
			r.Causation, s.now, meta, solid(r.Payload))
		if err != nil {
			return journal.Recorded{}, err
		}
		rec.Seqs = append(rec.Seqs, seq)
	}
	return rec, nil
}

// solid is bytes that are no NULL.
func solid(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// errFull ends a page.
var errFull = errors.New("litesql: page is full")

// eventPage reads events up to the one with which their payloads reach so many bytes.
func (s *Session) eventPage(ctx context.Context, bytes int, text string, args ...any) (rows []journal.Row, err error) {
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var row journal.Row
		var at int64
		var meta string
		err := r.Scan(&row.Seq, &row.Version, &row.Causation, &at, &row.Schema, &row.Key.Kind, &row.Key.ID, &row.Type,
			&row.Correlation, &meta, &row.Payload)
		if err == nil && meta != "" {
			err = json.Unmarshal([]byte(meta), &row.Meta)
		}
		row.At = moment(&at)
		rows = append(rows, row)
		if bytes -= len(row.Payload); err == nil && bytes <= 0 {
			return errFull
		}
		return err
	}, text, args...)
	if errors.Is(err, errFull) {
		err = nil
	}
	return rows, err
}

// ReadEntity implements journal.Store.
func (s *Session) ReadEntity(ctx context.Context, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
	return s.eventPage(ctx, journal.MaxPageBytes, sqlEntityPage, key.Kind, key.ID, after, limit)
}

// ReadSettled implements journal.Store: one transaction at a time writes, so whatever is visible is settled (J9).
func (s *Session) ReadSettled(ctx context.Context, after int64, limit int) ([]journal.Row, error) {
	rows, err := s.eventPage(ctx, journal.MaxPageBytes, sqlLogPage, after, limit)
	if err != nil || len(rows) > 0 {
		return rows, err
	}
	var drawn int64
	if _, err := sqlexec.One(ctx, s.x, []any{&drawn}, sqlLastDrawn); err != nil || after <= drawn {
		return nil, err
	}
	return nil, &journal.AheadError{After: after, Drawn: drawn}
}

// ReadLog implements journal.Store. Within an entity the order of versions is that of seqs.
func (s *Session) ReadLog(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
	text, args := "select "+eventColumns+" from stint_events where seq > ?", []any{f.After}
	add := func(condition string, arg any) { text, args = text+" and "+condition+" ?", append(args, arg) }
	if f.Before > 0 {
		add("seq <", f.Before)
	}
	for _, c := range []struct{ column, value string }{{"kind", f.Kind}, {"entity", f.EntityID}, {"type", f.Type}, {"correlation", f.Correlation}} {
		if c.value != "" {
			add(c.column+" =", c.value)
		}
	}
	if !f.Since.IsZero() {
		add("at >=", core.Micros(f.Since).UnixMicro())
	}
	order := "seq"
	if f.Kind != "" && f.EntityID != "" {
		order = "version"
	}
	if f.Newest {
		order += " desc"
	}
	return s.eventPage(ctx, math.MaxInt, text+" order by "+order+" limit ?", append(args, f.Limit)...)
}

// LockCursor implements journal.Store: whoever has the write lock has all cursors.
func (s *Session) LockCursor(ctx context.Context, name string) (journal.Cursor, error) {
	c := journal.Cursor{Name: name}
	var retryAt *int64
	if _, err := sqlexec.One(ctx, s.x, cursorInto(&c, &retryAt), sqlCursor, name); err != nil {
		return c, err
	}
	c.RetryAt, c.Now = moment(retryAt), moment(&s.now)
	return c, nil
}

func cursorInto(c *journal.Cursor, retryAt **int64) []any {
	return []any{&c.Name, &c.Seq, &c.Inline, &c.Failures, &c.FailedSeq, &c.LastError, &c.Parked, retryAt}
}

// SaveCursor implements journal.Store.
func (s *Session) SaveCursor(ctx context.Context, c journal.Cursor) error {
	var retryAt any
	if !c.RetryAt.IsZero() {
		retryAt = core.Micros(c.RetryAt).UnixMicro()
	}
	_, err := s.x.Exec(ctx, sqlSaveCursor, c.Name, c.Seq, c.Inline, c.Failures, c.FailedSeq, c.LastError, c.Parked, retryAt)
	return err
}

// Cursors implements journal.Store.
func (s *Session) Cursors(ctx context.Context) (all []journal.Cursor, err error) {
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var c journal.Cursor
		var retryAt *int64
		err := r.Scan(cursorInto(&c, &retryAt)...)
		c.RetryAt = moment(retryAt)
		all = append(all, c)
		return err
	}, sqlCursors)
	return all, err
}

// Head implements journal.Store.
func (s *Session) Head(ctx context.Context) (journal.Head, error) {
	head := journal.Head{Now: moment(&s.now)}
	_, err := sqlexec.One(ctx, s.x, []any{&head.Seq}, sqlLogEnd)
	return head, err
}

// PutNote implements journal.Store.
func (s *Session) PutNote(ctx context.Context, n journal.Note) error {
	_, err := s.x.Exec(ctx, sqlPutNote, n.Space, n.Key, solid(n.Value))
	return err
}

// DeleteNote implements journal.Store.
func (s *Session) DeleteNote(ctx context.Context, space, key string) (bool, error) {
	n, err := s.x.Exec(ctx, sqlDeleteNote, space, key)
	return n > 0, err
}

// beyond is greater than whatever a key goes on with.
const beyond = "\U0010FFFF"

// Notes implements journal.Store.
func (s *Session) Notes(ctx context.Context, space, prefix, after string, limit int) (notes []journal.Note, err error) {
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		n := journal.Note{Space: space}
		err := r.Scan(&n.Key, &n.Value)
		notes = append(notes, n)
		return err
	}, sqlNotes, space, prefix, prefix+beyond, after, limit)
	return notes, err
}

// Announce wakes whoever waits for events.
func (s *Session) Announce(ctx context.Context) error {
	s.wake(journal.WakeQueue)
	return s.flush(ctx)
}
