package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
)

// pgxShop works with a *pgxpool.Pool and pgx.Tx.
type pgxShop struct {
	*pgxstore.Store
	pool   *pgxpool.Pool
	schema string
}

func openPgx(ctx context.Context, cfg config) (shop, error) {
	pool, err := pgxpool.New(ctx, cfg.dsn)
	if err != nil {
		return nil, errDSN
	}
	s := &pgxShop{pool: pool, schema: cfg.schema}
	if err = pgxstore.Migrate(ctx, pool, cfg.schema); err == nil {
		s.Store, err = pgxstore.New(pool, pgxstore.Options{Schema: cfg.schema})
	}
	if err == nil {
		_, err = pool.Exec(ctx, in(cfg.schema, sqlOrders)) // a table of the application's own
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *pgxShop) Name() string { return "pgx" }

func (s *pgxShop) Sell(ctx context.Context, item string, pay func() error) (Order, error) {
	o := Order{Item: item, PlacedBy: s.Name()}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, in(s.schema, sqlSell), o.Item, o.PlacedBy).Scan(&o.ID); err != nil {
			return err
		}
		if _, err := shipOrder.Enqueue(ctx, s.WithTx(tx), o); err != nil { // the same transaction
			return err
		}
		return pay()
	})
	return o, err
}

func (s *pgxShop) Ship(ctx context.Context, o Order, complete func(core.TxView) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, in(s.schema, sqlShip), s.Name(), o.ID); err != nil {
			return err
		}
		return complete(s.WithTx(tx))
	})
}

func (s *pgxShop) Close() (err error) {
	if s.Store != nil {
		err = s.Store.Close() // before the pool below it
	}
	s.pool.Close()
	return err
}
