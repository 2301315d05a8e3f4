package pgxstore_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
	"github.com/stintmq/stint/internal/pgtest"
)

// kit is shared by all tests, as the server is.
var kit = pgstoretest.New(connect)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgstoretest.Main(m, kit)) }

func TestConformance(t *testing.T) { kit.Conformance(t) }

func TestStore(t *testing.T) { kit.Test(t) }

func BenchmarkStore(b *testing.B) { kit.Benchmark(b) }

func connect(t testing.TB) (*pgstoretest.DB, error) {
	cfg, err := pgxpool.ParseConfig(pgtest.DSN(t))
	if err != nil {
		return nil, err
	}
	switch os.Getenv("MODE") {
	case "describe":
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	case "describe_exec":
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	case "exec":
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	case "simple":
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	backend, err := pgxstore.NewBackend(pool)
	if err != nil {
		return nil, err
	}
	return &pgstoretest.DB{
		Backend: backend,
		On: func(schema string, clock core.Clock) (pgstoretest.Store, error) {
			return pgxstore.NewOn(pgstoretest.Lent{Backend: backend}, pool, pgxstore.Options{Schema: schema, Clock: clock})
		},
		New: func(schema string) (pgstoretest.Store, error) {
			return pgxstore.New(pool, pgxstore.Options{Schema: schema})
		},
		Migrate: func(ctx context.Context, schema string) error { return pgxstore.Migrate(ctx, pool, schema) },
		Begin: func(ctx context.Context, s pgstoretest.Store, repeatable bool) (*pgstoretest.Tx, error) {
			level := pgx.ReadCommitted
			if repeatable {
				level = pgx.RepeatableRead
			}
			tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
			if err != nil {
				return nil, err
			}
			return &pgstoretest.Tx{
				View: s.(*pgxstore.Store).WithTx(tx), X: pgxstore.Executor(tx),
				Commit:   func() error { return tx.Commit(ctx) },
				Rollback: func() error { return tx.Rollback(ctx) },
			}, nil
		},
		NilTx: func(s pgstoretest.Store) core.TxView { return s.(*pgxstore.Store).WithTx(nil) },
		Close: func() error { pool.Close(); return nil },
	}, nil
}
