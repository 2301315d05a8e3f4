package journal_test

import (
	"context"
	"errors"
	"fmt"

	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
)

// onMemory is a journal for an example.
func onMemory() *journal.Journal[*memstore.Transaction] {
	j, err := journal.New(memstore.New(memstore.Options{}).Journal(), journal.Options{})
	if err != nil {
		panic(err)
	}
	return j
}

// deposit records without a look at what is there.
func deposit[Tx any](j *journal.Journal[Tx], id string, cents ...int) (rec journal.Recorded) {
	err := j.InTx(context.Background(), func(ctx context.Context, tx Tx) (err error) {
		drafts := make([]journal.Draft, len(cents))
		for i, c := range cents {
			drafts[i] = deposited.New(money{c})
		}
		rec, err = j.Record(ctx, tx, accounts.Key(id), journal.AnyVersion, drafts...)
		return err
	})
	if err != nil {
		panic(err)
	}
	return rec
}

// Somebody else is quicker, and Do decides again on what is there then.
func ExampleDo() {
	j := onMemory()
	deposit(j, "ada", 100)
	calls := 0
	s, err := journal.Do(context.Background(), j, accounts, "ada", func(_ context.Context, _ *memstore.Transaction, s journal.State[account]) ([]journal.Draft, error) {
		calls++
		fmt.Println("call", calls, "at version", s.Version, "with", s.Value.Balance)
		if calls == 1 {
			deposit(j, "ada", 50) // in a transaction of its own, as another process would
		}
		return []journal.Draft{deposited.New(money{s.Value.Balance})}, nil // doubles it
	})
	fmt.Println("version", s.Version, "balance", s.Value.Balance, err)
	// Output:
	// call 1 at version 1 with 100
	// call 2 at version 2 with 150
	// version 3 balance 300 <nil>
}

// Who says what the events build on is told if it is not so. Nothing was written then, and the transaction goes on.
func ExampleJournal_Record() {
	j := onMemory()
	deposit(j, "ada", 100, 50)
	err := j.InTx(context.Background(), func(ctx context.Context, tx *memstore.Transaction) error {
		_, err := j.Record(ctx, tx, accounts.Key("ada"), journal.Version(1), deposited.New(money{25}))
		var conflict *journal.ConflictError
		if !errors.As(err, &conflict) {
			return err
		}
		fmt.Println(conflict)
		rec, err := j.Record(ctx, tx, accounts.Key("ada"), journal.Version(conflict.Have), deposited.New(money{25}))
		fmt.Println("now version", rec.Version)
		return err
	})
	fmt.Println(err)
	// Output:
	// journal: account:ada has version 2, expected version 1
	// now version 3
	// <nil>
}

// With snapshots a long history is folded from the last one on.
func ExampleEntityOptions() {
	folds := 0
	counters := journal.NewEntity[int]("counter", journal.EntityOptions{SnapshotEvery: 3})
	counted := journal.Type(counters, "counted", func(n *int, _ journal.Event[string]) error {
		folds++
		*n++
		return nil
	})
	j := onMemory()
	for range 10 {
		_, err := journal.Do(context.Background(), j, counters, "visits", func(context.Context, *memstore.Transaction, journal.State[int]) ([]journal.Draft, error) {
			return []journal.Draft{counted.New("")}, nil
		})
		if err != nil {
			panic(err)
		}
	}
	folds = 0
	s, err := journal.Read(context.Background(), j, counters, "visits")
	fmt.Println(s.Value, "visits, folded", folds, "of", s.Version, err)
	// Output:
	// 10 visits, folded 1 of 10 <nil>
}
