package pqstore

import (
	"context"
	"database/sql"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgwake"
)

// WithTx implements core.TxStore: what the view does happens when the caller commits tx, or not at all (Q14). tx must
// be of the same database. Other processes are told by its commit.
//
// At READ COMMITTED, Postgres's default, a conflict with another transaction is waited for and answered. Above it
// the database refuses what was changed meanwhile: core.ErrRetryTx. After an error other than an answer about one
// job, the transaction can only be rolled back. How long a statement may take is for the context to say.
func (s *Store) WithTx(tx *sql.Tx) core.TxView { return txView{s, tx} }

type txView struct {
	s  *Store
	tx *sql.Tx
}

// Enqueue implements core.Enqueuer.
func (v txView) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	if err := v.s.ensureLanes(ctx, reqs); err != nil {
		return nil, err
	}
	// Nobody here knows when the caller commits, so this process listens too.
	notify := pgsql.Notify{Channel: v.s.channel, Origin: pgwake.Nobody}
	return value(v.run(ctx), func(ctx context.Context, sn *session) ([]core.EnqueueResult, error) {
		return sn.Enqueue(ctx, reqs, notify)
	})
}

// Complete implements core.TxView.
func (v txView) Complete(ctx context.Context, l core.Lease, res []byte) error {
	return v.run(ctx)(func(ctx context.Context, sn *session) error { return sn.Complete(ctx, l, res) })
}

func (v txView) run(ctx context.Context) func(op) error {
	return func(do op) error {
		if v.tx == nil {
			return &core.InvalidError{Field: "tx", Reason: "is nil"}
		}
		if err := v.s.enter(ctx); err != nil {
			return err
		}
		defer v.s.calls.Done()
		return pgsql.TxFault(ctx, do(ctx, v.s.session(v.s.kept.In(v.tx)).InTx()))
	}
}
