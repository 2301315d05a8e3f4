package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
	"github.com/stintmq/stint/internal/litesql"
	"github.com/stintmq/stint/internal/stdsql"
)

// lite is the engine for SQLite.
type lite struct {
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
	swept  keyplan.Key // the dedupe key up to which Prune has looked
	closed bool
	calls  sync.WaitGroup
	end    chan struct{}
}

// start prepares the statements and completes a store whose schema is there.
func (s *lite) start(ctx context.Context) (*lite, error) {
	s.end = make(chan struct{})
	s.turn.end = s.end
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

// Close ends waiting calls, waits for those that work, and closes what OpenSQLite opened. It may be repeated.
func (s *lite) Close() error {
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
		err = errors.Join(err, s.readers.Close(), s.listener.Close(), s.writer.Close())
	}
	return err
}

// enter counts a call in; whoever entered calls s.calls.Done.
func (s *lite) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return core.ErrClosed
	}
	s.calls.Add(1)
	return nil
}

func (s *lite) now() time.Time {
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
func (s *lite) patience(ctx context.Context, cause error) (context.Context, func() bool, context.CancelFunc) {
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
func (s *lite) write(ctx context.Context, op func(context.Context, *session) error) error {
	return s.transact(ctx, false, op)
}

// writeFirst is write for what keeps and ends leases.
func (s *lite) writeFirst(ctx context.Context, op func(context.Context, *session) error) error {
	return s.transact(ctx, true, op)
}

func (s *lite) transact(ctx context.Context, urgent bool, op func(context.Context, *session) error) error {
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
func (s *lite) read(ctx context.Context, op func(context.Context, *session) error) error {
	return s.readOn(ctx, s.readers, s.reading, op)
}

func (s *lite) readOn(ctx context.Context, db *sql.DB, kept *stdsql.Kept, op func(context.Context, *session) error) error {
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

// Migrate implements core.Migrator. OpenSQLite has done it already.
func (s *lite) Migrate(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.Done()
	return migrate(ctx, s.writer)
}
