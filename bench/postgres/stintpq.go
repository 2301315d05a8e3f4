package postgres

import (
	"context"
	"database/sql"

	_ "github.com/lib/pq" // database/sql's name for it

	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
)

func openStintPQ(ctx context.Context, dsn string) (queue, error) {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	if err := pqstore.Migrate(ctx, db, ""); err != nil {
		return nil, err
	}
	store, err := pqstore.New(db, pqstore.Options{DSN: dsn})
	if err != nil {
		return nil, err
	}
	within := func(ctx context.Context, f func(core.TxView) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit it does nothing
		if err := f(store.WithTx(tx)); err != nil {
			return err
		}
		return tx.Commit()
	}
	return stint{store, core.NewTask[stintJob]("noop"), defaults(), within, db.Close}, nil
}
