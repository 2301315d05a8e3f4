// Package bunstore keeps jobs in SQLite: in a file of its own (OpenSQLite) or beside an application's tables in
// its *bun.DB (New), so that a job and the rows it is about are written by one transaction (WithTx).
//
// It has everything that core knows of but dedupe, retention and schedules, and passes the conformance suite with
// these declared lacking. Other processes on the same file are woken within about 20 ms.
//
// SQLite has one writer at a time, whoever it is. A transaction of the application holds everybody's writes
// while it is open: keep it short, and never wait for a job, or call the store without WithTx, inside one.
//
// The file is SQLite's while a store is open, the -wal and -shm beside it too. Deleting, replacing, truncating or
// copying them over loses jobs, and nobody notices: an open store goes on with files that no longer have a name, and
// of a log that was cut SQLite takes what is left for all there was. Nor may the process itself open and close the
// file other than through SQLite, not even to read it: the system then drops its locks. For a copy use SQLite's own
// means ("vacuum into", its backup interface) or close every store first.
//
// Statements go to the *sql.DB and *sql.Tx inside bun's types, with placeholders that SQLite sees: bun formats
// arguments into the text. So bun's query hooks don't see them.
package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/litesql"
	"github.com/stintmq/stint/internal/stdsql"
)

// Options of a Store. The zero value is the default.
type Options struct {
	// Clock tells the time in tests; nil: the machine's.
	Clock core.Clock
	// Limits move the bounds of payloads and results.
	Limits core.Limits
	// Synchronous is SQLite's setting of that name, for OpenSQLite only (New takes what the *bun.DB has).
	// "": "FULL": what a call answered, or a transaction committed, survives the loss of power. "NORMAL" writes
	// less often: the file never breaks and nothing is lost when the process dies, but when the machine does, the
	// last transactions may be undone. It is about twice as fast for single calls and a sixth for batches.
	Synchronous string
}

func (o Options) validate() error {
	switch o.Synchronous {
	case "", "NORMAL", "FULL":
	default:
		return &core.InvalidError{Field: "Options.Synchronous", Reason: `must be "NORMAL" or "FULL"`}
	}
	return o.Limits.Validate()
}

// Store keeps jobs in one SQLite database. It is safe for concurrent use, also by several processes with
// handles of their own. After Close every method returns an error that wraps core.ErrUnavailable.
type Store struct {
	bun      *bun.DB
	writer   *sql.DB
	readers  *sql.DB
	listener *sql.DB // the wake channel's: slow reads must not hold it up
	owned    bool    // the handles are the store's to close

	kept, reading, listening *stdsql.Kept

	opts Options
	busy time.Duration // how long a call waits for its turn to write
	lock bool          // transactions begin without SQLite's write lock
	turn turns
	hub  *hub

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
	end    chan struct{}
}

var (
	_ core.Store           = (*Store)(nil)
	_ core.Inspector       = (*Store)(nil)
	_ core.Admin           = (*Store)(nil)
	_ core.Migrator        = (*Store)(nil)
	_ core.TxStore[bun.Tx] = (*Store)(nil)
)

// start prepares the statements and completes a store whose schema is there.
func (s *Store) start(ctx context.Context) (*Store, error) {
	s.end = make(chan struct{})
	s.hub = newHub(s.news, s.end)
	var err error
	if s.kept, err = stdsql.Keep(ctx, s.writer, litesql.Statements()); err != nil {
		return nil, err
	}
	if s.reading, err = stdsql.Keep(ctx, s.readers, litesql.Reading()); err != nil {
		return nil, errors.Join(err, s.kept.Close())
	}
	if s.listening, err = stdsql.Keep(ctx, s.listener, litesql.Listening()); err != nil {
		return nil, errors.Join(err, s.kept.Close(), s.reading.Close())
	}
	return s, nil
}

// DB is the writer as bun knows it: for tables of the application's own, and for the transactions that WithTx
// takes. A store of OpenSQLite has one writing connection, so a transaction on DB waits for the store's calls and
// they for it.
func (s *Store) DB() *bun.DB { return s.bun }

// Close ends waiting calls, waits for those that work, and closes what OpenSQLite opened. It may be repeated.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.end)
	s.mu.Unlock()
	s.calls.Wait()
	err := errors.Join(s.kept.Close(), s.reading.Close(), s.listening.Close())
	if s.owned {
		err = errors.Join(err, s.readers.Close(), s.listener.Close(), s.bun.Close())
	}
	return err
}

var errClosed = fmt.Errorf("%w: the store is closed", core.ErrUnavailable)

// enter counts a call in; whoever entered calls s.calls.Done.
func (s *Store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.calls.Add(1)
	return nil
}

func (s *Store) now() time.Time {
	if s.opts.Clock == nil {
		return time.Now()
	}
	return s.opts.Clock.Now()
}

// session is what an operation works in.
type session = litesql.Session

// What ends a call's patience.
var (
	errBusy = errors.New("somebody else held the database's write lock, or its connection, for too long " +
		"(inside a transaction of your own, use WithTx)")
	errReaders = errors.New("all reading connections were busy for too long")
)

// patience is a context that ends with cause unless work begins in time.
func (s *Store) patience(ctx context.Context, cause error) (context.Context, func() bool, context.CancelFunc) {
	waiting, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(s.busy, func() { cancel(cause) })
	return waiting, limit.Stop, func() { limit.Stop(); cancel(nil) }
}

// unavailable says that nothing was done, and why. Where patience ended, the drivers say "context canceled": that
// is not passed on as an error of the caller's, who would take it for his own.
func unavailable(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errBusy), errors.Is(cause, errReaders):
		err = fmt.Errorf("%w: %v", cause, err) //nolint:errorlint // see above
	case cause != nil && !errors.Is(err, cause):
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	if errors.Is(err, core.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
}

// write runs an operation in one transaction that holds the write lock from its beginning.
func (s *Store) write(ctx context.Context, op func(context.Context, *session) error) error {
	return s.transact(ctx, false, op)
}

// writeFirst is write for what keeps and ends leases.
func (s *Store) writeFirst(ctx context.Context, op func(context.Context, *session) error) error {
	return s.transact(ctx, true, op)
}

func (s *Store) transact(ctx context.Context, urgent bool, op func(context.Context, *session) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.Done()
	waiting, begun, cancel := s.patience(ctx, errBusy)
	defer cancel()
	if err := s.turn.take(waiting, urgent); err != nil {
		return unavailable(waiting, err)
	}
	defer s.turn.give()
	tx, err := s.writer.BeginTx(waiting, nil)
	if err != nil {
		return unavailable(waiting, err)
	}
	// A rollback after a commit does nothing; of one that fails, SQLite or the pool has already rolled back.
	defer func() { _ = tx.Rollback() }()
	x := s.kept.In(tx)
	if s.lock {
		if err := litesql.Lock(waiting, x); err != nil {
			return unavailable(waiting, err)
		}
	}
	if !begun() {
		return unavailable(waiting, errBusy)
	}
	sn := litesql.NewSession(x, s.now(), s.opts.Limits)
	// Now nothing waits any more. Watching ctx costs the driver a goroutine per statement, so it is looked at
	// again before the commit; a context that ends rolls the transaction back in between.
	if err := op(context.WithoutCancel(ctx), sn); err != nil {
		if ctx.Err() != nil {
			return unavailable(ctx, err)
		}
		return litesql.Fault(err)
	}
	if err := ctx.Err(); err != nil {
		return unavailable(ctx, err)
	}
	if err := tx.Commit(); err != nil {
		return litesql.CommitFault(err)
	}
	s.hub.announce(sn.Woken())
	return nil
}

// read runs an operation in one snapshot.
func (s *Store) read(ctx context.Context, op func(context.Context, *session) error) error {
	return s.readOn(ctx, s.readers, s.reading, op)
}

func (s *Store) readOn(ctx context.Context, db *sql.DB, kept *stdsql.Kept, op func(context.Context, *session) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.Done()
	waiting, begun, cancel := s.patience(ctx, errReaders)
	defer cancel()
	tx, err := db.BeginTx(waiting, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return unavailable(waiting, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	if !begun() {
		return unavailable(waiting, errReaders)
	}
	if err := op(ctx, litesql.NewSession(kept.In(tx), s.now(), s.opts.Limits)); err != nil {
		if ctx.Err() != nil {
			return unavailable(ctx, err)
		}
		return litesql.Fault(err)
	}
	return nil
}

// Migrations are the numbered .sql files that Migrate runs.
func Migrations() fs.FS { return litesql.Migrations() }

// Migrate implements core.Migrator. OpenSQLite has done it already.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.Done()
	return migrate(ctx, s.writer)
}
