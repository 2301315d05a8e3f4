package pgxstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
	"github.com/stintmq/stint/internal/pgtest"
)

// TestQuietTx: what is enqueued in a transaction wakes nobody, and is there.
func TestQuietTx(t *testing.T) {
	k := pgstoretest.ForTest(t, func(t testing.TB) (*pgstoretest.DB, error) {
		return connectTo(pgtest.DSN(t), pgx.QueryExecModeCacheStatement, pgxstore.Options{QuietTx: true})
	})
	s := k.Open(t, nil)
	ctx := context.Background()
	pgstoretest.Enqueue(t, k.OpenAt(t, k.SchemaOf(s), nil), pgstoretest.Request("job"))
	got := pgstoretest.Claim(t, s, 10, "job")
	require.Len(t, got.Jobs, 1)
	since := k.Listening(t, s)

	tx := k.Begin(t, s)
	res, err := tx.View.Enqueue(ctx, []core.EnqueueRequest{pgstoretest.Request("job")})
	require.NoError(t, err)
	require.NoError(t, res[0].Err)
	require.NoError(t, tx.Commit())
	quiet, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = s.AwaitWake(quiet, []string{"q"}, since)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Len(t, pgstoretest.Claim(t, s, 10, "job").Jobs, 1)
}
