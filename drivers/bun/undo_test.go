package bunstore_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
)

// clockFunc is a clock that does something when the store looks at it, which is after it has the lock.
type clockFunc func() time.Time

func (f clockFunc) Now() time.Time { return f() }

// fails makes SQLite refuse a kind of write: abort undoes the statement, rollback the transaction.
func fails(t testing.TB, s *bunstore.Store, how, when string) {
	t.Helper()
	_, err := s.DB().DB.Exec("create trigger broken before " + when + " begin select raise(" + how + ", 'broken'); end")
	require.NoError(t, err)
}

// withNote begins a transaction of an application that wrote something already.
func withNote(t testing.TB, s *bunstore.Store) bun.Tx {
	t.Helper()
	_, err := s.DB().DB.Exec("create table if not exists notes (id integer primary key)")
	require.NoError(t, err)
	tx, err := s.DB().BeginTx(context.Background(), nil)
	require.NoError(t, err)
	_, err = tx.Exec("insert into notes default values")
	require.NoError(t, err)
	return tx
}

func notes(t testing.TB, s *bunstore.Store) (n int) {
	t.Helper()
	require.NoError(t, s.DB().DB.QueryRow("select count(*) from notes").Scan(&n))
	return n
}

// TestTxCommittedAfterAnError: a call that answered an error did nothing, whatever becomes of the transaction (Q14).
func TestTxCommittedAfterAnError(t *testing.T) {
	ctx := context.Background()
	t.Run("enqueue", func(t *testing.T) {
		s := open(t)
		fails(t, s, "abort", "insert on stint_work when new.seq >= 30")
		tx := withNote(t, s)
		enqueue(t, s.WithTx(tx), request("job"))
		reqs := make([]core.EnqueueRequest, 40)
		for i := range reqs {
			reqs[i] = request("job")
		}
		_, err := s.WithTx(tx).Enqueue(ctx, reqs)
		require.Error(t, err)
		require.NoError(t, tx.Commit())
		checkInvariants(t, s)
		require.Equal(t, 1, notes(t, s))
		require.Len(t, claim(t, s, 100, "job").Jobs, 1, "what was enqueued before stays")
	})
	t.Run("complete", func(t *testing.T) {
		s := open(t)
		enqueue(t, s, request("job"))
		lease := takeOne(t, s)
		fails(t, s, "abort", "delete on stint_work")
		tx := withNote(t, s)
		require.Error(t, s.WithTx(tx).Complete(ctx, lease, nil))
		require.NoError(t, tx.Commit())
		checkInvariants(t, s)
		require.Equal(t, 1, notes(t, s))
		rec, err := s.Get(ctx, lease.ID)
		require.NoError(t, err)
		require.Equal(t, core.StateActive, rec.State)
	})
	t.Run("context", func(t *testing.T) {
		ends := func() {}
		s := open(t, bunstore.Options{Clock: clockFunc(func() time.Time { ends(); return time.Now() })})
		tx := withNote(t, s)
		ctx, cancel := context.WithCancel(ctx)
		ends = cancel
		_, err := s.WithTx(tx).Enqueue(ctx, []core.EnqueueRequest{request("job")})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, core.ErrUnavailable)
		_, err = s.WithTx(tx).Enqueue(ctx, []core.EnqueueRequest{request("job")})
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, tx.Commit(), "the transaction is the caller's, and so is its context")
		checkInvariants(t, s)
		require.Equal(t, 1, notes(t, s))
		require.Empty(t, claim(t, s, 1, "job").Jobs)
	})
}

// TestTxContextEndsAnywhere: whenever a call's context ends, it leaves no half call, nor half of the caller's rows.
func TestTxContextEndsAnywhere(t *testing.T) {
	s := open(t, bunstore.Options{Synchronous: "NORMAL"})
	reqs := make([]core.EnqueueRequest, 50)
	for i := range reqs {
		reqs[i] = request("job")
	}
	kept, want := 0, 0
	for i := range 100 {
		tx := withNote(t, s)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*10)*time.Microsecond)
		_, err := s.WithTx(tx).Enqueue(ctx, reqs)
		cancel()
		if err == nil {
			want += len(reqs)
		}
		// A context that ends in the very moment in which the lock is taken costs the transaction, and Commit says so.
		if lost := tx.Commit(); lost == nil {
			kept++
		} else {
			require.ErrorIs(t, lost, sql.ErrTxDone)
			require.Error(t, err)
		}
	}
	checkInvariants(t, s)
	require.Equal(t, kept, notes(t, s))
	counts, err := s.Counts(context.Background(), "")
	require.NoError(t, err)
	require.EqualValues(t, want, counts[core.StateWaiting])
}

// TestTxThatSQLiteEnded: when SQLite undoes a whole transaction, nothing that the caller still sends is run outside
// one.
func TestTxThatSQLiteEnded(t *testing.T) {
	s := open(t)
	fails(t, s, "rollback", "insert on stint_work")
	tx := withNote(t, s)
	_, err := s.WithTx(tx).Enqueue(context.Background(), []core.EnqueueRequest{request("job")})
	require.Error(t, err)
	_, err = tx.Exec("insert into notes default values")
	require.ErrorIs(t, err, sql.ErrTxDone)
	require.ErrorIs(t, tx.Commit(), sql.ErrTxDone)
	require.Zero(t, notes(t, s))
	checkInvariants(t, s)
}

// TestTxCompleteOnce: a repeated Complete would let the caller write everything else twice (Q14).
func TestTxCompleteOnce(t *testing.T) {
	s := open(t)
	ctx := context.Background()
	enqueue(t, s, request("job"))
	lease := takeOne(t, s)
	tx, err := s.DB().BeginTx(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, s.WithTx(tx).Complete(ctx, lease, nil))
	require.ErrorIs(t, s.WithTx(tx).Complete(ctx, lease, nil), core.ErrLeaseLost)
	require.NoError(t, tx.Commit())
	tx, err = s.DB().BeginTx(ctx, nil)
	require.NoError(t, err)
	require.ErrorIs(t, s.WithTx(tx).Complete(ctx, lease, nil), core.ErrLeaseLost)
	require.NoError(t, tx.Commit())
	checkInvariants(t, s)
}

// takeOne claims one job.
func takeOne(t testing.TB, s core.Store) core.Lease {
	t.Helper()
	return takeAll(t, s, 1)[0]
}

// takeAll claims n jobs under one token.
func takeAll(t testing.TB, s core.Store, n int) []core.Lease {
	t.Helper()
	token := core.NewToken()
	got, err := s.Claim(context.Background(), core.ClaimRequest{Token: token, Lease: time.Minute,
		Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: n}}})
	require.NoError(t, err)
	require.Len(t, got.Jobs, n)
	leases := make([]core.Lease, n)
	for i, j := range got.Jobs {
		leases[i] = core.Lease{ID: j.ID, Ref: j.Ref, Token: token}
	}
	return leases
}
