package pgxstore_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
	"github.com/stintmq/stint/internal/pgtest"
	"github.com/stintmq/stint/journal"
)

// kit is shared by all tests, as the server is. The others send arguments in other ways: poolers ask for them.
var (
	kit       = kitIn(pgx.QueryExecModeCacheStatement)
	described = kitIn(pgx.QueryExecModeCacheDescribe)
	uncached  = kitIn(pgx.QueryExecModeDescribeExec)
	inferred  = kitIn(pgx.QueryExecModeExec)
	simple    = kitIn(pgx.QueryExecModeSimpleProtocol)
)

func kitIn(mode pgx.QueryExecMode) *pgstoretest.Kit {
	return pgstoretest.New(func(t testing.TB) (*pgstoretest.DB, error) { return connectIn(t, mode) })
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(pgstoretest.Main(m, kit, described, uncached, inferred, simple))
}

// TestExecModes: what an application asks pgx for is all the same to the store.
func TestExecModes(t *testing.T) {
	t.Run("cache_describe", described.Encoding)
	t.Run("describe_exec", uncached.Encoding)
	t.Run("exec", inferred.Encoding)
	t.Run("simple_protocol", simple.Encoding)
}

func TestConformance(t *testing.T) { kit.Conformance(t) }

func TestJournalConformance(t *testing.T) { kit.JournalConformance(t) }

func TestStore(t *testing.T) { kit.Test(t) }

func BenchmarkStore(b *testing.B) { kit.Benchmark(b) }

func connect(t testing.TB) (*pgstoretest.DB, error) {
	return connectIn(t, pgx.QueryExecModeCacheStatement)
}

func connectIn(t testing.TB, mode pgx.QueryExecMode) (*pgstoretest.DB, error) {
	return connectTo(pgtest.DSN(t), mode, pgxstore.Options{})
}

func connectTo(dsn string, mode pgx.QueryExecMode, opts pgxstore.Options) (*pgstoretest.DB, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.DefaultQueryExecMode = mode
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
			opts := opts
			opts.Schema, opts.Clock = schema, clock
			return pgxstore.NewOn(pgstoretest.Lent{Backend: backend}, pool, opts)
		},
		New: func(schema string) (pgstoretest.Store, error) {
			opts := opts
			opts.Schema = schema
			return pgxstore.New(pool, opts)
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
				Own: tx, View: s.(*pgxstore.Store).WithTx(tx), X: pgxstore.Executor(tx),
				Commit:   func() error { return tx.Commit(ctx) },
				Rollback: func() error { return tx.Rollback(ctx) },
			}, nil
		},
		Nested: func(ctx context.Context, tx *pgstoretest.Tx, do func(*pgstoretest.Tx) error) error {
			return pgx.BeginFunc(ctx, tx.Own.(pgx.Tx), func(tx pgx.Tx) error { return do(inTx(tx)) })
		},
		Journal: func(s pgstoretest.Store) journal.Store[*pgstoretest.Tx] {
			return pgstoretest.JournalOf(s.(*pgxstore.Store).Journal(), inTx)
		},
		NilTx: func(s pgstoretest.Store) core.TxView { return s.(*pgxstore.Store).WithTx(nil) },
		Close: func() error { pool.Close(); return nil },
	}, nil
}

// inTx is a transaction of the journal's.
func inTx(tx pgx.Tx) *pgstoretest.Tx { return &pgstoretest.Tx{Own: tx, X: pgxstore.Executor(tx)} }
