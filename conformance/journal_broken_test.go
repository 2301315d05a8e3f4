package conformance

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
)

// brokenLog is a journal's store whose calls go through functions where a mutant sets one.
type brokenLog struct {
	journal.Store[*overTx]

	jobs        func() journal.Jobs[*overTx]
	inTx        func(ctx context.Context, do func(context.Context, *overTx) error) error
	append      func(ctx context.Context, tx *overTx, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error)
	readEntity  func(ctx context.Context, tx *overTx, key journal.EntityKey, after int64, limit int) ([]journal.Row, error)
	readSettled func(ctx context.Context, tx *overTx, after int64, limit int) ([]journal.Row, error)
	readLog     func(ctx context.Context, f journal.Filter) ([]journal.Row, error)
	lockCursor  func(ctx context.Context, tx *overTx, name string, wait bool) (journal.Cursor, bool, error)
	saveCursor  func(ctx context.Context, tx *overTx, c journal.Cursor) error
	head        func(ctx context.Context) (journal.Head, error)
	putNote     func(ctx context.Context, tx *overTx, n journal.Note) error
	deleteNote  func(ctx context.Context, tx *overTx, space, key string) (bool, error)
	notes       func(ctx context.Context, tx *overTx, space, prefix, after string, limit int) ([]journal.Note, error)
	announce    func(ctx context.Context) error
	announceIn  func(ctx context.Context, tx *overTx) error
}

// seen lets a mutant change every event that leaves the store.
func (b *brokenLog) seen(change func(*journal.Row)) {
	all := func(rows []journal.Row, err error) ([]journal.Row, error) {
		for i := range rows {
			change(&rows[i])
		}
		return rows, err
	}
	b.readEntity = func(ctx context.Context, tx *overTx, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
		return all(b.Store.ReadEntity(ctx, tx, key, after, limit))
	}
	b.readSettled = func(ctx context.Context, tx *overTx, after int64, limit int) ([]journal.Row, error) {
		return all(b.Store.ReadSettled(ctx, tx, after, limit))
	}
	b.readLog = func(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
		return all(b.Store.ReadLog(ctx, f))
	}
}

// filtered lets a mutant change every filter.
func (b *brokenLog) filtered(change func(*journal.Filter)) {
	b.readLog = func(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
		change(&f)
		return b.Store.ReadLog(ctx, f)
	}
}

// saved lets a mutant change every cursor that is saved.
func (b *brokenLog) saved(change func(*journal.Cursor)) {
	b.saveCursor = func(ctx context.Context, tx *overTx, c journal.Cursor) error {
		change(&c)
		return b.Store.SaveCursor(ctx, tx, c)
	}
}

// headed lets a mutant change every head.
func (b *brokenLog) headed(change func(*journal.Head)) {
	b.head = func(ctx context.Context) (journal.Head, error) {
		h, err := b.Store.Head(ctx)
		if err == nil {
			change(&h)
		}
		return h, err
	}
}

// directJobs does in no transaction what is done in one.
type directJobs struct{ overJobs }

func (j directJobs) WithTx(tx *overTx) core.TxView { return memstore.Tx[*overTx](j.Store).WithTx(tx) }

func (b *brokenLog) Jobs() journal.Jobs[*overTx] {
	if b.jobs != nil {
		return b.jobs()
	}
	return b.Store.Jobs()
}

func (b *brokenLog) InTx(ctx context.Context, do func(context.Context, *overTx) error) error {
	if b.inTx != nil {
		return b.inTx(ctx, do)
	}
	return b.Store.InTx(ctx, do)
}

func (b *brokenLog) Append(ctx context.Context, tx *overTx, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
	if b.append != nil {
		return b.append(ctx, tx, key, want, rows)
	}
	return b.Store.Append(ctx, tx, key, want, rows)
}

func (b *brokenLog) ReadEntity(ctx context.Context, tx *overTx, key journal.EntityKey, after int64, limit int) ([]journal.Row, error) {
	if b.readEntity != nil {
		return b.readEntity(ctx, tx, key, after, limit)
	}
	return b.Store.ReadEntity(ctx, tx, key, after, limit)
}

func (b *brokenLog) ReadSettled(ctx context.Context, tx *overTx, after int64, limit int) ([]journal.Row, error) {
	if b.readSettled != nil {
		return b.readSettled(ctx, tx, after, limit)
	}
	return b.Store.ReadSettled(ctx, tx, after, limit)
}

func (b *brokenLog) ReadLog(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
	if b.readLog != nil {
		return b.readLog(ctx, f)
	}
	return b.Store.ReadLog(ctx, f)
}

func (b *brokenLog) LockCursor(ctx context.Context, tx *overTx, name string, wait bool) (journal.Cursor, bool, error) {
	if b.lockCursor != nil {
		return b.lockCursor(ctx, tx, name, wait)
	}
	return b.Store.LockCursor(ctx, tx, name, wait)
}

func (b *brokenLog) SaveCursor(ctx context.Context, tx *overTx, c journal.Cursor) error {
	if b.saveCursor != nil {
		return b.saveCursor(ctx, tx, c)
	}
	return b.Store.SaveCursor(ctx, tx, c)
}

func (b *brokenLog) Head(ctx context.Context) (journal.Head, error) {
	if b.head != nil {
		return b.head(ctx)
	}
	return b.Store.Head(ctx)
}

func (b *brokenLog) PutNote(ctx context.Context, tx *overTx, n journal.Note) error {
	if b.putNote != nil {
		return b.putNote(ctx, tx, n)
	}
	return b.Store.PutNote(ctx, tx, n)
}

func (b *brokenLog) DeleteNote(ctx context.Context, tx *overTx, space, key string) (bool, error) {
	if b.deleteNote != nil {
		return b.deleteNote(ctx, tx, space, key)
	}
	return b.Store.DeleteNote(ctx, tx, space, key)
}

func (b *brokenLog) Notes(ctx context.Context, tx *overTx, space, prefix, after string, limit int) ([]journal.Note, error) {
	if b.notes != nil {
		return b.notes(ctx, tx, space, prefix, after, limit)
	}
	return b.Store.Notes(ctx, tx, space, prefix, after, limit)
}

func (b *brokenLog) Announce(ctx context.Context) error {
	if b.announce != nil {
		return b.announce(ctx)
	}
	return b.Store.Announce(ctx)
}

func (b *brokenLog) AnnounceIn(ctx context.Context, tx *overTx) error {
	if b.announceIn != nil {
		return b.announceIn(ctx, tx)
	}
	return b.Store.AnnounceIn(ctx, tx)
}

// machineNow is a time that is not the suite's.
func machineNow() time.Time { return core.Micros(time.Now()) }
