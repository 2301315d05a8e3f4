package pqstore_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
)

func leases(c core.Claimed, token string) []core.Lease {
	list := make([]core.Lease, len(c.Jobs))
	for i, j := range c.Jobs {
		list[i] = core.Lease{ID: j.ID, Ref: j.Ref, Token: token}
	}
	return list
}

// take claims n jobs and returns their leases.
func take(t testing.TB, s core.Store, n int) []core.Lease {
	t.Helper()
	token := core.NewToken()
	got, err := s.Claim(context.Background(), core.ClaimRequest{
		Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: n}}, Token: token, Lease: time.Minute, Worker: "w"})
	require.NoError(t, err)
	require.Len(t, got.Jobs, n)
	return leases(got, token)
}

// TestHeldRowHoldsNobodyUp: an application's transaction that completed a job stays open. Heartbeats, acks, sweeps and
// claims of the others go on, and say of that one job that it is held (Q21).
func TestHeldRowHoldsNobodyUp(t *testing.T) {
	s, spare := fresh(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 10 {
		enqueue(t, s, request("job"))
	}
	held := take(t, s, 5)
	tx, err := spare.db.BeginTx(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, s.WithTx(tx).Complete(ctx, held[2], nil))

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
	take(t, s, 5)

	require.NoError(t, tx.Rollback())
	x, err = s.Extend(ctx, held[2:3], time.Hour)
	require.NoError(t, err)
	require.Equal(t, core.Extended{}, x)
}

// TestTransactionsAboveReadCommitted: a conflict there can only be answered by a new transaction (Q14).
func TestTransactionsAboveReadCommitted(t *testing.T) {
	s, spare := fresh(t)
	ctx := context.Background()
	enqueue(t, s, request("job"))
	l := take(t, s, 1)
	tx, err := spare.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(ctx, "select 1") // its snapshot
	require.NoError(t, err)
	x, err := s.Extend(ctx, l, time.Hour)
	require.NoError(t, err)
	require.Equal(t, core.Extended{}, x)
	require.ErrorIs(t, s.WithTx(tx).Complete(ctx, l[0], nil), core.ErrRetryTx)
}

// TestLateCommit: jobs of a transaction that commits after others' younger jobs were claimed are claimed too, at
// once: its commit tells from where on to look.
func TestLateCommit(t *testing.T) {
	worker, spare := fresh(t)
	producer := openAt(t, spare.db, pqstore.Options{DSN: dsn(t, "", ""), Schema: worker.Schema()})
	ctx := context.Background()
	var since core.WakeToken
	awaken := func() {
		wake, err := worker.AwaitWake(ctx, []string{"q"}, since)
		require.NoError(t, err)
		since = wake.Token
	}
	since = begin(t, worker)
	awaken() // it listens
	tx, err := spare.db.BeginTx(ctx, nil)
	require.NoError(t, err)
	late := enqueue(t, producer.WithTx(tx), request("job"))[0].ID
	for range 100 {
		enqueue(t, producer, request("job"))
	}
	for left := 100; left > 0; {
		left -= len(claim(t, worker, 10, "job").Jobs)
	}
	since = claim(t, worker, 10, "job").Wake
	require.NoError(t, tx.Commit())
	for {
		if got := claim(t, worker, 10, "job"); len(got.Jobs) > 0 {
			require.Equal(t, late, got.Jobs[0].ID)
			return
		}
		awaken()
	}
}

// TestNilTx: no transaction is no panic.
func TestNilTx(t *testing.T) {
	s, _ := fresh(t)
	_, err := s.WithTx(nil).Enqueue(context.Background(), []core.EnqueueRequest{request("job")})
	var invalid *core.InvalidError
	require.ErrorAs(t, err, &invalid)
}
