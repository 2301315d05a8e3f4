package pgstoretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// journalOtherTx: a transaction of the caller's own, begun within one of the journal's and with its context, wakes by its
// own commit, whatever becomes of the other; and so does one that is begun with the context later on (Q14, Q15).
func journalOtherTx(t testing.TB, k *Kit) {
	l := k.Log(t)
	other := k.OpenAt(t, l.Schema(), nil)
	k.Listening(t, other)
	commit := func(ctx context.Context) {
		t.Helper()
		token := begin(t, other)
		tx := k.Begin(t, l.s)
		_, err := tx.View.Enqueue(ctx, []core.EnqueueRequest{Request("job")})
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		wakes(t, other, token)
	}
	var kept context.Context
	for _, end := range []error{nil, errors.New("rolled back")} {
		require.ErrorIs(t, l.J.InTx(l.ctx, func(ctx context.Context, _ *Tx) error {
			kept = ctx //nolint:fatcontext // it is about those who keep it
			commit(ctx)
			return end
		}), end)
	}
	for range 3 { // the connection of the journal's transaction is among those that these get
		commit(kept)
	}
}

// journalSavepoints: what is enqueued within savepoints of a transaction of the journal's is told of after its commit,
// and what one of them rolled back takes nothing else with it (Q14, Q15).
func journalSavepoints(t testing.TB, k *Kit) {
	l := k.Log(t)
	other := k.OpenAt(t, l.Schema(), nil)
	k.Listening(t, other)
	undone := errors.New("undone")
	for _, end := range []error{nil, undone} {
		token := begin(t, other)
		require.NoError(t, l.J.InTx(l.ctx, func(ctx context.Context, tx *Tx) error {
			enqueue := func(tx *Tx) error {
				_, err := l.Store.Jobs().WithTx(tx).Enqueue(ctx, []core.EnqueueRequest{Request("job")})
				return err
			}
			if end != nil {
				require.NoError(t, enqueue(tx))
			}
			require.ErrorIs(t, k.DB(t).Nested(ctx, tx, func(tx *Tx) error { return errors.Join(enqueue(tx), end) }), end)
			return nil
		}))
		wakes(t, other, token)
		Take(t, other, 1)
		require.Empty(t, Claim(t, other, 1, "job").Jobs)
	}
}

// wakes: a store is told of work long before anybody would poll.
func wakes(t testing.TB, s Store, since core.WakeToken) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := s.AwaitWake(ctx, []string{"q"}, since)
	require.NoError(t, err, "nobody told of it")
}
