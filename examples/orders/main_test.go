package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
	"github.com/stintmq/stint/stinttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The whole program, and again on the same file.
func TestRun(t *testing.T) {
	store, err := bunstore.OpenSQLite(filepath.Join(t.TempDir(), "orders.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	runs(t, store, `receipt for o1, key journal/receipt:3
receipt for o2, key journal/receipt:4
sold tea for 1200
`)
	runs(t, store, "sold tea for 1200\n")
}

// runs holds what the program says against what it should. Taps may have missed the first events, and receipts are in no
// order.
func runs(t *testing.T, store *bunstore.Store, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var out strings.Builder
	require.NoError(t, run(ctx, store, log.New(&out, "", 0)))
	got := regexp.MustCompile(`(?m)^live: .*\n`).ReplaceAllString(out.String(), "")
	require.ElementsMatch(t, strings.Split(want, "\n"), strings.Split(got, "\n"))
	require.True(t, strings.HasSuffix(got, "sold tea for 1200\n"))
}

// letters is a mailer that fails the first time, and remembers keys.
type letters struct {
	mu   sync.Mutex
	keys []string
}

func (l *letters) mail(_ context.Context, key, _ string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys = append(l.keys, key); len(l.keys) == 1 {
		return errors.New("the mail server is busy")
	}
	return nil
}

// On memory, with a clock that the test moves.
func TestReceiptsOnMemory(t *testing.T) {
	k := stinttest.New(t)
	j, err := journal.New(k.Store.Journal(), journal.Options{})
	require.NoError(t, err)
	var out letters
	require.NoError(t, react(j, out.mail, func(string) {}))
	j.Handle(k.Worker) // the kit runs the effects

	require.NoError(t, place(t.Context(), j, "o1", Sale{"tea", 500}))
	require.NoError(t, pay(t.Context(), j, "o1"))
	require.ErrorIs(t, pay(t.Context(), j, "o2"), errNoOrder)
	ran := k.Drain()
	require.True(t, ran[0].Failed())
	k.Advance(2 * time.Second) // past the backoff, 1 s and up to 25 %
	require.Equal(t, []string{journal.JobID("receipt", 2), journal.JobID("receipt", 2)}, out.keys)

	o, err := journal.Read(t.Context(), j, orders, "o1")
	require.NoError(t, err)
	require.Equal(t, journal.State[Order]{Key: orders.Key("o1"), Version: 2, Value: Order{Sale{"tea", 500}, true}}, o)
}

// With SQL, on a file of its own.
func TestSales(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	store, err := bunstore.OpenSQLite(filepath.Join(t.TempDir(), "test.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	_, err = store.DB().ExecContext(ctx, createSales)
	require.NoError(t, err)
	j, err := journal.New(store.Journal(), journal.Options{})
	require.NoError(t, err)
	var out letters
	var live []string
	see := func(order string) { live = append(live, order) }
	require.NoError(t, react(j, out.mail, see, journal.EffectOptions{Backoff: core.Fixed(0)})) // due again at once
	require.NoError(t, j.Project(sales()))
	w, err := j.Worker(journal.WorkerOptions{})
	require.NoError(t, err)
	_, _, err = w.Drain(ctx, core.DrainOptions{}) // taps hear what is recorded from here on
	require.NoError(t, err)

	require.NoError(t, place(ctx, j, "o1", Sale{"tea", 500}))
	require.NoError(t, pay(ctx, j, "o1"))
	effects, events, err := w.Drain(ctx, core.DrainOptions{})
	require.NoError(t, err)
	require.Equal(t, 2, effects) // one failed, one repeated it
	require.Equal(t, 2, events)
	require.NoError(t, j.WaitIdle(ctx)) // nothing is left; else it waits for ctx to end, and says for what

	require.Equal(t, []string{"journal/receipt:2", "journal/receipt:2"}, out.keys)
	require.Equal(t, []string{"o1"}, live)
	var cents int
	require.NoError(t, store.DB().NewSelect().Table("sales").Column("cents").Scan(ctx, &cents))
	require.Equal(t, 500, cents)
}

// What the page says of Drain and taps: the first one begins, and hears nothing of before.
func TestTheFirstDrainTapsNothing(t *testing.T) {
	k := stinttest.New(t)
	j, err := journal.New(k.Store.Journal(), journal.Options{})
	require.NoError(t, err)
	heard := 0
	require.NoError(t, journal.Tap(j, "count", placed, func(context.Context, journal.Event[Sale]) error { heard++; return nil }))
	w, err := j.Worker(journal.WorkerOptions{})
	require.NoError(t, err)
	for i, want := range []int{0, 1, 2} {
		require.NoError(t, place(t.Context(), j, fmt.Sprint(i), Sale{"tea", 500}))
		_, _, err = w.Drain(t.Context(), core.DrainOptions{})
		require.NoError(t, err)
		require.Equal(t, want, heard)
	}
}

// What the page says of ordered effects on the kit: one that waits for another is not due for a moment.
func TestDrainLeavesAnOrderedEffectThatWaits(t *testing.T) {
	k := stinttest.New(t)
	j, err := journal.New(k.Store.Journal(), journal.Options{})
	require.NoError(t, err)
	items := journal.NewEntity[int]("item")
	sold := journal.Type[int](items, "sold", nil)
	var seen []int
	require.NoError(t, journal.On(j, "tell", sold, func(_ context.Context, e journal.Event[int], call journal.Call[*memstore.Transaction]) error {
		if e.Payload == 1 && call.Attempt == 1 {
			return errors.New("not yet")
		}
		seen = append(seen, e.Payload)
		return nil
	}, journal.EffectOptions{Ordered: true, Backoff: core.Fixed(0)}))
	j.Handle(k.Worker)
	require.NoError(t, j.InTx(t.Context(), func(ctx context.Context, tx *memstore.Transaction) error {
		_, err := j.Record(ctx, tx, items.Key("tea"), journal.NoEntity, sold.New(1), sold.New(2))
		return err
	}))
	k.Drain()
	require.Equal(t, []int{1}, seen)
	k.Advance(time.Second)
	require.Equal(t, []int{1, 2}, seen)
}
