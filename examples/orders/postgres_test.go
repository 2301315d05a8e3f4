package main

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx" of database/sql
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/drivers/bun/pgxlisten"
	"github.com/stintmq/stint/internal/pgtest"
)

// onPostgres calls do with a store on Postgres, whose tables it makes.
func onPostgres(ctx context.Context, dsn string, do func(*bunstore.Store) error) error {
	below, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	db := bun.NewDB(below, pgdialect.New())
	opts := bunstore.Options{Listen: pgxlisten.On(below)}
	err = bunstore.Migrate(ctx, db, opts)
	if err == nil {
		var store *bunstore.Store
		if store, err = bunstore.New(db, opts); err == nil {
			err = errors.Join(do(store), store.Close())
		}
	}
	return errors.Join(err, db.Close()) // the store does not close what is yours
}

// The same program on Postgres. The store's schema is always the same one, so the server is the test's own.
func TestRunOnPostgres(t *testing.T) {
	require.NoError(t, onPostgres(t.Context(), pgtest.Start(t).DSN(), func(store *bunstore.Store) error {
		runs(t, store, "receipt for o1, key journal/receipt:3\nreceipt for o2, key journal/receipt:4\nsold tea for 1200\n")
		return nil
	}))
}
