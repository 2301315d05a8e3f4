package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/stintmq/stint/core"
)

// Order is the payload of a job, and a row of the table orders.
type Order struct {
	ID       int64
	Item     string
	PlacedBy string // the shop
}

// Shipment is the job's result.
type Shipment struct{ ShippedBy string }

// shipOrder is the kind of work: its name, its payload and its result. Producers and workers share it.
var shipOrder = core.NewJob[Order, Shipment]("ship-order", core.JobOptions[Order]{
	Queue: "shipping",
	Key:   func(o Order) string { return strconv.FormatInt(o.ID, 10) }, // one job per order, ever
})

// shop is a store, and what it does with a database beside the jobs.
type shop interface {
	core.Store
	core.Inspector

	Name() string
	// Sell writes an order and its job, takes the payment, and commits. When pay fails nothing has happened.
	Sell(ctx context.Context, item string, pay func() error) (Order, error)
	// Ship writes the shipment, calls complete with the same transaction, and commits.
	Ship(ctx context.Context, o Order, complete func(core.TxView) error) error
	Close() error
}

var errDeclined = errors.New("the card was declined")

// The statements about orders, in the three shops' own words where these differ: $1 is Postgres's placeholder.
const (
	sqlOrders = `create table if not exists {}.orders (
		id bigint generated always as identity primary key, item text not null, placed_by text not null, shipped_by text)`
	sqlSell = `insert into {}.orders (item, placed_by) values ($1, $2) returning id`
	sqlShip = `update {}.orders set shipped_by = $1 where id = $2`
)

// in puts a schema's name into a statement.
func in(schema, statement string) string {
	return strings.ReplaceAll(statement, "{}", `"`+strings.ReplaceAll(schema, `"`, `""`)+`"`)
}
