package journal

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
)

// Store is what a driver implements beside core.Store to keep a journal, in the same database. Tx is what its users
// have as a transaction. Rules for every method are those of core.Store; methods that take a tx do what they do by its
// commit. A transaction may have done other things before, and do others afterwards.
type Store[Tx any] interface {
	// Jobs is the store's queue: effect jobs are enqueued there in the transaction that records their event.
	Jobs() Jobs[Tx]

	// InTx runs do in a new transaction: at READ COMMITTED, or one at a time. It commits if do returns nil, and rolls
	// back otherwise. What only a new transaction can resolve, deadlocks and the like, is returned as an error that
	// wraps core.ErrRetryTx; nothing is retried. Do's error is returned as it is, or wrapped.
	// Where a server may fall silent, begin, commit and the store's statements in it are bounded as its other calls are; the
	// context that do gets has no deadline but the caller's.
	InTx(ctx context.Context, do func(ctx context.Context, tx Tx) error) error

	// Append writes the next events of an entity: versions go on from the entity's own, seqs are drawn in order, At is
	// the store's now (J1). Rows come with Type, Schema, Correlation, Causation, Meta and Payload set; they
	// are of one correlation and one causation. If the version is
	// not as expected it is a *ConflictError, nothing was written, and the transaction is as before. Two transactions
	// that append to one entity do so one after the other: the second waits for the end of the first.
	Append(ctx context.Context, tx Tx, key EntityKey, want Expect, rows []Row) (Recorded, error)

	// ReadEntity returns up to limit events of an entity beyond a version, in order. A page ends with the event with which
	// its payloads reach MaxPageBytes: shorter than limit, and not with the last event.
	ReadEntity(ctx context.Context, tx Tx, key EntityKey, after int64, limit int) ([]Row, error)

	// ReadSettled returns up to limit events beyond a seq, in order of seq, and never one that may come to have an
	// unseen event of a smaller seq before it (J9): whoever reads from the last one on misses none. Beyond a seq that was
	// never drawn it is an *AheadError. Where transactions overlap tx must be at READ COMMITTED: a *core.InvalidError
	// else. A page may be shorter than limit before the end, and is where its payloads reach MaxPageBytes.
	ReadSettled(ctx context.Context, tx Tx, after int64, limit int) ([]Row, error)

	// ReadLog returns committed events by seq, for people: it does not wait for those that are on their way. The filter's
	// Limit is set.
	ReadLog(ctx context.Context, f Filter) ([]Row, error)

	// LockCursor locks a cursor until the transaction ends, and returns it; one that is not there yet begins with Seq 0,
	// and is listed once it was saved, if not before. Where somebody else has it locked, or makes it:
	// with wait it waits, else it returns false.
	LockCursor(ctx context.Context, tx Tx, name string, wait bool) (Cursor, bool, error)
	// SaveCursor stores a cursor that is locked. RetryAt is in whole microseconds.
	SaveCursor(ctx context.Context, tx Tx, c Cursor) error
	// Cursors returns all cursors by name, cheaply: WaitFor asks again and again.
	Cursors(ctx context.Context) ([]Cursor, error)
	// Head returns the log's end.
	Head(ctx context.Context) (Head, error)

	// PutNote stores a note in place of the one with its Space and Key.
	PutNote(ctx context.Context, tx Tx, n Note) error
	// DeleteNote reports whether there was one.
	DeleteNote(ctx context.Context, tx Tx, space, key string) (bool, error)
	// Notes returns up to limit notes of a space whose keys begin with prefix and are greater than after, by key, byte
	// by byte.
	Notes(ctx context.Context, tx Tx, space, prefix, after string, limit int) ([]Note, error)

	// Announce wakes whoever waits for WakeQueue by core.Store.AwaitWake, here and in other processes where the store
	// can: events were committed. It is a hint, and may be coalesced.
	Announce(ctx context.Context) error
	// AnnounceIn does so by the transaction's commit. Where that is costly, say so: nobody calls it unless asked to.
	AnnounceIn(ctx context.Context, tx Tx) error
}

// MaxPageBytes bounds the payloads of a page that ReadEntity and ReadSettled return, but for the last event's.
const MaxPageBytes = core.MaxClaimBytes

// Jobs is a queue that takes jobs in transactions of type Tx.
type Jobs[Tx any] interface {
	core.Store
	core.TxStore[Tx]
}

// WakeQueue is the queue's name under which the wake channel tells of events. No job is ever on it.
const WakeQueue = "@journal"

// Filter says which events ReadLog returns. All that is set must hold.
type Filter struct {
	Kind, EntityID, Type string
	Correlation          string
	After                int64     // beyond this seq
	Before               int64     // below this seq; 0: no bound
	Newest               bool      // the newest first
	Since                time.Time // recorded at or after; zero: no bound
	Limit                int       // at most 1,000; Journal.History makes 100 of 0
}

// Cursor is where a projection stands.
type Cursor struct {
	Name   string // name@version
	Seq    int64  // the last event it has passed
	Inline bool   // it is applied by Record

	Failures  int   // in a row, of the event at FailedSeq
	FailedSeq int64 // 0: nothing is wrong
	LastError string
	Parked    int64     // events that wait behind one that failed
	RetryAt   time.Time // not before, by the store's clock

	Now time.Time // when LockCursor returned it, by the store's clock; not stored
}

// Head is the end of a log.
type Head struct {
	Seq int64     // the newest committed event; 0: none
	Now time.Time // the store's
	// OldestAppender is how long the oldest open transaction that appended is under way: readers wait for it. 0: none, or
	// the store can't have several.
	OldestAppender time.Duration
}

// Note is a small thing that the journal keeps beside its events: snapshots, parked events.
type Note struct {
	Space string
	Key   string
	Value []byte
}
