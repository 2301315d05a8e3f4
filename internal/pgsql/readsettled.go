package pgsql

import (
	"context"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/journal"
)

// newestSeq is the log's end. max() is planned as one pass over all of an index that is said to have a single entry.
const newestSeq = `(select seq from {}.events order by seq desc limit 1)`

// sqlSettledPage ends with a row that is no event and tells of the server, at the same moment and also where there are no
// events.
var sqlSettledPage = `(select ` + eventColumns + eventPage(`seq > $1::bigint`, `seq`, `$2::bigint`, `$3::bigint`) + `)
	union all
	select 0, coalesce(` + newestSeq + `, 0), 0, pg_postmaster_start_time(), pg_is_in_recovery()::integer,
		current_setting('transaction_isolation'), '', '', '', '', ''::bytea`

const (
	// onEvents are the locks of transactions that inserted into the log, or changed it, and are not over.
	onEvents = `l.locktype = 'relation' and l.relation = {events} and l.mode = 'RowExclusiveLock' and l.granted
		and l.database = (select oid from pg_database where datname = current_database())`

	// The statement sees what was committed when it began, and locks after that.
	sqlBarrier = `select coalesce(` + newestSeq + `, 0), array(select virtualtransaction from pg_locks l where ` + onEvents + `)`

	sqlBarrierHolds = `select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint, count(*) from pg_locks l
		where ` + onEvents + ` and (l.virtualtransaction = any($1::text[]) or l.pid is null)`

	// Where nobody may look at pg_locks any transaction is waited for that writes, and has a number below one that was
	// drawn when the newest seq had been seen: whoever drew a seq had a number before. This transaction's own may be
	// older than that, so a savepoint draws one, and has come to an end when the newest that has is asked for.
	sqlNewestSeq = `select coalesce(` + newestSeq + `, 0)`
	sqlDrawXid   = `select pg_logical_emit_message(true, 'stint', '')`
	sqlNextXid   = `select pg_snapshot_xmax(pg_current_snapshot())::text::bigint`

	sqlBarrierXidHolds = `select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint,
		(pg_snapshot_xmin(pg_current_snapshot())::text::bigint < $1::bigint)::integer::bigint`

	sqlMayReadLocks = `select has_table_privilege('pg_catalog.pg_locks', 'select') and has_function_privilege('pg_catalog.pg_lock_status()', 'execute')`

	logSequence = `from pg_sequence s join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = s.seqrelid
		and d.refclassid = 'pg_class'::regclass and d.refobjid = {events} and d.deptype in ('a', 'i')`
	sqlSequence  = `select s.seqcache = 1 and s.seqincrement = 1 and not s.seqcycle ` + logSequence
	sqlLastDrawn = `select coalesce(pg_sequence_last_value(s.seqrelid), 0) ` + logSequence + ` where has_sequence_privilege(s.seqrelid, 'usage, select')`
)

// ReadSettled implements journal.Store, on a connection at READ COMMITTED. What the horizon was when the page was sent
// judges it: somebody else may raise it for what this page's snapshot can't see.
func (s *Session) ReadSettled(ctx context.Context, st *Settled, after int64, limit int) ([]journal.Row, error) {
	rows, err := s.readSettled(ctx, st, after, limit)
	if err != nil {
		st.Forget()
	}
	return rows, err
}

func (s *Session) readSettled(ctx context.Context, st *Settled, after int64, limit int) ([]journal.Row, error) {
	for {
		k, err := s.pastBarrier(ctx, st)
		if err != nil {
			return nil, err
		}
		rows, end, err := s.settledPage(ctx, after, limit)
		switch {
		case err != nil:
			return nil, err
		case end.standby:
			return nil, &core.UnsupportedError{Op: "reading the log", Reason: "a standby does not know which transactions are open: read on the primary"}
		case end.isolation != "read committed" && end.isolation != "read uncommitted": // which Postgres does not tell apart
			return nil, &core.InvalidError{Field: "tx", Reason: "must be at READ COMMITTED to read the log"}
		case len(rows) == 0 && after > end.top:
			return nil, s.ahead(ctx, after)
		}
		n := settledPart(rows, after, st.fit(k, end))
		if n == len(rows) {
			return rows, nil
		}
		open, err := s.raiseBarrier(ctx, st, end.server)
		if err != nil {
			return nil, err
		}
		if n > 0 || open {
			return rows[:n], nil
		}
	}
}

func (s *Session) settledPage(ctx context.Context, after int64, limit int) (rows []journal.Row, end logEnd, err error) {
	var e event
	into := e.columns()
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		if err := r.Scan(into...); err != nil {
			return err
		}
		if e.Seq == 0 {
			end = logEnd{top: e.Version, server: e.At.UnixMicro(), standby: e.Schema != 0, isolation: e.Key.Kind}
			return nil
		}
		row, err := e.row()
		rows = append(rows, row)
		return err
	}, sqlSettledPage, after, int64(limit), int64(journal.MaxPageBytes))
	return rows, end, err
}

// pastBarrier looks whether the barrier is over, in a statement of its own before the page.
func (s *Session) pastBarrier(ctx context.Context, st *Settled) (known, error) {
	k, _ := st.now()
	if k.barrier == nil {
		return k, nil
	}
	text, arg := sqlBarrierHolds, any(k.barrier.holders)
	if k.barrier.xid != 0 {
		text, arg = sqlBarrierXidHolds, k.barrier.xid
	}
	var server, holds int64
	if _, err := sqlexec.One(ctx, s.x, []any{&server, &holds}, text, arg); err != nil {
		return known{}, err
	}
	if server != k.server || holds > 0 {
		return k, nil // of another server: the page finds out too
	}
	return st.resolved(k), nil
}

// raiseBarrier finds out what a hole waits for, and reports whether it waits for anybody.
func (s *Session) raiseBarrier(ctx context.Context, st *Settled, server int64) (open bool, err error) {
	how, err := s.mayReadLocks(ctx, st)
	if err != nil {
		return false, err
	}
	if k, _ := st.now(); k.server == server && k.barrier != nil {
		return true, nil
	}
	b := &barrier{}
	if how == locksClosed {
		err = s.barrierXid(ctx, b)
	} else {
		_, err = sqlexec.One(ctx, s.x, []any{&b.top, &b.holders}, sqlBarrier)
	}
	if err != nil {
		return false, err
	}
	st.raise(b, server)
	return b.xid != 0 || len(b.holders) > 0, nil
}

func (s *Session) barrierXid(ctx context.Context, b *barrier) error {
	if _, err := sqlexec.One(ctx, s.x, []any{&b.top}, sqlNewestSeq); err != nil {
		return err
	}
	for _, text := range []string{"savepoint stint_xid", sqlDrawXid, "rollback to savepoint stint_xid", "release savepoint stint_xid"} {
		if _, err := s.x.Exec(ctx, text); err != nil {
			return err
		}
	}
	_, err := sqlexec.One(ctx, s.x, []any{&b.xid}, sqlNextXid)
	return err
}

func (s *Session) mayReadLocks(ctx context.Context, st *Settled) (readLocks, error) {
	_, how := st.now()
	if how != locksUnknown {
		return how, nil
	}
	var may bool
	if _, err := sqlexec.One(ctx, s.x, []any{&may}, sqlMayReadLocks); err != nil {
		return how, err
	}
	how = locksClosed
	if may {
		how = locksReadable
	}
	st.learn(how)
	return how, nil
}

// ahead is the error of a reader that is behind the log's end: nil if the newest events were deleted.
func (s *Session) ahead(ctx context.Context, after int64) error {
	var drawn int64
	known, err := sqlexec.One(ctx, s.x, []any{&drawn}, sqlLastDrawn)
	if err != nil || !known || after <= drawn {
		return err
	}
	return &journal.AheadError{After: after, Drawn: drawn}
}

// CheckLog returns an error unless the schema can keep a journal: *SchemaError if it has none, *core.InvalidError if
// somebody changed what readers count on (J9).
func (s *Session) CheckLog(ctx context.Context, schema string) error {
	var have int
	if _, err := sqlexec.One(ctx, s.x, []any{&have}, `select max(version) from {}.schema_version`); err != nil {
		return err
	}
	if have < withLog {
		return &SchemaError{Schema: schema, Have: have, Want: Version}
	}
	var sound bool
	if _, err := sqlexec.One(ctx, s.x, []any{&sound}, sqlSequence); err != nil {
		return err
	}
	if !sound {
		return &core.InvalidError{Field: "Schema", Reason: "the sequence of events.seq must have CACHE 1, INCREMENT 1 and NO CYCLE: " +
			"readers count on the order in which seqs are drawn"}
	}
	return nil
}

// withLog is the first schema version with a journal.
const withLog = 5
