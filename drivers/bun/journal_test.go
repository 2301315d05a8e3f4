package bunstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	"github.com/stintmq/stint/internal/longlog"
	"github.com/stintmq/stint/journal"
)

type deposit struct{ Amount int }

var (
	accounts  = journal.NewEntity[deposit]("account", journal.EntityOptions{SnapshotEvery: 5})
	deposited = journal.Type(accounts, "deposited", func(a *deposit, e journal.Event[deposit]) error {
		a.Amount += e.Payload.Amount
		return nil
	})
)

// TestJournal: what an application does with bun, on SQLite and on Postgres.
func TestJournal(t *testing.T) {
	for name, start := range map[string]func() *bunstore.Store{
		"sqlite":   func() *bunstore.Store { return open(t) },
		"pgdriver": func() *bunstore.Store { return overPgdriver.Open(t, nil).(*bunstore.Store) },
	} {
		t.Run(name, func(t *testing.T) {
			s := start()
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			_, err := s.DB().ExecContext(ctx, "create table balances (account text primary key, amount integer)")
			require.NoError(t, err)
			defer func() { _, _ = s.DB().ExecContext(context.Background(), "drop table balances") }()
			j, err := journal.New(s.Journal(), journal.Options{})
			require.NoError(t, err)
			p := journal.NewProjection[bun.Tx]("balances")
			journal.Apply(p, deposited, func(ctx context.Context, tx bun.Tx, e journal.Event[deposit]) error {
				_, err := tx.ExecContext(ctx, "insert into balances values (?, ?) on conflict (account) do update set amount = balances.amount + excluded.amount",
					e.Key.ID, e.Payload.Amount)
				return err
			})
			require.NoError(t, j.Project(p))
			var mu sync.Mutex
			told := map[string]int{}
			require.NoError(t, journal.On(j, "tell", deposited, func(_ context.Context, _ journal.Event[deposit], call journal.Call[bun.Tx]) error {
				mu.Lock()
				defer mu.Unlock()
				told[call.JobID]++
				return nil
			}))
			w, err := j.Worker(journal.WorkerOptions{Poll: time.Minute})
			require.NoError(t, err)
			running, stop := context.WithCancel(ctx)
			done := make(chan error, 1)
			go func() { done <- w.Run(running) }()
			const n = 40
			errs := make(chan error, 4)
			for i := range 4 {
				go func() {
					for range n / 4 {
						_, err := journal.Do(ctx, j, accounts, fmt.Sprint(i%2), func(context.Context, bun.Tx, journal.State[deposit]) ([]journal.Draft, error) {
							return []journal.Draft{deposited.New(deposit{1})}, nil
						}, journal.DoOptions{Attempts: 100})
						if err != nil {
							errs <- err
							return
						}
					}
					errs <- nil
				}()
			}
			for range 4 {
				require.NoError(t, <-errs)
			}
			_, head, err := j.Cursors(ctx)
			require.NoError(t, err)
			require.NoError(t, j.WaitFor(ctx, "balances", head.Seq))
			var sum int
			require.NoError(t, s.DB().NewRaw("select sum(amount) from balances").Scan(ctx, &sum))
			require.Equal(t, n, sum)
			require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(told) == n }, 10*time.Second, 10*time.Millisecond)
			rolledBack := errors.New("rolled back")
			require.ErrorIs(t, j.InTx(ctx, func(ctx context.Context, tx bun.Tx) error {
				s, err := journal.Load(ctx, j, tx, accounts, "0")
				require.NoError(t, err)
				require.Equal(t, n/2, s.Value.Amount)
				_, err = j.Record(ctx, tx, accounts.Key("0"), journal.NoEntity, deposited.New(deposit{1}))
				require.ErrorIs(t, err, journal.ErrConflict)
				_, err = j.Record(ctx, tx, accounts.Key("0"), journal.Version(s.Version), deposited.New(deposit{1}))
				require.NoError(t, err)
				return rolledBack
			}), rolledBack)
			stop()
			require.NoError(t, <-done)
		})
	}
}

// TestLongEntity: Load keeps to its bounds, however long an entity's history is (J2).
func TestLongEntity(t *testing.T) {
	events, large := 20_000, 48
	if raceEnabled { // under which SQLite is some thirty times slower
		events, large = 2_000, 20
	}
	longlog.Test(t, open(t, bunstore.Options{Synchronous: "NORMAL"}).Journal(), events, large)
}

func BenchmarkLongEntity(b *testing.B) {
	longlog.Benchmark(b, open(b, bunstore.Options{Synchronous: "NORMAL"}).Journal())
}

// TestCloseEndsWhoWaitsForTheirTurn: Close waits for the transaction under way, and for nobody behind it.
func TestCloseEndsWhoWaitsForTheirTurn(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	began, wrote, waiting := make(chan struct{}), make(chan error, 1), make(chan error, 2)
	end := make(chan struct{})
	go func() {
		wrote <- s.Journal().InTx(ctx, func(context.Context, bun.Tx) error { close(began); <-end; return nil })
	}()
	<-began
	go func() { waiting <- s.Journal().InTx(ctx, func(context.Context, bun.Tx) error { return nil }) }()
	go func() {
		_, err := s.Enqueue(ctx, []core.EnqueueRequest{request("job")})
		waiting <- err
	}()
	require.Eventually(t, func() bool { return bunstore.Waiting(s) == cap(waiting) }, 10*time.Second, time.Millisecond)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	for range cap(waiting) {
		require.ErrorIs(t, <-waiting, core.ErrClosed)
	}
	select {
	case <-closed:
		require.Fail(t, "Close did not wait for the transaction")
	default:
	}
	close(end)
	require.NoError(t, <-wrote)
	require.NoError(t, <-closed)
}
