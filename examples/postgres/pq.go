package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lib/pq"

	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
)

// pqShop works with a *sql.DB and *sql.Tx.
type pqShop struct {
	*pqstore.Store
	db     *sql.DB
	schema string
}

func openPq(ctx context.Context, cfg config) (shop, error) {
	connector, err := pq.NewConnector(cfg.dsn)
	if err != nil {
		return nil, errDSN
	}
	s := &pqShop{db: sql.OpenDB(connector), schema: cfg.schema}
	if err = noTLS(pqstore.Migrate(ctx, s.db, cfg.schema)); err == nil {
		// The DSN is for the connection that listens for the work of other processes.
		s.Store, err = pqstore.New(s.db, pqstore.Options{Schema: cfg.schema, DSN: cfg.dsn})
	}
	if err == nil {
		_, err = s.db.ExecContext(ctx, in(cfg.schema, sqlOrders))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// noTLS says what to do about a server without TLS, for which lib/pq asks unless it is told otherwise.
func noTLS(err error) error {
	if errors.Is(err, pq.ErrSSLNotSupported) {
		return fmt.Errorf("%w; if that is meant to be so, add sslmode=disable to the connection string", err)
	}
	return err
}

func (s *pqShop) Name() string { return "pq" }

func (s *pqShop) Sell(ctx context.Context, item string, pay func() error) (Order, error) {
	o := Order{Item: item, PlacedBy: s.Name()}
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, in(s.schema, sqlSell), o.Item, o.PlacedBy).Scan(&o.ID); err != nil {
			return err
		}
		if _, err := shipOrder.Enqueue(ctx, s.WithTx(tx), o); err != nil { // the same transaction
			return err
		}
		return pay()
	})
	return o, err
}

func (s *pqShop) Ship(ctx context.Context, o Order, complete func(core.TxView) error) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, in(s.schema, sqlShip), s.Name(), o.ID); err != nil {
			return err
		}
		return complete(s.WithTx(tx))
	})
}

// inTx commits what f did, or undoes it if f fails.
func (s *pqShop) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (s *pqShop) Close() (err error) {
	if s.Store != nil {
		err = s.Store.Close() // before the *sql.DB below it
	}
	return errors.Join(err, s.db.Close())
}
