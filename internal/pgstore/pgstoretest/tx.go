package pgstoretest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// heldRowHoldsNobodyUp: an application's transaction that completed a job stays open. Heartbeats, acks, sweeps and
// claims of the others go on, and say of that one job that it is held (Q21).
func heldRowHoldsNobodyUp(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 10 {
		Enqueue(t, s, Request("job"))
	}
	held := Take(t, s, 5)
	tx := k.Begin(t, s)
	require.NoError(t, tx.View.Complete(ctx, held[2], nil))

	x, err := s.Extend(ctx, held, time.Hour)
	require.NoError(t, err)
	require.Equal(t, core.Extended{Busy: held[2:3]}, x)
	acks := make([]core.Ack, len(held))
	for i := range held {
		acks[i] = core.Ack{Lease: held[i], Outcome: core.OutcomeComplete}
	}
	res, err := s.Ack(ctx, acks)
	require.NoError(t, err)
	for i, r := range res {
		if i == 2 {
			require.ErrorIs(t, r.Err, core.ErrUnavailable)
			continue
		}
		require.Equal(t, core.AckResult{State: core.StateCompleted}, r)
	}
	_, err = s.RecoverStalled(ctx, core.RecoverRequest{})
	require.NoError(t, err)
	Take(t, s, 5)

	require.NoError(t, tx.Rollback())
	x, err = s.Extend(ctx, held[2:3], time.Hour)
	require.NoError(t, err)
	require.Equal(t, core.Extended{}, x)
}

// deadTransactions: one that ended, or that an error aborted, is the caller's mistake: no repeat helps.
func deadTransactions(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	var invalid *core.InvalidError
	Enqueue(t, s, Request("job"))
	held := Take(t, s, 1)
	refused := func(tx *Tx) {
		t.Helper()
		_, err := tx.View.Enqueue(ctx, []core.EnqueueRequest{Request("job")})
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "tx", invalid.Field)
		require.ErrorAs(t, tx.View.Complete(ctx, held[0], nil), &invalid)
	}
	aborted := k.Begin(t, s)
	_, err := aborted.X.Exec(ctx, "select 1 / 0")
	require.Error(t, err)
	refused(aborted)
	require.NoError(t, aborted.Rollback())
	refused(aborted)
	committed := k.Begin(t, s)
	require.NoError(t, committed.Commit())
	refused(committed)
	AckAll(t, s, held)
}

// endsBehindHeartbeats: a heartbeat that commits while a Complete waits for its row does not take the lease away, nor
// from an ack (Q5, Q14).
func endsBehindHeartbeats(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	heartbeat := func(during func()) {
		t.Helper()
		tx := k.Begin(t, s)
		_, err := tx.X.Exec(ctx, "update "+quoted(k.SchemaOf(s))+".leases set until = until + interval '1 second'")
		require.NoError(t, err)
		during()
		require.NoError(t, tx.Commit())
	}
	Enqueue(t, s, Request("job"), Request("job"))
	held := Take(t, s, 2)
	tx, done := k.Begin(t, s), make(chan error, 1)
	heartbeat(func() {
		go func() { done <- tx.View.Complete(ctx, held[0], nil) }()
		k.waiting(t, 1)
	})
	require.NoError(t, <-done)
	require.NoError(t, tx.Commit())

	heartbeat(func() {
		go func() {
			res, err := s.Ack(ctx, []core.Ack{{Lease: held[1], Outcome: core.OutcomeComplete}})
			if err == nil {
				err = res[0].Err
			}
			done <- err
		}()
	})
	if err := <-done; err != nil {
		require.ErrorIs(t, err, core.ErrUnavailable, "the row was held for long")
		AckAll(t, s, held[1:])
	}
}

// transactionsAboveReadCommitted: a conflict there can only be answered by a new transaction (Q14).
func transactionsAboveReadCommitted(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	Enqueue(t, s, Request("job"))
	l := Take(t, s, 1)
	tx, err := k.DB(t).Begin(ctx, s, true)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.X.Exec(ctx, "select 1") // its snapshot
	require.NoError(t, err)
	x, err := s.Extend(ctx, l, time.Hour)
	require.NoError(t, err)
	require.Equal(t, core.Extended{}, x)
	require.ErrorIs(t, tx.View.Complete(ctx, l[0], nil), core.ErrRetryTx)
}

// lateCommit: jobs of a transaction that commits after others' younger jobs were claimed are claimed too, at
// once: its commit tells from where on to look.
func lateCommit(t testing.TB, k *Kit) {
	worker := k.Open(t, nil)
	producer := k.OpenAt(t, k.SchemaOf(worker), nil)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	k.Listening(t, worker)
	tx := k.Begin(t, producer)
	late := Enqueue(t, tx.View, Request("job"))[0].ID
	for range 100 {
		Enqueue(t, producer, Request("job"))
	}
	for left := 100; left > 0; {
		left -= len(Claim(t, worker, 10, "job").Jobs)
	}
	since := Claim(t, worker, 10, "job").Wake
	require.NoError(t, tx.Commit())
	for {
		got := Claim(t, worker, 10, "job")
		if len(got.Jobs) > 0 {
			require.Equal(t, late, got.Jobs[0].ID)
			return
		}
		_, err := worker.AwaitWake(ctx, []string{"q"}, since)
		require.NoError(t, err)
		since = got.Wake
	}
}

// nilTx: no transaction is no panic.
func nilTx(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	_, err := k.DB(t).NilTx(s).Enqueue(context.Background(), []core.EnqueueRequest{Request("job")})
	var invalid *core.InvalidError
	require.ErrorAs(t, err, &invalid)
}
