package pgsql

import (
	"context"
	"time"

	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/journal"
)

const (
	sqlLogEnd = `select coalesce(` + newestSeq + `, 0), coalesce($1::timestamptz, clock_timestamp())`

	// Of transactions of other users only those may know the age who may read all statistics. One that is prepared goes
	// by the name that it had, or one made up after a restart: what it holds besides tells its number.
	sqlOldestAppender = `select coalesce(max(extract(epoch from clock_timestamp() - coalesce(a.xact_start, p.prepared))) * 1000000, 0)::bigint
		from pg_locks l
		left join pg_stat_activity a on a.pid = l.pid
		left join pg_locks x on l.pid is null and x.pid is null and x.locktype = 'transactionid' and x.virtualtransaction = l.virtualtransaction
		left join pg_prepared_xacts p on p.transaction = x.transactionid
		where ` + onEvents + ` and l.pid is distinct from pg_backend_pid()`

	cursorColumns   = `name, seq, inline, failures, failed_seq, last_error, parked, retry_at`
	selectCursor    = `select ` + cursorColumns + `, coalesce($1::timestamptz, clock_timestamp()) from {}.cursors where name = $2::text for update`
	sqlLockCursor   = selectCursor
	sqlTryCursor    = selectCursor + ` skip locked`
	sqlCursorThere  = `select count(*) from {}.cursors where name = $1::text`
	newCursor       = `insert into {}.cursors (name, seq, inline, failures, failed_seq, last_error, parked) select $1::text, 0, false, 0, 0, '', 0`
	sqlNewCursor    = newCursor + ` where pg_advisory_xact_lock(hashtextextended($1::text, {events}::oid::bigint)) is not null on conflict do nothing`
	sqlTryNewCursor = newCursor + ` where pg_try_advisory_xact_lock(hashtextextended($1::text, {events}::oid::bigint)) on conflict do nothing`
	sqlSaveCursor   = `update {}.cursors set seq = $2::bigint, inline = $3::boolean, failures = $4::integer, failed_seq = $5::bigint, last_error = $6::text, parked = $7::bigint, retry_at = $8::timestamptz where name = $1::text`
	sqlCursors      = `select ` + cursorColumns + ` from {}.cursors order by name`
	sqlPutNote      = `insert into {}.notes (space, key, value) values ($1::text, $2::text, $3::bytea) on conflict (space, key) do update set value = excluded.value`
	sqlDeleteNote   = `delete from {}.notes where space = $1::text and key = $2::text`
	sqlNotes        = `select key, value from {}.notes where space = $1::text and key >= $2::text and key < $3::text and key > $4::text order by key limit $5::bigint`
	sqlAnnounceText = `select pg_notify($1::text, $2::text)`
)

// LockCursor implements journal.Store.
func (s *Session) LockCursor(ctx context.Context, name string, wait bool) (journal.Cursor, bool, error) {
	// Whoever makes a cursor has it locked, and an insert of the same one would wait for him. So all that make one, also
	// those who wait, hold an advisory lock from before the insert on: who does not want to wait sees that.
	text, create := sqlTryCursor, sqlTryNewCursor
	if wait {
		text, create = sqlLockCursor, sqlNewCursor
	}
	for made := false; ; made = true {
		c, found, err := s.cursor(ctx, text, name)
		if err != nil || found || made {
			return c, found, err
		}
		var there int
		if _, err := sqlexec.One(ctx, s.x, []any{&there}, sqlCursorThere, name); err != nil {
			return c, false, err
		}
		if there > 0 && !wait {
			return c, false, nil // somebody has it
		}
		if _, err := s.x.Exec(ctx, create, name); err != nil {
			return c, false, err
		}
	}
}

func (s *Session) cursor(ctx context.Context, text, name string) (c journal.Cursor, found bool, err error) {
	var retryAt *time.Time
	found, err = sqlexec.One(ctx, s.x, append(cursorInto(&c, &retryAt), &c.Now), text, s.now, name)
	c.RetryAt, c.Now = utc(retryAt), c.Now.UTC()
	return c, found, err
}

func cursorInto(c *journal.Cursor, retryAt **time.Time) []any {
	return []any{&c.Name, &c.Seq, &c.Inline, &c.Failures, &c.FailedSeq, &c.LastError, &c.Parked, retryAt}
}

// SaveCursor implements journal.Store.
func (s *Session) SaveCursor(ctx context.Context, c journal.Cursor) error {
	_, err := s.x.Exec(ctx, sqlSaveCursor, c.Name, c.Seq, c.Inline, int32(c.Failures), c.FailedSeq, c.LastError, c.Parked, microsTime(c.RetryAt))
	return err
}

// Cursors implements journal.Store.
func (s *Session) Cursors(ctx context.Context) (all []journal.Cursor, err error) {
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var c journal.Cursor
		var retryAt *time.Time
		err := r.Scan(cursorInto(&c, &retryAt)...)
		c.RetryAt = utc(retryAt)
		all = append(all, c)
		return err
	}, sqlCursors)
	return all, err
}

// Head implements journal.Store.
func (s *Session) Head(ctx context.Context, st *Settled) (head journal.Head, err error) {
	if _, err := sqlexec.One(ctx, s.x, []any{&head.Seq, &head.Now}, sqlLogEnd, s.now); err != nil {
		return head, err
	}
	head.Now = head.Now.UTC()
	how, err := s.mayReadLocks(ctx, st)
	if err != nil || how == locksClosed {
		return head, err
	}
	var age int64
	_, err = sqlexec.One(ctx, s.x, []any{&age}, sqlOldestAppender)
	head.OldestAppender = time.Duration(age) * time.Microsecond
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
	}, sqlNotes, space, prefix, prefix+beyond, after, int64(limit))
	return notes, err
}

// Notify tells whoever listens to a channel, by the transaction's commit.
func (s *Session) Notify(ctx context.Context, channel, payload string) error {
	_, err := s.x.Exec(ctx, sqlAnnounceText, channel, payload)
	return err
}
