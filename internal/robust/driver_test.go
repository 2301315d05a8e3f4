package robust_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
)

// driver is how the tests reach a store.
type driver struct {
	name string
	open func(ctx context.Context, o openOptions) (*store, error)
	// migrate makes the schema.
	migrate func(ctx context.Context, at target, schema string) error
	// oneTrip are parameters of a DSN by which every statement is sent with its text, in one request.
	oneTrip map[string]string
	// commit is the request that commits, as it is sent: "commit" alone is in "read committed", too.
	commit string
}

type openOptions struct {
	at     target
	schema string
	conns  int // of the application's pool; 0: the driver's default
	// watch, if not nil, sees each statement's arguments.
	watch func(sql string, args []any)
}

// store is one handle, as one process has it.
type store struct {
	core.Store
	core.Inspector
	core.Admin
	// inTx runs do in a transaction of the application's own, and commits it unless do fails.
	inTx  func(ctx context.Context, do func(view core.TxView, exec execFunc) error) error
	close func() error
}

// execFunc runs a statement of the application's.
type execFunc = func(ctx context.Context, sql string, args ...any) error

// drivers are those that are tested.
func drivers() []driver { return []driver{pgxDriver()} }

// driverNamed finds the driver that a worker process is told of.
func driverNamed(name string) (driver, error) {
	for _, d := range drivers() {
		if d.name == name {
			return d, nil
		}
	}
	return driver{}, fmt.Errorf("no driver %q", name)
}

// eachDriver runs a test for each driver.
func eachDriver(t *testing.T, test func(t *testing.T, d driver)) {
	t.Helper()
	for _, d := range drivers() {
		t.Run(d.name, func(t *testing.T) { test(t, d) })
	}
}

func pgxDriver() driver {
	return driver{
		name:    "pgx",
		commit:  "commit\x00",
		oneTrip: map[string]string{"default_query_exec_mode": "exec"},
		open:    openPgx,
		migrate: func(ctx context.Context, at target, schema string) error {
			pool, err := pgxpool.New(ctx, at.dsn())
			if err != nil {
				return err
			}
			defer pool.Close()
			return pgxstore.Migrate(ctx, pool, schema)
		},
	}
}

func openPgx(ctx context.Context, o openOptions) (*store, error) {
	cfg, err := pgxpool.ParseConfig(o.at.dsn())
	if err != nil {
		return nil, err
	}
	if o.conns > 0 {
		cfg.MaxConns = int32(o.conns)
	}
	if o.watch != nil {
		cfg.ConnConfig.Tracer = tracer(o.watch)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s, err := pgxstore.New(pool, pgxstore.Options{Schema: o.schema})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &store{
		Store: s, Inspector: s, Admin: s,
		inTx: func(ctx context.Context, do func(core.TxView, execFunc) error) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				return do(s.WithTx(tx), func(ctx context.Context, sql string, args ...any) error {
					_, err := tx.Exec(ctx, sql, args...)
					return err
				})
			})
		},
		close: func() error {
			defer pool.Close()
			return s.Close()
		},
	}, nil
}

// tracer shows every statement of a connection.
type tracer func(sql string, args []any)

func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	t(q.SQL, q.Args)
	return ctx
}

func (t tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
