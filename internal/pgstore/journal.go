package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgwake"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/journal"
)

// Log is a driver's journal.Store: transactions are of its own type, everything else is here.
type Log[Tx any] struct {
	s     *Store
	jobs  journal.Jobs[Tx]
	in    func(Tx) sqlexec.Executor
	id    func(Tx) any
	begin Begin[Tx]
}

// Begin runs do in a transaction at READ COMMITTED on the application's connections, and commits it unless do returns an
// error. It gives up on the begin, and on the commit, after patience each, 0: when ctx ends; do has as long as it takes.
type Begin[Tx any] func(ctx context.Context, patience time.Duration, do func(context.Context, Tx) error) error

// NewLog returns the journal of a store. in returns what runs statements in a transaction; nil: it is none. id is one
// comparable value for a transaction and all savepoints in it, which no other transaction has at the same time.
func NewLog[Tx any](s *Store, jobs journal.Jobs[Tx], in func(Tx) sqlexec.Executor, id func(Tx) any, begin Begin[Tx]) *Log[Tx] {
	return &Log[Tx]{s, jobs, in, id, begin}
}

// Jobs implements journal.Store.
func (l *Log[Tx]) Jobs() journal.Jobs[Tx] { return l.jobs }

// InTx implements journal.Store. A server that says nothing does not hold it for ever: begin, commit, and each statement
// of the store's, end as a call of the queue does.
func (l *Log[Tx]) InTx(ctx context.Context, do func(context.Context, Tx) error) error {
	if err := l.s.enter(ctx); err != nil {
		return err
	}
	defer l.s.calls.Done()
	var did error
	committing := false
	own, patience := &ownTx{}, l.s.patience
	if _, own.bounded = ctx.Deadline(); own.bounded {
		patience = 0
	}
	err := l.begin(context.WithValue(ctx, ownKey{l.s}, own), patience, func(ctx context.Context, tx Tx) error {
		own.id = l.id(tx)
		defer own.end() // also if do panics
		did = do(ctx, tx)
		committing = did == nil
		return did
	})
	if err == nil || errors.Is(pgsql.Fault(ctx, err, committing), core.ErrUnknown) {
		l.s.spread(own.take())
	}
	switch {
	case err == nil:
		return nil
	case did != nil && (!pgsql.Again(did) || errors.Is(did, core.ErrRetryTx)):
		if pgsql.Spent(did) { // the server ended the connection
			err = pgsql.Lost(err)
		}
		if errors.Is(err, core.ErrUnavailable) {
			l.s.settled.Forget()
		}
		return err
	case pgsql.Again(err):
		return fmt.Errorf("%w: %w", core.ErrRetryTx, err)
	}
	l.s.settled.Forget() // a server that went down may come back without what was seen
	return pgsql.Fault(ctx, err, committing)
}

// checkLog looks, before the first use, whether the schema can keep a journal. A store that is a queue alone needs no such
// schema.
func (s *Store) checkLog(ctx context.Context, sn *session) error {
	if s.keepsLog.Load() {
		return nil
	}
	err := sn.CheckLog(ctx, s.opts.Schema)
	if err == nil {
		s.keepsLog.Store(true)
	}
	return err
}

// look runs what only reads the log, on a connection of its own.
func look[T, Tx any](ctx context.Context, l *Log[Tx], do func(context.Context, *session) (T, error)) (T, error) {
	return read(ctx, l.s, func(ctx context.Context, sn *session) (T, error) {
		if err := l.s.checkLog(ctx, sn); err != nil {
			var zero T
			return zero, err
		}
		return do(ctx, sn)
	})
}

// inTx runs an operation in a transaction of the caller's.
func inTx[T, Tx any](ctx context.Context, l *Log[Tx], tx Tx, do func(context.Context, *session) (T, error)) (T, error) {
	var zero T
	x := l.in(tx)
	if x == nil {
		return zero, errNoTx
	}
	if err := l.s.enter(ctx); err != nil {
		return zero, err
	}
	defer l.s.calls.Done()
	own := l.s.own(ctx, func() any { return l.id(tx) })
	out, err := bounded(ctx, l.s, own, func(ctx context.Context) (T, error) {
		sn := l.s.session(x).InTx()
		if err := l.s.checkLog(ctx, sn); err != nil {
			return zero, err
		}
		return do(ctx, sn)
	})
	return out, pgsql.TxFault(ctx, err)
}

// Append implements journal.Store.
func (l *Log[Tx]) Append(ctx context.Context, tx Tx, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
	return inTx(ctx, l, tx, func(ctx context.Context, sn *session) (journal.Recorded, error) {
		return sn.Append(ctx, key, want, rows)
	})
}

// ReadEntity implements journal.Store.
func (l *Log[Tx]) ReadEntity(ctx context.Context, tx Tx, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
	return inTx(ctx, l, tx, func(ctx context.Context, sn *session) ([]journal.Row, error) {
		return sn.ReadEntity(ctx, key, after, limit)
	})
}

// ReadSettled implements journal.Store.
func (l *Log[Tx]) ReadSettled(ctx context.Context, tx Tx, after int64, limit int) ([]journal.Row, error) {
	return inTx(ctx, l, tx, func(ctx context.Context, sn *session) ([]journal.Row, error) {
		return sn.ReadSettled(ctx, &l.s.settled, after, limit)
	})
}

// ReadLog implements journal.Store.
func (l *Log[Tx]) ReadLog(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
	return look(ctx, l, func(ctx context.Context, sn *session) ([]journal.Row, error) { return sn.ReadLog(ctx, f) })
}

// locked is a cursor, if it could be locked.
type locked struct {
	cursor journal.Cursor
	ok     bool
}

// LockCursor implements journal.Store.
func (l *Log[Tx]) LockCursor(ctx context.Context, tx Tx, name string, wait bool) (journal.Cursor, bool, error) {
	got, err := inTx(ctx, l, tx, func(ctx context.Context, sn *session) (got locked, err error) {
		got.cursor, got.ok, err = sn.LockCursor(ctx, name, wait)
		return got, err
	})
	return got.cursor, got.ok, err
}

// nothing is the answer of what has none.
type nothing = struct{}

// SaveCursor implements journal.Store.
func (l *Log[Tx]) SaveCursor(ctx context.Context, tx Tx, c journal.Cursor) error {
	_, err := inTx(ctx, l, tx, func(ctx context.Context, sn *session) (nothing, error) { return nothing{}, sn.SaveCursor(ctx, c) })
	return err
}

// Cursors implements journal.Store.
func (l *Log[Tx]) Cursors(ctx context.Context) ([]journal.Cursor, error) {
	return look(ctx, l, func(ctx context.Context, sn *session) ([]journal.Cursor, error) { return sn.Cursors(ctx) })
}

// Head implements journal.Store.
func (l *Log[Tx]) Head(ctx context.Context) (journal.Head, error) {
	return look(ctx, l, func(ctx context.Context, sn *session) (journal.Head, error) { return sn.Head(ctx, &l.s.settled) })
}

// PutNote implements journal.Store.
func (l *Log[Tx]) PutNote(ctx context.Context, tx Tx, n journal.Note) error {
	_, err := inTx(ctx, l, tx, func(ctx context.Context, sn *session) (nothing, error) { return nothing{}, sn.PutNote(ctx, n) })
	return err
}

// DeleteNote implements journal.Store.
func (l *Log[Tx]) DeleteNote(ctx context.Context, tx Tx, space, key string) (bool, error) {
	return inTx(ctx, l, tx, func(ctx context.Context, sn *session) (bool, error) { return sn.DeleteNote(ctx, space, key) })
}

// Notes implements journal.Store.
func (l *Log[Tx]) Notes(ctx context.Context, tx Tx, space, prefix, after string, limit int) ([]journal.Note, error) {
	return inTx(ctx, l, tx, func(ctx context.Context, sn *session) ([]journal.Note, error) {
		return sn.Notes(ctx, space, prefix, after, limit)
	})
}

// Announce implements journal.Store: others are told within 5 ms, or when these since the last time are over.
func (l *Log[Tx]) Announce(ctx context.Context) error {
	if err := l.s.enter(ctx); err != nil {
		return err
	}
	defer l.s.calls.Done()
	news := pgsql.News{Queue: journal.WakeQueue}
	l.s.hub.Ring(news)
	l.s.teller.Tell(news)
	return nil
}

// AnnounceIn implements journal.Store. This process listens too, since nobody here knows when the caller commits.
func (l *Log[Tx]) AnnounceIn(ctx context.Context, tx Tx) error {
	_, err := inTx(ctx, l, tx, func(ctx context.Context, sn *session) (nothing, error) {
		return nothing{}, sn.Notify(ctx, l.s.channel, pgwake.Payload(pgwake.Nobody, pgsql.News{Queue: journal.WakeQueue}))
	})
	return err
}
