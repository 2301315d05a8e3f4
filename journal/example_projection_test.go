package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/journal"
)

// onSQLite opens a store in a folder of its own, with a table of balances, and later removes it.
func onSQLite(tables ...string) (store *bunstore.Store, remove func()) {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		panic(err)
	}
	if store, err = bunstore.OpenSQLite(filepath.Join(dir, "example.db")); err != nil {
		panic(err)
	}
	for _, table := range tables {
		if _, err := store.DB().Exec("create table ? (account text primary key, cents integer not null)", bun.Ident(table)); err != nil {
			panic(err)
		}
	}
	return store, func() {
		if err := errors.Join(store.Close(), os.RemoveAll(dir)); err != nil {
			panic(err)
		}
	}
}

// journalOf is a journal that declares projections.
func journalOf(store *bunstore.Store, projections ...*journal.Projection[bun.Tx]) *journal.Journal[bun.Tx] {
	j, err := journal.New(store.Journal(), journal.Options{})
	if err != nil {
		panic(err)
	}
	for _, p := range projections {
		if err := j.Project(p); err != nil {
			panic(err)
		}
	}
	return j
}

// add adds to a balance in the transaction of whoever applies.
func add(ctx context.Context, tx bun.Tx, table string, e journal.Event[money]) error {
	_, err := tx.ExecContext(ctx, "insert into ? values (?, ?) on conflict (account) do update set cents = cents + excluded.cents",
		bun.Ident(table), e.Key.ID, e.Payload.Cents)
	return err
}

// balance is what a table says of ada.
func balance(store *bunstore.Store, table string) (cents int) {
	err := store.DB().NewSelect().Table(table).ColumnExpr("coalesce(sum(cents), 0)").Where("account = 'ada'").Scan(context.Background(), &cents)
	if err != nil {
		panic(err)
	}
	return cents
}

// A projection keeps a table. It follows, and WaitFor waits until it has seen what was just recorded.
func ExampleApply() {
	store, remove := onSQLite("balances")
	defer remove()
	p := journal.NewProjection[bun.Tx]("balances")
	journal.Apply(p, deposited, func(ctx context.Context, tx bun.Tx, e journal.Event[money]) error {
		_, err := tx.ExecContext(ctx, "insert into balances values (?, ?) on conflict (account) do update set cents = cents + excluded.cents",
			e.Key.ID, e.Payload.Cents)
		return err
	})
	j := journalOf(store, p)
	w, err := j.Worker(journal.WorkerOptions{})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()

	rec := deposit(j, "ada", 100, 50)
	fmt.Println(j.WaitFor(ctx, "balances", rec.Last()))
	fmt.Println("ada has", balance(store, "balances"))
	stop()
	fmt.Println(<-done)
	// Output:
	// <nil>
	// ada has 150
	// <nil>
}

// An inline projection is part of the transaction that records: no worker, no lag, and its error refuses the events.
func ExampleProjectionOptions_inline() {
	store, remove := onSQLite("balances")
	defer remove()
	p := journal.NewProjection[bun.Tx]("balances", journal.ProjectionOptions{Inline: true})
	journal.Apply(p, deposited, func(ctx context.Context, tx bun.Tx, e journal.Event[money]) error {
		if e.Payload.Cents > 1000 {
			return errors.New("too much")
		}
		return add(ctx, tx, "balances", e)
	})
	j := journalOf(store, p)
	deposit(j, "ada", 100)
	fmt.Println("ada has", balance(store, "balances"))

	_, err := journal.Do(context.Background(), j, accounts, "ada", func(context.Context, bun.Tx, journal.State[account]) ([]journal.Draft, error) {
		return []journal.Draft{deposited.New(money{5000})}, nil
	})
	fmt.Println(err)
	s, err := journal.Read(context.Background(), j, accounts, "ada")
	fmt.Println("version", s.Version, err)
	// Output:
	// ada has 100
	// journal: projection balances@1: event 2: too much
	// version 1 <nil>
}

// A release that counts otherwise has a new version, with a table of its own. It begins with the first event, beside the
// old one, which other processes go on with.
func ExampleProjectionOptions_version() {
	ctx := context.Background()
	store, remove := onSQLite("balances_1", "balances_2")
	defer remove()
	one := journal.NewProjection[bun.Tx]("balances")
	journal.Apply(one, deposited, func(ctx context.Context, tx bun.Tx, e journal.Event[money]) error {
		return add(ctx, tx, "balances_1", e)
	})
	two := journal.NewProjection[bun.Tx]("balances", journal.ProjectionOptions{Version: 2})
	journal.Apply(two, deposited, func(ctx context.Context, tx bun.Tx, e journal.Event[money]) error {
		e.Payload.Cents -= 3 // a fee
		return add(ctx, tx, "balances_2", e)
	})
	running, next := journalOf(store, one), journalOf(store, two)
	follow := func(j *journal.Journal[bun.Tx]) {
		if _, err := j.CatchUp(ctx); err != nil {
			panic(err)
		}
	}
	show := func() {
		declared, _, err := next.Cursors(ctx) // version 1 is not among them
		for _, s := range declared {
			fmt.Println(s.Name, s.Version, "is behind by", s.Lag, err)
		}
	}
	deposit(running, "ada", 100, 50)
	follow(running)
	show()
	follow(next)
	show()
	fmt.Println("ada has", balance(store, "balances_1"), "and", balance(store, "balances_2"))
	// Output:
	// balances 2 is behind by 2 <nil>
	// balances 2 is behind by 0 <nil>
	// ada has 150 and 144
}

// Reset empties a table and has the projection begin again, in one transaction.
func ExampleJournal_Reset() {
	ctx := context.Background()
	store, remove := onSQLite("balances")
	defer remove()
	p := journal.NewProjection[bun.Tx]("balances")
	journal.Apply(p, deposited, func(ctx context.Context, tx bun.Tx, e journal.Event[money]) error {
		return add(ctx, tx, "balances", e)
	})
	j := journalOf(store, p)
	w, err := j.Worker(journal.WorkerOptions{})
	if err != nil {
		panic(err)
	}
	follow := func() {
		_, events, err := w.Drain(ctx, core.DrainOptions{})
		fmt.Println("followed", events, "events, ada has", balance(store, "balances"), err)
	}
	deposit(j, "ada", 100, 50)
	follow()
	if _, err := store.DB().Exec("update balances set cents = 7"); err != nil { // a mishap
		panic(err)
	}
	err = j.Reset(ctx, "balances", func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.ExecContext(ctx, "delete from balances")
		return err
	})
	fmt.Println(err)
	follow()
	// Output:
	// followed 2 events, ada has 150 <nil>
	// <nil>
	// followed 2 events, ada has 150 <nil>
}
