package pgstoretest

import (
	"context"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// JournalOf is a driver's journal in transactions of the kit's: wrap makes one of the driver's own, which it has as Own.
func JournalOf[T any](s journal.Store[T], wrap func(T) *Tx) journal.Store[*Tx] {
	return adapter[T]{s, wrap}
}

type adapter[T any] struct {
	s    journal.Store[T]
	wrap func(T) *Tx
}

func own[T any](tx *Tx) (own T) {
	if tx != nil {
		own = tx.Own.(T)
	}
	return own
}

type jobsOf[T any] struct {
	core.Store
	jobs journal.Jobs[T]
}

// Unwrap lets core.As see what else the store can do.
func (j jobsOf[T]) Unwrap() core.Store { return j.Store }

func (j jobsOf[T]) WithTx(tx *Tx) core.TxView { return j.jobs.WithTx(own[T](tx)) }

func (a adapter[T]) Jobs() journal.Jobs[*Tx] { return jobsOf[T]{a.s.Jobs(), a.s.Jobs()} }

func (a adapter[T]) InTx(ctx context.Context, do func(context.Context, *Tx) error) error {
	return a.s.InTx(ctx, func(ctx context.Context, tx T) error { return do(ctx, a.wrap(tx)) })
}

func (a adapter[T]) Append(ctx context.Context, tx *Tx, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
	return a.s.Append(ctx, own[T](tx), key, want, rows)
}

func (a adapter[T]) ReadEntity(ctx context.Context, tx *Tx, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
	return a.s.ReadEntity(ctx, own[T](tx), key, after, limit)
}

func (a adapter[T]) ReadSettled(ctx context.Context, tx *Tx, after int64, limit int) ([]journal.Row, error) {
	return a.s.ReadSettled(ctx, own[T](tx), after, limit)
}

func (a adapter[T]) ReadLog(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
	return a.s.ReadLog(ctx, f)
}

func (a adapter[T]) LockCursor(ctx context.Context, tx *Tx, name string, wait bool) (journal.Cursor, bool, error) {
	return a.s.LockCursor(ctx, own[T](tx), name, wait)
}

func (a adapter[T]) SaveCursor(ctx context.Context, tx *Tx, c journal.Cursor) error {
	return a.s.SaveCursor(ctx, own[T](tx), c)
}

func (a adapter[T]) Cursors(ctx context.Context) ([]journal.Cursor, error) { return a.s.Cursors(ctx) }

func (a adapter[T]) Head(ctx context.Context) (journal.Head, error) { return a.s.Head(ctx) }

func (a adapter[T]) PutNote(ctx context.Context, tx *Tx, n journal.Note) error {
	return a.s.PutNote(ctx, own[T](tx), n)
}

func (a adapter[T]) DeleteNote(ctx context.Context, tx *Tx, space, key string) (bool, error) {
	return a.s.DeleteNote(ctx, own[T](tx), space, key)
}

func (a adapter[T]) Notes(ctx context.Context, tx *Tx, space, prefix, after string, limit int) ([]journal.Note, error) {
	return a.s.Notes(ctx, own[T](tx), space, prefix, after, limit)
}

func (a adapter[T]) Announce(ctx context.Context) error { return a.s.Announce(ctx) }

func (a adapter[T]) AnnounceIn(ctx context.Context, tx *Tx) error {
	return a.s.AnnounceIn(ctx, own[T](tx))
}
