package pgxstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/journal"
)

type amount struct{ Amount int }

var (
	accounts  = journal.NewEntity[amount]("account")
	deposited = journal.Type(accounts, "deposited", func(a *amount, e journal.Event[amount]) error {
		a.Amount += e.Payload.Amount
		return nil
	})
)

// openJournal returns a journal on a store of its own, and the store.
func openJournal(t testing.TB, s *pgxstore.Store) *journal.Journal[pgx.Tx] {
	t.Helper()
	j, err := journal.New(s.Journal(), journal.Options{})
	require.NoError(t, err)
	return j
}

// TestSettledHorizon: under transactions that overlap, of which one in seven rolls back and some are open for long, two
// projections on two handles have every event once, in the order of seqs, and each entity's in that of its versions (J7,
// J9).
func TestSettledHorizon(t *testing.T) {
	events := 2000
	if os.Getenv("STINT_TEST_JOURNAL") == "full" {
		events = 20_000
	}
	s := kit.Open(t, nil).(*pgxstore.Store)
	other := kit.OpenAt(t, kit.SchemaOf(s), nil).(*pgxstore.Store)
	type seen struct {
		mu       sync.Mutex
		seqs     []int64
		versions map[string]int64
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	readers := make([]*seen, 2)
	var workers sync.WaitGroup
	running, stop := context.WithCancel(ctx)
	defer workers.Wait()
	defer stop()
	for i, store := range []*pgxstore.Store{s, other} {
		j := openJournal(t, store)
		readers[i] = &seen{versions: map[string]int64{}}
		p := journal.NewProjection[pgx.Tx]("reader" + strconv.Itoa(i))
		journal.Apply(p, deposited, func(_ context.Context, _ pgx.Tx, e journal.Event[amount]) error {
			r := readers[i]
			r.mu.Lock()
			defer r.mu.Unlock()
			r.seqs = append(r.seqs, e.Seq)
			if e.Version != r.versions[e.Key.ID]+1 {
				return fmt.Errorf("%s: version %d after %d", e.Key, e.Version, r.versions[e.Key.ID])
			}
			r.versions[e.Key.ID] = e.Version
			return nil
		})
		require.NoError(t, j.Project(p))
		w, err := j.Worker(journal.WorkerOptions{Poll: 20 * time.Millisecond})
		require.NoError(t, err)
		workers.Go(func() { _ = w.Run(running) })
	}
	j := openJournal(t, s)
	var writers sync.WaitGroup
	var mu sync.Mutex
	recorded := map[int64]bool{}
	store := s.Journal()
	for w := range 12 {
		writers.Go(func() {
			for range events / 12 {
				var rec journal.Recorded
				rollback := errors.New("rolled back")
				err := store.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
					if w%3 == 0 { // an old transaction id
						if err := store.PutNote(ctx, tx, journal.Note{Space: "app", Key: strconv.Itoa(w), Value: nil}); err != nil {
							return err
						}
					}
					key := accounts.Key(strconv.Itoa(rand.N(5)))
					var err error
					if rec, err = j.Record(ctx, tx, key, journal.AnyVersion, deposited.New(amount{1})); err != nil {
						return err
					}
					if rand.N(20) == 0 {
						if _, err := tx.Exec(ctx, "select pg_sleep(0.01)"); err != nil {
							return err
						}
					}
					if rand.N(7) == 0 {
						return rollback
					}
					return nil
				})
				switch {
				case err == nil:
					mu.Lock()
					recorded[rec.Seqs[0]] = true
					mu.Unlock()
				case !errors.Is(err, rollback) && !errors.Is(err, core.ErrRetryTx):
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	var last int64
	for seq := range recorded {
		last = max(last, seq)
	}
	for i, r := range readers {
		jr := j
		if i == 1 {
			jr = openJournal(t, other)
		}
		p := journal.NewProjection[pgx.Tx]("reader" + strconv.Itoa(i))
		journal.Apply(p, deposited, func(context.Context, pgx.Tx, journal.Event[amount]) error { return nil })
		require.NoError(t, jr.Project(p))
		if err := jr.WaitFor(ctx, "reader"+strconv.Itoa(i), last); err != nil {
			c, head, cerr := jr.Cursors(context.Background())
			t.Fatalf("%v: %+v %+v %v", err, c, head, cerr)
		}
		r.mu.Lock()
		got := map[int64]bool{}
		for n, seq := range r.seqs {
			require.False(t, got[seq], "seq %d twice", seq)
			require.True(t, n == 0 || seq > r.seqs[n-1])
			got[seq] = true
		}
		require.Equal(t, recorded, got)
		r.mu.Unlock()
	}
	t.Logf("%d events, %d holes", len(recorded), int(last)-len(recorded))
}
