package pgxstore_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/internal/pgtest"
	"github.com/stintmq/stint/journal"
)

// TestJournalConformance holds the journal in Postgres against the contract.
func TestJournalConformance(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	conformance.RunJournal(t, conformance.JournalHarness[pgx.Tx]{
		New: func(t testing.TB, clock core.Clock) (journal.Store[pgx.Tx], core.Store) {
			s := kit.Open(t, clock)
			return s.(*pgxstore.Store).Journal(), s
		},
		Open: func(t testing.TB, s core.Store, clock core.Clock) (journal.Store[pgx.Tx], core.Store) {
			o := kit.OpenAt(t, kit.SchemaOf(s), clock)
			return o.(*pgxstore.Store).Journal(), o
		},
		Begin: func(t testing.TB, _ core.Store) (pgx.Tx, func() error, func() error) {
			ctx := context.Background() // a case that timed out must still be able to roll back
			tx, err := pool.Begin(ctx)
			require.NoError(t, err)
			return tx, func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(ctx) }
		},
	})
}
