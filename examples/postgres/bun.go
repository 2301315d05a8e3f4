package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/drivers/bun/pgxlisten"
)

// bunShop works with a *bun.DB and bun.Tx, and with models.
type bunShop struct {
	*bunstore.Store
	db    *bun.DB
	table string
}

// row is an order as bun writes it.
type row struct {
	bun.BaseModel `bun:"table:orders,alias:o"`

	ID        int64  `bun:",pk,autoincrement"`
	Item      string `bun:",notnull"`
	PlacedBy  string `bun:",notnull"`
	ShippedBy string `bun:",nullzero"`
}

func openBun(ctx context.Context, cfg config) (shop, error) {
	at, err := pgx.ParseConfig(cfg.dsn)
	if err != nil {
		return nil, errDSN
	}
	// Over pgdriver the store listens without further ado; over pgx/stdlib, as here, pgxlisten does.
	s := &bunShop{db: bun.NewDB(stdlib.OpenDB(*at), pgdialect.New()), table: in(cfg.schema, "{}.orders")}
	opts := bunstore.Options{Schema: cfg.schema, Listen: pgxlisten.On(s.db.DB)}
	if err = bunstore.Migrate(ctx, s.db, opts); err == nil {
		s.Store, err = bunstore.New(s.db, opts)
	}
	if err == nil {
		_, err = s.db.ExecContext(ctx, in(cfg.schema, sqlOrders))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *bunShop) Name() string { return "bun" }

func (s *bunShop) Sell(ctx context.Context, item string, pay func() error) (Order, error) {
	r := &row{Item: item, PlacedBy: s.Name()}
	err := s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewInsert().Model(r).ModelTableExpr(s.table + " AS o").Returning("id").Exec(ctx); err != nil {
			return err
		}
		// The same transaction.
		if _, err := shipOrder.Enqueue(ctx, s.WithTx(tx), Order{r.ID, r.Item, r.PlacedBy}); err != nil {
			return err
		}
		return pay()
	})
	return Order{r.ID, r.Item, r.PlacedBy}, err
}

func (s *bunShop) Ship(ctx context.Context, o Order, complete func(core.TxView) error) error {
	return s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewUpdate().Model((*row)(nil)).ModelTableExpr(s.table+" AS o").
			Set("shipped_by = ?", s.Name()).Where("o.id = ?", o.ID).Exec(ctx)
		if err != nil {
			return err
		}
		return complete(s.WithTx(tx))
	})
}

func (s *bunShop) Close() (err error) {
	if s.Store != nil {
		err = s.Store.Close() // before the *bun.DB below it
	}
	return errors.Join(err, s.db.Close())
}
