package pqstore_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
)

func TestConformance(t *testing.T) { conform(t, dsn(t, "", "")) }

// TestConformanceBinary: what pq sends and reads in binary form means the same.
func TestConformanceBinary(t *testing.T) { conform(t, dsn(t, "binary_parameters", "yes")) }

func conform(t *testing.T, dsn string) {
	spare := &schemas{owner: t, db: connect(t, dsn)}
	db := spare.db
	conformance.Run(t, conformance.Harness{
		New: func(t testing.TB, clock core.Clock) core.Store {
			return open(t, spare, pqstore.Options{DSN: dsn, Clock: clock})
		},
		Open: func(t testing.TB, s core.Store, clock core.Clock) core.Store {
			return openAt(t, db, pqstore.Options{DSN: dsn, Schema: s.(*pqstore.Store).Schema(), Clock: clock})
		},
		Begin: func(t testing.TB, s core.Store) (core.TxView, func() error, func() error) {
			tx, err := db.BeginTx(context.Background(), nil)
			require.NoError(t, err)
			return s.(*pqstore.Store).WithTx(tx), tx.Commit, tx.Rollback
		},
		Check: func(t testing.TB, s core.Store) { checkInvariants(t, db, s.(*pqstore.Store).Schema()) },
		Lacks: []conformance.Capability{conformance.CapDedupe, conformance.CapRetain, conformance.CapSchedule},
	})
}

// checkInvariants looks at the tables themselves.
func checkInvariants(t testing.TB, db *sql.DB, schema string) {
	t.Helper()
	require.NoError(t, pqstore.CheckInvariants(context.Background(), db, schema))
}
