package pgxstore_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
)

func TestConformance(t *testing.T) {
	spare := newSchemas(t)
	pool := spare.pool
	conformance.Run(t, conformance.Harness{
		New: func(t testing.TB, clock core.Clock) core.Store {
			return open(t, spare, pgxstore.Options{Clock: clock})
		},
		Open: func(t testing.TB, s core.Store, clock core.Clock) core.Store {
			return openAt(t, pool, pgxstore.Options{Schema: s.(*pgxstore.Store).Schema(), Clock: clock})
		},
		Begin: func(t testing.TB, s core.Store) (core.TxView, func() error, func() error) {
			ctx := context.Background()
			tx, err := pool.Begin(ctx)
			require.NoError(t, err)
			return s.(*pgxstore.Store).WithTx(tx),
				func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(ctx) }
		},
		Check: func(t testing.TB, s core.Store) { checkInvariants(t, pool, s.(*pgxstore.Store).Schema()) },
		Lacks: []conformance.Capability{conformance.CapDedupe, conformance.CapRetain, conformance.CapSchedule},
	})
}

// checkInvariants looks at the tables themselves.
func checkInvariants(t testing.TB, pool *pgxpool.Pool, schema string) {
	t.Helper()
	require.NoError(t, pgxstore.CheckInvariants(context.Background(), pool, schema))
}
