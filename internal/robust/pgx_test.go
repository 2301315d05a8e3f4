package robust_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
)

func pgxDriver() driver {
	return driver{
		name:    "pgx",
		commit:  "commit\x00",
		refuses: []string{"client_encoding to 'LATIN1'"},
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
		Store: s, Inspector: s, Admin: s, Scheduler: s,
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
