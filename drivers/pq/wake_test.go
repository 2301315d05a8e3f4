package pqstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
)

// listeners are the backends that listen to a store's channel.
func listeners(t testing.TB, spare *schemas) []int {
	t.Helper()
	rows, err := spare.db.QueryContext(context.Background(),
		`select pid from pg_stat_activity where query ilike 'listen "stint_%' and datname = current_database() and state = 'idle'`)
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	var pids []int
	for rows.Next() {
		var pid int
		require.NoError(t, rows.Scan(&pid))
		pids = append(pids, pid)
	}
	require.NoError(t, rows.Err())
	return pids
}

// begin has a store listen, and returns a token from before it does: whoever waits with that returns once it does.
func begin(t testing.TB, s core.Store) core.WakeToken {
	t.Helper()
	wake, err := s.AwaitWake(context.Background(), nil, "")
	require.NoError(t, err)
	return wake.Token
}

// TestChannelHeals: the connection that listens is killed; there is a new one at once, everybody looks again, and
// wakes come through (Q16).
func TestChannelHeals(t *testing.T) {
	worker, spare := fresh(t)
	producer := openAt(t, spare.db, pqstore.Options{DSN: dsn(t, "", ""), Schema: worker.Schema()})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	since := begin(t, worker)
	for range 3 {
		wake, err := worker.AwaitWake(ctx, []string{"q"}, since) // at once when it listens
		require.NoError(t, err)
		pids := listeners(t, spare)
		require.NotEmpty(t, pids)
		_, err = spare.db.ExecContext(ctx, "select pg_terminate_backend(pid) from unnest($1::int[]) pid", pq.Array(pids))
		require.NoError(t, err)
		wake, err = worker.AwaitWake(ctx, []string{"q"}, wake.Token) // the new connection wakes
		require.NoError(t, err)
		enqueue(t, producer, request("job"))
		wake, err = worker.AwaitWake(ctx, []string{"q"}, wake.Token)
		require.NoError(t, err)
		since = ""
		for len(claim(t, worker, 1, "job").Jobs) == 0 {
			wake, err = worker.AwaitWake(ctx, []string{"q"}, wake.Token)
			require.NoError(t, err)
		}
	}
}

// TestCloseTells: a process that enqueues and exits has told the others (Q15).
func TestCloseTells(t *testing.T) {
	worker, spare := fresh(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	wake, err := worker.AwaitWake(ctx, []string{"q"}, begin(t, worker))
	require.NoError(t, err)
	for range 5 {
		producer, err := pqstore.New(spare.db, pqstore.Options{DSN: dsn(t, "", ""), Schema: worker.Schema()})
		require.NoError(t, err)
		enqueue(t, producer, request("job"))
		enqueue(t, producer, request("job")) // within the gap
		require.NoError(t, producer.Close())
		for left := 2; left > 0; {
			got := claim(t, worker, 10, "job")
			if left -= len(got.Jobs); left > 0 {
				wake, err = worker.AwaitWake(ctx, []string{"q"}, got.Wake)
				require.NoError(t, err)
			}
		}
		_ = wake
	}
}

// TestClosed: after Close every call says so, and what waited has returned.
func TestClosed(t *testing.T) {
	_, spare := fresh(t)
	s, err := pqstore.New(spare.db, pqstore.Options{Schema: spare.take(t)})
	require.NoError(t, err)
	ctx := context.Background()
	wake, err := s.AwaitWake(ctx, nil, "")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		for {
			w, err := s.AwaitWake(ctx, []string{"q"}, wake.Token)
			if err != nil {
				done <- err
				return
			}
			wake = w
		}
	}()
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-done, core.ErrUnavailable)
	_, err = s.Enqueue(ctx, []core.EnqueueRequest{request("job")})
	require.ErrorIs(t, err, core.ErrUnavailable)
	_, err = s.Claim(ctx, core.ClaimRequest{Token: core.NewToken()})
	require.ErrorIs(t, err, core.ErrUnavailable)
	_, err = s.Get(ctx, "a")
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.ErrorIs(t, s.Migrate(ctx), core.ErrUnavailable)
}

// TestStrayJobIsFound: a claim that had jobs locked and did not take them tells nobody; a later claim that looks
// without marks finds them.
func TestStrayJobIsFound(t *testing.T) {
	s, spare := fresh(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := s.AwaitWake(ctx, nil, begin(t, s))
	require.NoError(t, err)
	enqueue(t, s, request("job"))
	tx, err := spare.db.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(ctx, `select from "`+s.Schema()+`".ready for update`) // as a claim does
	require.NoError(t, err)
	got := claim(t, s, 1, "job")
	require.Empty(t, got.Jobs)
	require.Positive(t, got.NextIn, "somebody has it locked")
	require.LessOrEqual(t, got.NextIn, 50*time.Millisecond)
	require.NoError(t, tx.Rollback())
	require.Eventually(t, func() bool { return len(claim(t, s, 1, "job").Jobs) == 1 }, 20*time.Second, 50*time.Millisecond)
}
