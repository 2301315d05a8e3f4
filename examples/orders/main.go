// Orders is a whole program with a journal: orders are placed and paid, a receipt goes out for each payment, and a table
// says what was sold. docs/journal.md walks through it.
//
//	go run ./examples/orders    # on SQLite, in orders.db; run it again and nothing happens twice
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/uptrace/bun"

	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/journal"
)

// Sale is the payload of both types of event.
type Sale struct {
	Item  string `json:"item"`
	Cents int    `json:"cents"`
}

// Order is what an order's events come to.
type Order struct {
	Sale
	Paid bool
}

var (
	orders = journal.NewEntity[Order]("order")
	placed = journal.Type(orders, "placed", func(o *Order, e journal.Event[Sale]) error {
		o.Sale = e.Payload
		return nil
	})
	paid = journal.Type(orders, "paid", func(o *Order, _ journal.Event[Sale]) error {
		o.Paid = true
		return nil
	})
)

// place records that an order was placed, once for its id.
func place[Tx any](ctx context.Context, j *journal.Journal[Tx], id string, s Sale) error {
	_, err := journal.Do(ctx, j, orders, id, func(_ context.Context, _ Tx, o journal.State[Order]) ([]journal.Draft, error) {
		if o.Exists() {
			return nil, nil
		}
		return []journal.Draft{placed.New(s)}, nil
	})
	return err
}

var errNoOrder = errors.New("there is no such order")

// pay decides on what the order is now. If somebody else records an event of it meanwhile, it decides again.
func pay[Tx any](ctx context.Context, j *journal.Journal[Tx], id string) error {
	_, err := journal.Do(ctx, j, orders, id, func(_ context.Context, _ Tx, o journal.State[Order]) ([]journal.Draft, error) {
		switch {
		case !o.Exists():
			return nil, errNoOrder // ends Do
		case o.Value.Paid:
			return nil, nil // nothing is recorded
		}
		return []journal.Draft{paid.New(o.Value.Sale)}, nil
	})
	return err
}

// mailer sends a receipt. It may be asked for one again, after a crash say, and then it is with the same key.
type mailer func(ctx context.Context, key, order string) error

// react declares what needs no SQL, and so runs on any store.
func react[Tx any](j *journal.Journal[Tx], mail mailer, live func(order string), opts ...journal.EffectOptions) error {
	return errors.Join(
		journal.On(j, "receipt", paid, func(ctx context.Context, e journal.Event[Sale], call journal.Call[Tx]) error {
			return mail(ctx, call.JobID, e.Key.ID) // an error is tried again
		}, opts...),
		journal.Tap(j, "live", paid, func(_ context.Context, e journal.Event[Sale]) error {
			live(e.Key.ID)
			return nil
		}),
	)
}

// sales keeps a table. It may add up, since it has each event exactly once.
func sales() *journal.Projection[bun.Tx] {
	p := journal.NewProjection[bun.Tx]("sales")
	journal.Apply(p, paid, func(ctx context.Context, tx bun.Tx, e journal.Event[Sale]) error {
		_, err := tx.ExecContext(ctx, `insert into sales (item, cents) values (?, ?)
			on conflict (item) do update set cents = sales.cents + excluded.cents`, e.Payload.Item, e.Payload.Cents)
		return err
	})
	return p
}

const createSales = `create table if not exists sales (item text primary key, cents bigint not null)`

func run(ctx context.Context, store *bunstore.Store, say *log.Logger) error {
	if _, err := store.DB().ExecContext(ctx, createSales); err != nil {
		return err
	}
	j, err := journal.New(store.Journal(), journal.Options{})
	if err != nil {
		return err
	}
	mail := func(_ context.Context, key, order string) error {
		say.Printf("receipt for %s, key %s", order, key)
		return nil
	}
	live := func(order string) { say.Printf("live: %s was paid", order) } // or not, if that was before the worker first looked
	if err := errors.Join(react(j, mail, live), j.Project(sales())); err != nil {
		return err
	}

	w, err := j.Worker(journal.WorkerOptions{})
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() {
		defer stop() // nobody waits for a worker that could not run
		worked <- w.Run(working)
	}()
	err = errors.Join(
		place(working, j, "o1", Sale{"tea", 500}),
		place(working, j, "o2", Sale{"tea", 700}),
		pay(working, j, "o1"),
		pay(working, j, "o1"),
		pay(working, j, "o2"),
	)
	if err == nil {
		err = j.WaitIdle(working) // the receipts are out and the table is complete; a service would go on instead
	}
	stop()
	if err := errors.Join(err, <-worked); err != nil {
		return err
	}

	var cents int
	if err := store.DB().NewSelect().Table("sales").Column("cents").Where("item = ?", "tea").Scan(ctx, &cents); err != nil {
		return err
	}
	say.Printf("sold tea for %d", cents)
	return nil
}

func main() {
	store, err := bunstore.OpenSQLite("orders.db")
	if err == nil {
		err = errors.Join(run(context.Background(), store, log.New(os.Stdout, "", 0)), store.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}
