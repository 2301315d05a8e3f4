package bunstore

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/litesql"
)

// WithTx implements core.TxStore: what the view does happens when the caller commits tx, or not at all (Q14).
//
// tx may come from DB() or from any other handle on the same file. One that reads before it writes can be
// overtaken by another writer: its next write then returns core.ErrRetryTx. Those of a store made by OpenSQLite
// take the write lock as they begin and never do.
func (s *Store) WithTx(tx bun.Tx) core.TxView { return txView{s, tx} }

type txView struct {
	s  *Store
	tx bun.Tx
}

// Enqueue implements core.Enqueuer.
func (v txView) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	return result(ctx, v.run, func(ctx context.Context, sn *session) ([]core.EnqueueResult, error) {
		return sn.Enqueue(ctx, reqs)
	})
}

// Complete implements core.TxView.
func (v txView) Complete(ctx context.Context, l core.Lease, res []byte) error {
	results, err := result(ctx, v.run, func(ctx context.Context, sn *session) ([]core.AckResult, error) {
		return sn.Ack(ctx, []core.Ack{{Lease: l, Outcome: core.OutcomeComplete, Result: res}})
	})
	if err != nil {
		return err
	}
	return results[0].Err
}

var errNoTx = &core.InvalidError{Field: "tx", Reason: "is no transaction"}

func (v txView) run(ctx context.Context, op func(context.Context, *session) error) error {
	if v.tx.Tx == nil {
		return errNoTx
	}
	if err := v.s.enter(); err != nil {
		return err
	}
	defer v.s.calls.Done()
	x := v.s.kept.In(v.tx.Tx)
	// First of all the lock, lest a read of ours is what makes a later write fail.
	if err := litesql.Lock(ctx, x); err != nil {
		return txFault(ctx, err)
	}
	sn := litesql.NewSession(x, v.s.now(), v.s.opts.Limits)
	if err := op(ctx, sn); err != nil {
		return txFault(ctx, err)
	}
	if len(sn.Woken()) > 0 {
		v.s.hub.expect() // nobody tells when the caller commits
	}
	return nil
}

func txFault(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return litesql.TxFault(err)
}
