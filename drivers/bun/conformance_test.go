package bunstore_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/internal/litesql"
	"github.com/stintmq/stint/internal/stdsql"
)

func TestConformance(t *testing.T) {
	// The disk's patience is not what the suite tests.
	options := func(clock core.Clock) bunstore.Options {
		return bunstore.Options{Clock: clock, Synchronous: "NORMAL"}
	}
	conformance.Run(t, conformance.Harness{
		New: func(t testing.TB, clock core.Clock) core.Store {
			return openAt(t, filepath.Join(t.TempDir(), "jobs.db"), options(clock))
		},
		Open: func(t testing.TB, s core.Store, clock core.Clock) core.Store {
			return openAt(t, pathOf(t, s.(*bunstore.Store)), options(clock))
		},
		Begin: func(t testing.TB, s core.Store) (core.TxView, func() error, func() error) {
			store := s.(*bunstore.Store)
			tx, err := store.DB().BeginTx(context.Background(), nil)
			require.NoError(t, err)
			return store.WithTx(tx), tx.Commit, tx.Rollback
		},
		Check: func(t testing.TB, s core.Store) { checkInvariants(t, s.(*bunstore.Store)) },
	})
}

func pathOf(t testing.TB, s *bunstore.Store) string {
	t.Helper()
	var path string
	require.NoError(t, s.DB().QueryRow("select file from pragma_database_list where name = 'main'").Scan(&path))
	return path
}

// checkInvariants looks at the tables themselves.
func checkInvariants(t testing.TB, s *bunstore.Store) {
	t.Helper()
	tx, err := s.DB().BeginTx(context.Background(), nil)
	require.NoError(t, err)
	require.NoError(t, litesql.CheckInvariants(context.Background(), stdsql.In(tx.Tx)))
	require.NoError(t, tx.Rollback())
}
