package bunstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/drivers/bun/pgxlisten"
)

// TestPollOnly: where a driver's connections can't listen nothing does, and this process's own news wake all the same.
func TestPollOnly(t *testing.T) {
	db := openSQL(t, "postgres")
	defer func() { require.NoError(t, db.Close()) }()
	schema := overPq.Schema(t)
	s, err := bunstore.New(db, bunstore.Options{Schema: schema})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	since := claim(t, s, 1, "job").Wake
	other := overPgdriver.OpenAt(t, schema, nil)
	enqueue(t, other, request("other"))
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	_, err = s.AwaitWake(short, []string{"q"}, since)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	woken := make(chan error, 1)
	go func() {
		_, err := s.AwaitWake(ctx, []string{"q"}, since)
		woken <- err
	}()
	enqueue(t, s, request("job"))
	require.NoError(t, <-woken)
	require.Len(t, claim(t, s, 2, "job", "other").Jobs, 2)
}

// TestWhatListens: connections are told apart before anything listens, and too small a pool is refused.
func TestWhatListens(t *testing.T) {
	var invalid *core.InvalidError
	db := openPgdriver(t)
	defer func() { require.NoError(t, db.Close()) }()
	schema := overPgdriver.Schema(t)
	for most := 5; most <= 7; most++ {
		db.SetMaxOpenConns(most)
		s, err := bunstore.New(db, bunstore.Options{Schema: schema})
		if most < 7 {
			require.ErrorAs(t, err, &invalid)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	_, err := bunstore.New(db, bunstore.Options{Schema: schema, Synchronous: "FULL"})
	require.ErrorAs(t, err, &invalid)

	// A listener of another library says so, instead of panicking.
	_, err = pgxlisten.On(db.DB)(context.Background(), "c")
	require.ErrorContains(t, err, "pgx/stdlib")
}

// TestUnreachable: no server is an error, and no wait.
func TestUnreachable(t *testing.T) {
	db := openPgdriver(t)
	require.NoError(t, db.Close())
	_, err := bunstore.New(db, bunstore.Options{})
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.ErrorIs(t, bunstore.Migrate(context.Background(), db), core.ErrUnavailable)
}
