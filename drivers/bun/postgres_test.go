package bunstore_test

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/drivers/bun/pgxlisten"
	"github.com/stintmq/stint/drivers/bun/pqlisten"
	"github.com/stintmq/stint/internal/pgstore/pgstd"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
	"github.com/stintmq/stint/internal/pgtest"
	"github.com/stintmq/stint/journal"
)

// The kits are shared by all tests, as the server is; one for each library below bun.
var (
	overPgdriver = pgstoretest.New(func(t testing.TB) (*pgstoretest.DB, error) { return onPostgres(openPgdriver(t), noListen) })
	overPgx      = pgstoretest.New(func(t testing.TB) (*pgstoretest.DB, error) { return onPostgres(openSQL(t, "pgx"), pgxlisten.On) })
	overPq       = pgstoretest.New(func(t testing.TB) (*pgstoretest.DB, error) {
		to, err := pqlisten.To(dsn(t))
		require.NoError(t, err)
		return onPostgres(openSQL(t, "postgres"), func(*sql.DB) func(context.Context, string) (bunstore.Listener, error) { return to })
	})

	kits = []struct {
		name string
		kit  *pgstoretest.Kit
	}{{"pgdriver", overPgdriver}, {"pgx", overPgx}, {"pq", overPq}}
)

func TestPgdriverConformance(t *testing.T) { overPgdriver.Conformance(t) }

func TestPgdriverJournalConformance(t *testing.T) { overPgdriver.JournalConformance(t) }

func TestPgdriver(t *testing.T) { overPgdriver.Test(t) }

func TestPgx(t *testing.T) { library(t, overPgx) }

func TestPq(t *testing.T) { library(t, overPq) }

// library runs what a library below the *sql.DB could break; the rest is the same code for each. STINT_TEST_BUN=full
// runs everything.
func library(t *testing.T, k *pgstoretest.Kit) {
	if os.Getenv("STINT_TEST_BUN") == "full" {
		t.Run("Conformance", k.Conformance)
		k.Test(t)
		return
	}
	t.Run("Encoding", k.Encoding)
	for _, name := range []string{"OddSchemaName", "DeadTransactions", "EndsBehindHeartbeats", "HeldRowHoldsNobodyUp", "TransactionsAboveReadCommitted", "LateCommit", "NilTx",
		"ChannelHeals", "CloseTells", "Closed", "Worker", "JournalBytes", "JournalHoles", "JournalCommits", "JournalRetries",
		"JournalOtherTx"} {
		t.Run(name, func(t *testing.T) { k.Case(t, name) })
	}
}

func BenchmarkPgdriver(b *testing.B) { overPgdriver.Benchmark(b) }

func BenchmarkPgx(b *testing.B) { overPgx.Benchmark(b) }

// listening makes Options.Listen.
type listening func(*sql.DB) func(context.Context, string) (bunstore.Listener, error)

func noListen(*sql.DB) func(context.Context, string) (bunstore.Listener, error) { return nil }

// dsn is the test database's; not every library goes on without TLS where there is none.
func dsn(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(pgtest.DSN(t))
	require.NoError(t, err, "a URL")
	q := u.Query()
	if q.Get("sslmode") == "" {
		q.Set("sslmode", "disable")
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func openPgdriver(t testing.TB) *bun.DB {
	t.Helper()
	return bunOn(sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(dsn(t)))))
}

func openSQL(t testing.TB, driver string) *bun.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn(t))
	require.NoError(t, err)
	return bunOn(db)
}

func bunOn(db *sql.DB) *bun.DB {
	db.SetMaxIdleConns(10) // what the tests use at once stays open
	return bun.NewDB(db, pgdialect.New())
}

func onPostgres(db *bun.DB, listen listening) (*pgstoretest.DB, error) {
	backend, err := pgstd.NewBackend(db.DB)
	if err != nil {
		return nil, err
	}
	return &pgstoretest.DB{
		Backend: backend,
		On: func(schema string, clock core.Clock) (pgstoretest.Store, error) {
			return bunstore.NewOn(pgstoretest.Lent{Backend: backend}, db,
				bunstore.Options{Schema: schema, Clock: clock, Listen: listen(db.DB)})
		},
		New: func(schema string) (pgstoretest.Store, error) {
			return bunstore.New(db, bunstore.Options{Schema: schema, Listen: listen(db.DB)})
		},
		Migrate: func(ctx context.Context, schema string) error {
			return bunstore.Migrate(ctx, db, bunstore.Options{Schema: schema})
		},
		Begin: func(ctx context.Context, s pgstoretest.Store, repeatable bool) (*pgstoretest.Tx, error) {
			level := sql.LevelReadCommitted
			if repeatable {
				level = sql.LevelRepeatableRead
			}
			tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
			if err != nil {
				return nil, err
			}
			return &pgstoretest.Tx{Own: tx, View: s.(*bunstore.Store).WithTx(tx), X: pgstd.In(tx.Tx), Commit: tx.Commit, Rollback: tx.Rollback}, nil
		},
		Nested: func(ctx context.Context, tx *pgstoretest.Tx, do func(*pgstoretest.Tx) error) error {
			return tx.Own.(bun.Tx).RunInTx(ctx, nil, func(_ context.Context, tx bun.Tx) error { return do(inBunTx(tx)) })
		},
		Journal: func(s pgstoretest.Store) journal.Store[*pgstoretest.Tx] {
			return pgstoretest.JournalOf(s.(*bunstore.Store).Journal(), inBunTx)
		},
		NilTx: func(s pgstoretest.Store) core.TxView { return s.(*bunstore.Store).WithTx(bun.Tx{}) },
		Close: db.Close,
	}, nil
}

func inBunTx(tx bun.Tx) *pgstoretest.Tx { return &pgstoretest.Tx{Own: tx, X: pgstd.In(tx.Tx)} }

// TestSecretsStayHidden: where the library reads a connection string only when it connects, no error shows it.
func TestSecretsStayHidden(t *testing.T) {
	const secret = "s3cret"
	for _, driver := range []string{"postgres", "pgx"} {
		for _, bad := range []string{"postgres://me:" + secret + "%et@host/", "postgres://me:" + secret + "@host:1x/", "host=x password='" + secret} {
			db, err := sql.Open(driver, bad)
			if err != nil { // pgx/stdlib reads it at once, perhaps
				require.NotContains(t, err.Error(), secret)
				continue
			}
			misread := bun.NewDB(db, pgdialect.New())
			_, err = bunstore.New(misread, bunstore.Options{})
			for _, err := range []error{err, bunstore.Migrate(t.Context(), misread, bunstore.Options{})} {
				var invalid *core.InvalidError
				require.ErrorAs(t, err, &invalid, "%s, %s", driver, bad)
				require.NotContains(t, err.Error(), secret)
			}
			require.NoError(t, db.Close())
		}
	}
}
