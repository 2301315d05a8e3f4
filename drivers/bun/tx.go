package bunstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/litesql"
	"github.com/stintmq/stint/internal/sqlexec"
)

// inTx undoes each call that fails to where it began, so that the caller's transaction may go on. If SQLite has undone
// all of it instead, as it does when the disk is full or broken, it is at its end, and Commit says so.
func (s *lite) inTx(tx *sql.Tx) core.TxView { return txView{s, tx} }

type txView struct {
	s  *lite
	tx *sql.Tx
}

// Enqueue implements core.Enqueuer.
func (v txView) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	return result(ctx, v.run, func(ctx context.Context, sn *session) ([]core.EnqueueResult, error) {
		return sn.Enqueue(ctx, reqs)
	})
}

// Complete implements core.TxView.
func (v txView) Complete(ctx context.Context, l core.Lease, res []byte) error {
	return v.run(ctx, func(ctx context.Context, sn *session) error { return sn.Complete(ctx, l, res) })
}

var errNoTx = &core.InvalidError{Field: "tx", Reason: "is no transaction"}

func (v txView) run(ctx context.Context, op func(context.Context, *session) error) error {
	if v.tx == nil {
		return errNoTx
	}
	if err := v.s.enter(); err != nil {
		return err
	}
	defer v.s.calls.Done()
	if err := ctx.Err(); err != nil {
		return txFault(ctx, err)
	}
	x, whole := v.s.kept.In(v.tx), context.WithoutCancel(ctx)
	undo, err := litesql.Savepoint(whole, x)
	if err != nil {
		return txFault(ctx, err)
	}
	woken, err := v.inside(ctx, x, op)
	if err == nil {
		err = undo.Release(whole)
	}
	if err != nil {
		if undo.RollBack(whole) != nil {
			// SQLite was ahead of us and ended the transaction. Now database/sql knows it too, and will not run what
			// the caller still sends as statements outside one.
			_ = v.tx.Rollback()
		}
		return txFault(ctx, err)
	}
	if woken {
		v.s.hub.expect() // nobody tells when the caller commits
	}
	return nil
}

// inside runs an operation and reports whether it has news. ctx bounds the wait for the lock and is looked at in the
// end, but it interrupts nothing: of a write that is interrupted SQLite undoes the transaction, the caller's part too.
func (v txView) inside(ctx context.Context, x sqlexec.Executor, op func(context.Context, *session) error) (bool, error) {
	// First of all the lock, lest a read of ours is what makes a later write fail.
	if err := litesql.Lock(ctx, x); err != nil {
		return false, err
	}
	sn := litesql.NewSession(x, v.s.now(), v.s.opts.Limits)
	if err := op(context.WithoutCancel(ctx), sn); err != nil {
		return false, err
	}
	return len(sn.Woken()) > 0, ctx.Err()
}

func txFault(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return litesql.TxFault(err)
}
