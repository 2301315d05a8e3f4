package pgstore

import (
	"context"
	"slices"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgwake"
	"github.com/stintmq/stint/internal/sqlexec"
)

// View is the contract of s inside the caller's transaction (Q14): x runs statements there; nil: there is none, which
// every call refuses. id is what tells that transaction from others that are open, see NewLog. It is no method, since
// drivers' stores have all of Store's.
func View(s *Store, x sqlexec.Executor, id func() any) core.TxView { return view{s, x, id} }

var errNoTx = &core.InvalidError{Field: "tx", Reason: "is nil"}

type view struct {
	s  *Store
	x  sqlexec.Executor
	id func() any
}

// Enqueue implements core.Enqueuer.
func (v view) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	if v.x == nil {
		return nil, errNoTx
	}
	if err := v.s.ensureLanes(ctx, reqs); err != nil {
		return nil, err
	}
	var notify pgsql.Notify
	own := v.s.own(ctx, v.id)
	if own == nil && !v.s.opts.QuietTx {
		// Nobody here knows when the caller commits, so this process listens too.
		notify = pgsql.Notify{Channel: v.s.channel, Origin: pgwake.Nobody}
	}
	laneless, strayed := false, []core.EnqueueRequest(nil)
	res, err := value(v.run(ctx), func(ctx context.Context, sn *session) ([]core.EnqueueResult, error) {
		res, err := sn.Enqueue(ctx, reqs, notify)
		laneless, strayed = sn.Laneless(), sn.Strayed()
		if own != nil && !own.add(sn.Woken()) {
			v.s.spread(sn.Woken()) // it was committed meanwhile
		}
		return res, err
	})
	if err == nil && (laneless || len(strayed) > 0) {
		err = v.s.remakeLanes(ctx, slices.Concat(reqs, strayed))
	}
	if err != nil {
		return nil, err
	}
	return res, nil
}

// Complete implements core.TxView.
func (v view) Complete(ctx context.Context, l core.Lease, res []byte) error {
	return v.run(ctx)(func(ctx context.Context, sn *session) error { return sn.Complete(ctx, l, res) })
}

func (v view) run(ctx context.Context) func(op) error {
	return func(do op) error {
		if v.x == nil {
			return errNoTx
		}
		if err := v.s.enter(ctx); err != nil {
			return err
		}
		defer v.s.calls.Done()
		_, err := bounded(ctx, v.s, v.s.own(ctx, v.id), func(ctx context.Context) (nothing, error) {
			return nothing{}, do(ctx, v.s.session(v.x).InTx())
		})
		return pgsql.TxFault(ctx, err)
	}
}
