package pgsql

import (
	"context"
	"sync"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/journal"
)

// Settled is up to where the log has no hole that is still to be filled (J9), as one process knows it.
//
// A seq is drawn by an insert and becomes visible by its commit, so a page may lack one that is on its way. A reader
// goes on as long as seqs follow each other. At a hole it raises a barrier: the newest seq that is visible, and who
// holds the lock that every insert into the table takes before it draws. Whoever owns a smaller seq that can't be seen
// drew it before the newest was drawn, so it is among the holders, or over. Postgres makes a commit visible before it
// gives locks back: once none of these holders holds the lock any more, a later statement sees everything below the
// barrier that will ever be there. A transaction that is prepared keeps the lock under another name, so any of those
// is waited for.
//
// What was learnt counts on one timeline of one server: after a failover, which a pooler may hide, seqs may be drawn
// again. Settled is safe for concurrent use.
type Settled struct {
	mu       sync.Mutex
	upTo     int64 // no hole up to here is open
	timeline string
	barrier  *barrier // nil: nobody waits
	how      readLocks
}

// readLocks says whether pg_locks may be read.
type readLocks int

const (
	locksUnknown readLocks = iota
	locksReadable
	locksClosed
)

// barrier is what a hole waits for. It does not change.
type barrier struct {
	top     int64
	holders []string // virtual transactions
	xid     int64    // instead of holders, where pg_locks is closed: older transactions than this
}

const (
	// onEvents are the locks of transactions that inserted into the log, or changed it, and are not over.
	onEvents = `l.locktype = 'relation' and l.relation = {events} and l.mode = 'RowExclusiveLock' and l.granted
		and l.database = (select oid from pg_database where datname = current_database())`

	sqlBarrier = `select coalesce((select max(seq) from {}.events), 0),
		array(select virtualtransaction from pg_locks l where ` + onEvents + ` and l.pid is distinct from pg_backend_pid())`
	sqlBarrierHolds = `select count(*) from pg_locks l where ` + onEvents + ` and (l.virtualtransaction = any($1::text[]) or l.pid is null)`

	// Where nobody may look at pg_locks: any transaction that writes is waited for.
	sqlBarrierXid      = `select coalesce((select max(seq) from {}.events), 0), pg_current_xact_id()::text::bigint`
	sqlBarrierXidHolds = `select (pg_snapshot_xmin(pg_current_snapshot())::text::bigint < $1::bigint)::integer::bigint`

	sqlMayReadLocks = `select has_table_privilege('pg_catalog.pg_locks', 'select') and has_function_privilege('pg_catalog.pg_lock_status()', 'execute')`

	sqlLogEnd = `select coalesce((select max(seq) from {}.events), 0), coalesce($1::timestamptz, clock_timestamp())`
	// Of transactions of other users only those may know the age who may read all statistics.
	sqlOldestAppender = `select coalesce(max(extract(epoch from clock_timestamp() - coalesce(a.xact_start, p.prepared))) * 1000000, 0)::bigint
		from pg_locks l
		left join pg_stat_activity a on a.pid = l.pid
		left join pg_prepared_xacts p on l.virtualtransaction = '-1/' || p.transaction::text
		where ` + onEvents + ` and l.pid is distinct from pg_backend_pid()`
)

// ReadSettled implements journal.Store, on a connection at READ COMMITTED. What the horizon was when the page was sent
// judges it: somebody else may raise it for what this page's snapshot can't see.
func (s *Session) ReadSettled(ctx context.Context, st *Settled, after int64, limit int) ([]journal.Row, error) {
	for {
		upTo, err := s.pastBarrier(ctx, st)
		if err != nil {
			return nil, err
		}
		rows, end, err := s.settledPage(ctx, after, limit)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		if end.isolation != "read committed" {
			return nil, &core.InvalidError{Field: "tx", Reason: "must be at READ COMMITTED to read the log"}
		}
		upTo = st.fit(upTo, end)
		n := settledPart(rows, after, upTo)
		if n == len(rows) {
			return rows, nil
		}
		open, err := s.raiseBarrier(ctx, st, end.timeline)
		if err != nil {
			return nil, err
		}
		if n > 0 || open {
			return rows[:n], nil
		}
	}
}

// settledPart is how many rows have no open hole before them.
func settledPart(rows []journal.Row, after, upTo int64) int {
	for i := range rows {
		if seq := rows[i].Seq; seq > upTo && seq != max(after, upTo)+1 {
			return i
		}
		after = rows[i].Seq
	}
	return len(rows)
}

// logEnd is what a page says of the server.
type logEnd struct {
	top                 int64
	timeline, isolation string
}

func (s *Session) settledPage(ctx context.Context, after int64, limit int) (rows []journal.Row, end logEnd, err error) {
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var e event
		if err := r.Scan(append(e.columns(), &end.top, &end.timeline, &end.isolation)...); err != nil {
			return err
		}
		row, err := e.row()
		rows = append(rows, row)
		return err
	}, sqlSettledPage, after, int64(limit))
	return rows, end, err
}

// pastBarrier looks whether the barrier is over, in a statement of its own before the page, and returns the horizon.
func (s *Session) pastBarrier(ctx context.Context, st *Settled) (int64, error) {
	st.mu.Lock()
	upTo, b := st.upTo, st.barrier
	st.mu.Unlock()
	if b == nil {
		return upTo, nil
	}
	var holds int64
	text, arg := sqlBarrierHolds, any(b.holders)
	if b.xid != 0 {
		text, arg = sqlBarrierXidHolds, b.xid
	}
	if _, err := sqlexec.One(ctx, s.x, []any{&holds}, text, arg); err != nil || holds > 0 {
		return upTo, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.barrier == b { // else it was dropped, or is resolved
		st.barrier = nil
		st.upTo = max(st.upTo, b.top)
	}
	return st.upTo, nil
}

// fit drops what was learnt on another timeline, or of a log that was longer.
func (st *Settled) fit(upTo int64, end logEnd) int64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.timeline == end.timeline && upTo <= end.top {
		return upTo
	}
	if st.timeline != "" {
		st.upTo, st.barrier = 0, nil
	}
	st.timeline = end.timeline
	return st.upTo
}

// raiseBarrier finds out what a hole waits for, and reports whether it waits for anybody.
func (s *Session) raiseBarrier(ctx context.Context, st *Settled, timeline string) (open bool, err error) {
	how, err := s.mayReadLocks(ctx, st)
	if err != nil {
		return false, err
	}
	st.mu.Lock()
	pending := st.barrier != nil
	st.mu.Unlock()
	if pending {
		return true, nil
	}
	b := &barrier{}
	if how == locksClosed {
		_, err = sqlexec.One(ctx, s.x, []any{&b.top, &b.xid}, sqlBarrierXid)
	} else {
		_, err = sqlexec.One(ctx, s.x, []any{&b.top, &b.holders}, sqlBarrier)
	}
	if err != nil {
		return false, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.barrier == nil && st.timeline == timeline {
		st.barrier = b
	}
	return b.xid != 0 || len(b.holders) > 0, nil
}

func (s *Session) mayReadLocks(ctx context.Context, st *Settled) (readLocks, error) {
	st.mu.Lock()
	how := st.how
	st.mu.Unlock()
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
	st.mu.Lock()
	defer st.mu.Unlock()
	st.how = how
	return how, nil
}
