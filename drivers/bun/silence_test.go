package bunstore_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun/driver/pgdriver"

	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
)

// TestPgdriverJournalSilence, and over the other libraries: a server that says nothing holds no transaction of the
// journal's for ever (J7).
func TestPgdriverJournalSilence(t *testing.T) {
	open := func(driver string) func(dsn string) (*pgstoretest.DB, error) {
		return func(dsn string) (*pgstoretest.DB, error) {
			db, err := sql.Open(driver, dsn)
			require.NoError(t, err)
			return onPostgres(bunOn(db), noListen)
		}
	}
	for name, s := range map[string]pgstoretest.Silence{
		"pgdriver": {Connect: func(dsn string) (*pgstoretest.DB, error) {
			return onPostgres(bunOn(sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(dsn)))), noListen)
		}},
		"pgx": {Connect: open("pgx")},
		"pq":  {Connect: open("postgres"), Deaf: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.DSN = dsn(t)
			s.Patience = func(s pgstoretest.Store, d time.Duration) { bunstore.SetPatience(s.(*bunstore.Store), d) }
			overPgdriver.JournalSilence(t, s)
		})
	}
}
