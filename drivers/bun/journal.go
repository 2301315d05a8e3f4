package bunstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/internal/litesql"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgstore/pgstd"
	"github.com/stintmq/stint/journal"
)

// Journal keeps a journal beside this store's jobs, for journal.New. On SQLite one transaction at a time writes to the
// database, so a transaction of the journal's, and what a projection does in it, holds up everybody's.
func (s *Store) Journal() journal.Store[bun.Tx] {
	switch e := s.engine.(type) {
	case postgres:
		return pgstd.Log(e.Store, s, func(tx bun.Tx) *sql.Tx { return tx.Tx }, func(ctx context.Context, patience time.Duration, do func(context.Context, bun.Tx) error) error {
			return pgstd.InTx(ctx, patience, func(ctx context.Context) (bun.Tx, error) {
				return s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			}, do, func(tx bun.Tx) error {
				// pgdriver says nothing of a commit that the database makes a rollback of.
				_, err := tx.Tx.ExecContext(ctx, "select 1")
				if pgsql.InAborted(err) {
					return pgsql.Aborted(err)
				}
				if err != nil {
					return err
				}
				return tx.Commit()
			})
		})
	case *lite:
		return liteLog{e, s}
	}
	return nil
}

// inBunTx runs do in a transaction on SQLite.
func inBunTx(ctx context.Context, db *bun.DB, do func(context.Context, bun.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := do(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// liteLog is the journal on SQLite.
type liteLog struct {
	*lite
	store *Store
}

// Jobs implements journal.Store.
func (l liteLog) Jobs() journal.Jobs[bun.Tx] { return l.store }

// InTx implements journal.Store: it waits for its turn as the store's own calls do.
func (l liteLog) InTx(ctx context.Context, do func(context.Context, bun.Tx) error) error {
	if err := l.enter(); err != nil {
		return err
	}
	defer l.calls.Done()
	waiting, begun, cancel := l.patience(ctx, errBusy)
	defer cancel()
	if err := l.turn.take(waiting, false); err != nil {
		return unavailable(waiting, err)
	}
	defer l.turn.give()
	var did error
	committing := false
	err := inBunTx(waiting, l.store.db, func(ctx context.Context, tx bun.Tx) error {
		if err := litesql.Lock(ctx, l.kept.In(tx.Tx)); err != nil {
			return err
		}
		if !begun() {
			return unavailable(waiting, errBusy)
		}
		did = do(ctx, tx)
		committing = did == nil
		return did
	})
	switch {
	case err == nil, did != nil:
		return err
	case ctx.Err() != nil && !committing:
		return unavailable(ctx, err)
	case committing:
		return litesql.CommitFault(err)
	}
	return litesql.Fault(err)
}

// inTx runs an operation in a transaction of the caller's.
func inLiteTx[T any](ctx context.Context, l liteLog, tx bun.Tx, op func(context.Context, *session) (T, error)) (T, error) {
	return result(ctx, txView{l.lite, tx.Tx}.run, op)
}

// Append implements journal.Store.
func (l liteLog) Append(ctx context.Context, tx bun.Tx, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
	return inLiteTx(ctx, l, tx, func(ctx context.Context, sn *session) (journal.Recorded, error) {
		return sn.Append(ctx, key, want, rows)
	})
}

// ReadEntity implements journal.Store.
func (l liteLog) ReadEntity(ctx context.Context, tx bun.Tx, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
	return inLiteTx(ctx, l, tx, func(ctx context.Context, sn *session) ([]journal.Row, error) {
		return sn.ReadEntity(ctx, key, after, limit)
	})
}

// ReadSettled implements journal.Store.
func (l liteLog) ReadSettled(ctx context.Context, tx bun.Tx, after int64, limit int) ([]journal.Row, error) {
	return inLiteTx(ctx, l, tx, func(ctx context.Context, sn *session) ([]journal.Row, error) {
		return sn.ReadSettled(ctx, after, limit)
	})
}

// ReadLog implements journal.Store.
func (l liteLog) ReadLog(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
	return result(ctx, l.read, func(ctx context.Context, sn *session) ([]journal.Row, error) { return sn.ReadLog(ctx, f) })
}

// LockCursor implements journal.Store: the transaction has the database to itself, so no cursor is ever busy.
func (l liteLog) LockCursor(ctx context.Context, tx bun.Tx, name string, _ bool) (journal.Cursor, bool, error) {
	c, err := inLiteTx(ctx, l, tx, func(ctx context.Context, sn *session) (journal.Cursor, error) { return sn.LockCursor(ctx, name) })
	return c, err == nil, err
}

// SaveCursor implements journal.Store.
func (l liteLog) SaveCursor(ctx context.Context, tx bun.Tx, c journal.Cursor) error {
	return txView{l.lite, tx.Tx}.run(ctx, func(ctx context.Context, sn *session) error { return sn.SaveCursor(ctx, c) })
}

// Cursors implements journal.Store.
func (l liteLog) Cursors(ctx context.Context) ([]journal.Cursor, error) {
	return result(ctx, l.read, func(ctx context.Context, sn *session) ([]journal.Cursor, error) { return sn.Cursors(ctx) })
}

// Head implements journal.Store.
func (l liteLog) Head(ctx context.Context) (journal.Head, error) {
	return result(ctx, l.read, func(ctx context.Context, sn *session) (journal.Head, error) { return sn.Head(ctx) })
}

// PutNote implements journal.Store.
func (l liteLog) PutNote(ctx context.Context, tx bun.Tx, n journal.Note) error {
	return txView{l.lite, tx.Tx}.run(ctx, func(ctx context.Context, sn *session) error { return sn.PutNote(ctx, n) })
}

// DeleteNote implements journal.Store.
func (l liteLog) DeleteNote(ctx context.Context, tx bun.Tx, space, key string) (bool, error) {
	return inLiteTx(ctx, l, tx, func(ctx context.Context, sn *session) (bool, error) { return sn.DeleteNote(ctx, space, key) })
}

// Notes implements journal.Store.
func (l liteLog) Notes(ctx context.Context, tx bun.Tx, space, prefix, after string, limit int) ([]journal.Note, error) {
	return inLiteTx(ctx, l, tx, func(ctx context.Context, sn *session) ([]journal.Note, error) {
		return sn.Notes(ctx, space, prefix, after, limit)
	})
}

// Announce implements journal.Store.
func (l liteLog) Announce(ctx context.Context) error {
	return l.write(ctx, func(ctx context.Context, sn *session) error { return sn.Announce(ctx) })
}

// AnnounceIn implements journal.Store.
func (l liteLog) AnnounceIn(ctx context.Context, tx bun.Tx) error {
	return txView{l.lite, tx.Tx}.run(ctx, func(ctx context.Context, sn *session) error { return sn.Announce(ctx) })
}
