package pgstoretest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/pgwake"
)

// Listeners are the backends that listen to a store's channel.
func (k *Kit) Listeners(t testing.TB) []int64 {
	t.Helper()
	return k.Numbers(t, `select pid from pg_stat_activity
		where query ilike 'listen "stint_%' and datname = current_database() and state = 'idle'`)
}

// Listening waits until a store hears others, from when on its claims have marks, and returns a token of that moment.
// A store that begins to listen wakes everybody, but that may be over before this looks; so it is told something too.
func (k *Kit) Listening(t testing.TB, s Store) core.WakeToken {
	t.Helper()
	const queue = "listening"
	token := begin(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		soon, stop := context.WithTimeout(ctx, time.Second)
		wake, err := s.AwaitWake(soon, []string{queue}, token)
		stop()
		if err == nil {
			return wake.Token
		}
		require.NoError(t, ctx.Err(), "it does not listen")
		payload := pgwake.Payload(pgwake.Nobody, pgsql.News{Queue: queue})
		k.Exec(t, "select pg_notify($1::text, $2::text)", pgstore.Channel(k.SchemaOf(s)), payload)
	}
}

// channelHeals: the connection that listens is killed; there is a new one at once, everybody looks again, and
// wakes come through (Q16).
func channelHeals(t testing.TB, k *Kit) {
	worker := k.Open(t, nil)
	producer := k.OpenAt(t, k.SchemaOf(worker), nil)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	token := k.Listening(t, worker)
	for range 3 {
		pids := k.Listeners(t)
		require.NotEmpty(t, pids)
		k.Exec(t, "select pg_terminate_backend(pid::integer) from unnest($1::bigint[]) pid", pids)
		wake, err := worker.AwaitWake(ctx, []string{"q"}, token) // the new connection wakes
		require.NoError(t, err)
		Enqueue(t, producer, Request("job"))
		wake, err = worker.AwaitWake(ctx, []string{"q"}, wake.Token)
		require.NoError(t, err)
		for len(Claim(t, worker, 1, "job").Jobs) == 0 {
			wake, err = worker.AwaitWake(ctx, []string{"q"}, wake.Token)
			require.NoError(t, err)
		}
		token = begin(t, worker)
	}
}

// closeTells: a process that enqueues and exits has told the others (Q15).
func closeTells(t testing.TB, k *Kit) {
	worker := k.Open(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	k.Listening(t, worker)
	for range 5 {
		producer, err := k.DB(t).New(k.SchemaOf(worker))
		require.NoError(t, err)
		Enqueue(t, producer, Request("job"))
		Enqueue(t, producer, Request("job")) // within the gap
		require.NoError(t, producer.Close())
		for left := 2; left > 0; {
			got := Claim(t, worker, 10, "job")
			if left -= len(got.Jobs); left > 0 {
				_, err = worker.AwaitWake(ctx, []string{"q"}, got.Wake)
				require.NoError(t, err)
			}
		}
	}
}

// closed: after Close every call says so, and what waited has returned.
func closed(t testing.TB, k *Kit) {
	s := k.Own(t)
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
	require.ErrorIs(t, <-done, core.ErrClosed)
	_, err = s.Enqueue(ctx, []core.EnqueueRequest{Request("job")})
	require.ErrorIs(t, err, core.ErrClosed)
	_, err = s.Claim(ctx, core.ClaimRequest{Token: core.NewToken()})
	require.ErrorIs(t, err, core.ErrClosed)
	_, err = s.Get(ctx, "a")
	require.ErrorIs(t, err, core.ErrClosed)
	require.ErrorIs(t, s.Migrate(ctx), core.ErrClosed)
}

// strayJobIsFound: a claim that had jobs locked and did not take them tells nobody; a later claim that looks
// without marks finds them.
func strayJobIsFound(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	k.Listening(t, s)
	Enqueue(t, s, Request("job"))
	tx := k.Begin(t, s)
	_, err := tx.X.Exec(ctx, "select from "+k.SchemaOf(s)+".ready for update") // as a claim does
	require.NoError(t, err)
	got := Claim(t, s, 1, "job")
	require.Empty(t, got.Jobs)
	require.Positive(t, got.NextIn, "somebody has it locked")
	require.LessOrEqual(t, got.NextIn, 50*time.Millisecond)
	others := func() {
		for range 5 {
			Enqueue(t, s, Request("job"))
			Take(t, s, 1)
		}
	}
	others()
	_, err = tx.X.Exec(ctx, "select pg_sleep(2.1)") // claims do not reckon with a transaction for longer
	require.NoError(t, err)
	others() // these raise the marks to behind it
	require.NoError(t, tx.Rollback())
	require.Eventually(t, func() bool { return len(Claim(t, s, 1, "job").Jobs) == 1 }, 10*time.Second, 50*time.Millisecond)
}
