package pqstore_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
	"github.com/stintmq/stint/internal/pgstore/pgstd"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
	"github.com/stintmq/stint/internal/pgtest"
	"github.com/stintmq/stint/journal"
)

// kit is shared by all tests, as the server is; binary sends arguments in binary form where pq can.
var (
	kit    = pgstoretest.New(func(t testing.TB) (*pgstoretest.DB, error) { return connect(dsn(t, "", "")) })
	binary = pgstoretest.New(func(t testing.TB) (*pgstoretest.DB, error) { return connect(dsn(t, "binary_parameters", "yes")) })
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgstoretest.Main(m, kit, binary)) }

func TestConformance(t *testing.T) { kit.Conformance(t) }

func TestJournalConformance(t *testing.T) { kit.JournalConformance(t) }

// TestBinary: what pq sends and reads in binary form means the same. STINT_TEST_PQ=full runs the whole suite.
func TestBinary(t *testing.T) {
	if os.Getenv("STINT_TEST_PQ") == "full" {
		binary.Conformance(t)
		return
	}
	binary.Encoding(t)
}

func TestStore(t *testing.T) { kit.Test(t) }

func BenchmarkStore(b *testing.B) { kit.Benchmark(b) }

// dsn is the test database's, with one more option ("": none).
func dsn(t testing.TB, option, value string) string {
	t.Helper()
	u, err := url.Parse(pgtest.DSN(t))
	require.NoError(t, err, "a URL")
	q := u.Query()
	if q.Get("sslmode") == "" {
		q.Set("sslmode", "prefer")
	}
	if option != "" {
		q.Set(option, value)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func connect(dsn string) (*pgstoretest.DB, error) {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(10) // what the tests use at once stays open
	backend, err := pgstd.NewBackend(db)
	if err != nil {
		return nil, err
	}
	return &pgstoretest.DB{
		Backend: backend,
		On: func(schema string, clock core.Clock) (pgstoretest.Store, error) {
			return pqstore.NewOn(pgstoretest.Lent{Backend: backend}, db, pqstore.Options{DSN: dsn, Schema: schema, Clock: clock})
		},
		New: func(schema string) (pgstoretest.Store, error) {
			return pqstore.New(db, pqstore.Options{DSN: dsn, Schema: schema})
		},
		Migrate: func(ctx context.Context, schema string) error { return pqstore.Migrate(ctx, db, schema) },
		Begin: func(ctx context.Context, s pgstoretest.Store, repeatable bool) (*pgstoretest.Tx, error) {
			level := sql.LevelReadCommitted
			if repeatable {
				level = sql.LevelRepeatableRead
			}
			tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
			if err != nil {
				return nil, err
			}
			return &pgstoretest.Tx{Own: tx, View: s.(*pqstore.Store).WithTx(tx), X: pgstd.In(tx), Commit: tx.Commit, Rollback: tx.Rollback}, nil
		},
		Nested: nested,
		Journal: func(s pgstoretest.Store) journal.Store[*pgstoretest.Tx] {
			return pgstoretest.JournalOf(s.(*pqstore.Store).Journal(), func(tx *sql.Tx) *pgstoretest.Tx {
				return &pgstoretest.Tx{Own: tx, X: pgstd.In(tx)}
			})
		},
		NilTx: func(s pgstoretest.Store) core.TxView { return s.(*pqstore.Store).WithTx(nil) },
		Close: db.Close,
	}, nil
}

// nested is by statements: database/sql knows no savepoints.
func nested(ctx context.Context, tx *pgstoretest.Tx, do func(*pgstoretest.Tx) error) error {
	if _, err := tx.X.Exec(ctx, "savepoint nested"); err != nil {
		return err
	}
	err := do(tx)
	if err != nil {
		_, undone := tx.X.Exec(ctx, "rollback to savepoint nested")
		return errors.Join(err, undone)
	}
	_, err = tx.X.Exec(ctx, "release savepoint nested")
	return err
}
