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
