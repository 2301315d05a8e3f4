package pqstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/stdsql"
)

const (
	startTimeout   = 30 * time.Second
	migratePause   = 500 * time.Millisecond // between two tries to get a lock
	migrateTimeout = 5 * time.Minute
)

// Migrate makes the tables in a schema ("": DefaultSchema), or brings them up to date. It may be repeated, and run
// from several processes at once. A lock that others hold is waited for for a second at a time, so that no
// heartbeat queues behind a migration that does; after five minutes it gives up.
func Migrate(ctx context.Context, db *sql.DB, schema string) error {
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
		err := migrateOnce(ctx, db, sc)
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

func migrateOnce(ctx context.Context, db *sql.DB, schema *pgsql.Schema) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	err = schema.Migrate(ctx, arrays{stdsql.In(tx)}, func(ctx context.Context, sql string) error {
		_, err := tx.ExecContext(ctx, sql) // without arguments: several statements
		return err
	})
	if err != nil {
		_ = tx.Rollback() // the error says more
		return err
	}
	return tx.Commit()
}

// check looks at the schema's version.
func check(ctx context.Context, db *sql.DB, schema *pgsql.Schema) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	defer func() { _ = conn.Close() }() // an error says that it was closed already
	return pgsql.Fault(ctx, schema.CheckSchema(ctx, arrays{stdsql.On(conn)}), false)
}
