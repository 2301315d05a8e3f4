package pgsql

import (
	"sync"

	"github.com/stintmq/stint/journal"
)

// Settled is up to where the log has no hole that is still to be filled (J9), as one process knows it.
//
// A seq is drawn by an insert and becomes visible by its commit, so a page may lack one that is on its way. A reader
// goes on as long as seqs follow each other. At a hole it raises a barrier: the newest seq that is visible, and then who
// holds the lock that every insert into the table takes before it draws. Whoever owns a smaller seq that can't be seen
// drew it before the newest was drawn, so it is among the holders, or over. Postgres makes a commit visible before it
// gives locks back: once none of these holders holds the lock any more, a later statement sees everything below the
// barrier that will ever be there. A savepoint that is rolled back gives the lock back, and its seqs are dead. A
// transaction that is prepared keeps the lock, after a restart under another name: so any of those is waited for. The
// reader's own transaction is a holder too, if it appended: nobody else sees the seqs that it sees.
//
// Only a lock of that mode counts, so readers wait for transactions that appended and for those that change or delete
// events. One whose append was refused, or whose library had the statement explained, counts until it ends as well.
//
// What was learnt counts on one run of one server: after a crash, or a failover, which a pooler may hide, seqs that were
// seen may be drawn again. Settled is safe for concurrent use.
type Settled struct {
	mu    sync.Mutex
	known known
	how   readLocks
}

// known is a piece of knowledge.
type known struct {
	server  int64    // when it started, which no other did at the same microsecond; 0: nothing is known
	upTo    int64    // no hole up to here is open
	barrier *barrier // nil: nobody waits
}

// barrier is what a hole waits for. It does not change.
type barrier struct {
	top     int64
	holders []string // virtual transactions
	xid     int64    // instead of holders, where pg_locks is closed: older transactions than this
}

// readLocks says whether pg_locks may be read.
type readLocks int

const (
	locksUnknown readLocks = iota
	locksReadable
	locksClosed
)

// logEnd is what a page says of the server.
type logEnd struct {
	top       int64 // the newest visible seq
	server    int64
	standby   bool
	isolation string
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

func (st *Settled) now() (known, readLocks) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.known, st.how
}

// Forget drops all that was learnt: the connection to the server was lost, say. To learn it again takes a statement.
func (st *Settled) Forget() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.known, st.how = known{}, locksUnknown
}

// resolved is k when none of its barrier's holders is left.
func (st *Settled) resolved(k known) known {
	st.mu.Lock()
	defer st.mu.Unlock()
	b := k.barrier
	if st.known.barrier == b { // else it was dropped, or somebody else was quicker
		st.known.barrier = nil
		st.known.upTo = max(st.known.upTo, b.top)
	}
	k.barrier, k.upTo = nil, max(k.upTo, b.top)
	return k
}

// fit is the horizon that k is for a page. What was learnt on another server, or of a log that was longer, is dropped.
func (st *Settled) fit(k known, end logEnd) int64 {
	if k.server == end.server && k.upTo <= end.top {
		return k.upTo
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.known.server != end.server || st.known.upTo > end.top {
		st.known = known{server: end.server}
	}
	return 0
}

// raise has everybody wait for b, unless they wait for another one.
func (st *Settled) raise(b *barrier, server int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.known.server == server && st.known.barrier == nil {
		st.known.barrier = b
	}
}

func (st *Settled) learn(how readLocks) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.how = how
}
