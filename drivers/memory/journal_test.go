package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
)

type account struct{ Balance int }

type amount struct{ Amount int }

var (
	accounts  = journal.NewEntity[account]("account")
	deposited = journal.Type(accounts, "deposited", func(a *account, e journal.Event[amount]) error {
		a.Balance += e.Payload.Amount
		return nil
	})
)

func TestJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{})
		j, err := journal.New(s.Journal(), journal.Options{})
		require.NoError(t, err)
		var mu sync.Mutex
		sums, taps, effects := map[string]int{}, 0, map[string]int{}
		p := journal.NewProjection[*memstore.Transaction]("balances")
		journal.Apply(p, deposited, func(_ context.Context, _ *memstore.Transaction, e journal.Event[amount]) error {
			mu.Lock()
			defer mu.Unlock()
			sums[e.Key.ID] += e.Payload.Amount
			return nil
		})
		require.NoError(t, j.Project(p))
		require.NoError(t, journal.Tap(j, "count", deposited, func(context.Context, journal.Event[amount]) error {
			mu.Lock()
			defer mu.Unlock()
			taps++
			return nil
		}))
		require.NoError(t, journal.On(j, "notify", deposited, func(_ context.Context, e journal.Event[amount], call journal.Call[*memstore.Transaction]) error {
			mu.Lock()
			defer mu.Unlock()
			effects[call.JobID]++
			if e.Seq%3 == 0 && call.Attempt == 1 {
				return errors.New("no answer")
			}
			return nil
		}))
		w, err := j.Worker(journal.WorkerOptions{Core: core.WorkerOptions{Concurrency: 4}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		const n = 50
		for i := range n {
			_, err := journal.Do(ctx, j, accounts, fmt.Sprint(i%3), func(_ context.Context, _ *memstore.Transaction, s journal.State[account]) ([]journal.Draft, error) {
				return []journal.Draft{deposited.New(amount{s.Value.Balance + 1})}, nil
			})
			require.NoError(t, err)
		}
		require.NoError(t, j.WaitFor(ctx, "balances", n))
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		require.Len(t, effects, n)
		require.Equal(t, n, taps)
		require.Len(t, sums, 3)
		mu.Unlock()
		cancel()
		require.NoError(t, <-done)
	})
}

// TestTransactMovesMoneyBetweenTwo: a lost race and a retryable error both begin again, a state goes on from RecordOn to
// RecordOn, and a snapshot is kept on the way.
func TestTransactMovesMoneyBetweenTwo(t *testing.T) {
	type amount struct{ Amount int }
	type account struct{ Balance int }
	accounts := journal.NewEntity[account]("account", journal.EntityOptions{SnapshotEvery: 4})
	folds := 0
	moved := journal.Type(accounts, "moved", func(a *account, e journal.Event[amount]) error {
		folds++
		a.Balance += e.Payload.Amount
		return nil
	})
	store := memstore.New(memstore.Options{})
	defer func() { require.NoError(t, store.Close()) }()
	j, err := journal.New(store.Journal(), journal.Options{})
	require.NoError(t, err)

	faults := []error{journal.ErrConflict, core.ErrRetryTx, nil}
	err = j.Transact(t.Context(), func(ctx context.Context, tx *memstore.Transaction) error {
		fault := faults[0]
		faults = faults[1:]
		for id, sign := range map[string]int{"a": 1, "b": -1} {
			s, err := journal.Load(ctx, j, tx, accounts, id)
			require.NoError(t, err)
			for i := range 5 {
				s, err = journal.RecordOn(ctx, j, tx, accounts, s, moved.New(amount{sign}))
				require.NoError(t, err)
				require.EqualValues(t, i+1, s.Version)
				require.Equal(t, sign*(i+1), s.Value.Balance)
			}
		}
		return fault
	})
	require.NoError(t, err)
	require.Empty(t, faults)

	folds = 0
	a, err := journal.Read(t.Context(), j, accounts, "a")
	require.NoError(t, err)
	require.Equal(t, 5, a.Value.Balance)
	require.Equal(t, 1, folds, "the snapshot of version 4 has the others")

	lost := 0
	err = j.Transact(t.Context(), func(ctx context.Context, tx *memstore.Transaction) error {
		lost++
		stale := journal.State[account]{Key: a.Key, Version: 1}
		_, err := journal.RecordOn(ctx, j, tx, accounts, stale, moved.New(amount{1}))
		return err
	}, journal.DoOptions{Attempts: 3})
	require.ErrorIs(t, err, journal.ErrConflict)
	require.Equal(t, 3, lost)

	for _, newest := range []bool{false, true} {
		sum, last := 0, int64(0)
		for row, err := range j.Log(t.Context(), journal.Filter{Kind: "account", Limit: 3, Newest: newest}) {
			require.NoError(t, err)
			require.True(t, last == 0 || newest == (row.Seq < last))
			last = row.Seq
			e, err := moved.Decode(row)
			require.NoError(t, err)
			sum += e.Payload.Amount * e.Payload.Amount
			row.Type = "other"
			_, err = moved.Decode(row)
			require.ErrorIs(t, err, journal.ErrUnknownType)
		}
		require.Equal(t, 10, sum)
	}
}

// TestCloseEndsWhoWaitsForTheJournal: the transaction that writes may never end now.
func TestCloseEndsWhoWaitsForTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{})
		log := s.Journal()
		_, _, err := log.LockCursor(t.Context(), s.Begin(), "writes", true)
		require.NoError(t, err)
		done := make(chan error, 2)
		for range cap(done) {
			go func() {
				_, _, err := log.LockCursor(t.Context(), s.Begin(), "waits", true)
				done <- err
			}()
		}
		synctest.Wait()
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		for range cap(done) {
			require.ErrorIs(t, <-done, core.ErrClosed)
		}
	})
}
