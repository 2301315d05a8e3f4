package pgxstore_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
	"github.com/stintmq/stint/internal/pgtest"
)

// TestSilentServer: a server that says nothing holds no transaction of the journal's for ever (J7).
func TestSilentServer(t *testing.T) {
	kit.JournalSilence(t, pgstoretest.Silence{
		DSN: pgtest.DSN(t),
		Connect: func(dsn string) (*pgstoretest.DB, error) {
			return connectTo(dsn, pgx.QueryExecModeCacheStatement, pgxstore.Options{PollOnly: true})
		},
		Patience: func(s pgstoretest.Store, d time.Duration) { pgxstore.SetPatience(s.(*pgxstore.Store), d) },
	})
}
