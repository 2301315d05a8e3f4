package pgxstore_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
	"github.com/stintmq/stint/internal/pgtest"
)

func TestLargePayloads(t *testing.T) {
	pool, err := pgxpool.New(context.Background(), pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := pgxstore.New(pool, pgxstore.Options{Schema: kit.Schema(t), Limits: core.Limits{Payload: core.MaxPayload}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	pgstoretest.LargePayloads(t, s)
}
