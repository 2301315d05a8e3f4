package pgxstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
)

const (
	startTimeout   = 30 * time.Second
	migratePause   = 500 * time.Millisecond // between two tries to get a lock
	migrateTimeout = 5 * time.Minute
)

// Migrate makes the tables in a schema ("": DefaultSchema), or brings them up to date. It may be repeated, and run
// from several processes at once. A lock that others hold is waited for for a second at a time, so that no
// heartbeat queues behind a migration that does; after five minutes it gives up.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	if schema == "" {
		schema = DefaultSchema
	}
	if err := pgsql.ValidateSchema(schema); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	sc := pgsql.NewSchema(schema)
	for {
		err := migrateOnce(ctx, pool, sc)
		if !pgsql.WaitedTooLong(err) {
			return pgsql.Fault(ctx, err, true)
		}
		pause := time.NewTimer(migratePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return pgsql.Fault(ctx, err, false)
		}
	}
}

func migrateOnce(ctx context.Context, pool *pgxpool.Pool, schema *pgsql.Schema) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		return schema.Migrate(ctx, executor{tx}, func(ctx context.Context, sql string) error {
			return tx.Conn().PgConn().Exec(ctx, sql).Close()
		})
	})
}

// check looks at the schema's version.
func check(ctx context.Context, pool *pgxpool.Pool, schema *pgsql.Schema) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	defer conn.Release()
	return pgsql.Fault(ctx, schema.CheckSchema(ctx, executor{conn}), false)
}
