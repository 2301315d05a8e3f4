// Package longlog tests entities with very many events, and large ones. For tests only.
package longlog

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/journal"
)

// What a Load may cost: memory however many events there are, and time where there is a snapshot (J2).
const (
	maxHeap = 64 << 20
	maxTime = 50 * time.Millisecond
)

const every = 1000 // events per snapshot

type said struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

type state struct{ Events, Sum int }

// kind is an entity whose folds are counted, and look at memory.
type kind struct {
	entity *journal.Entity[state]
	said   journal.Ref[said]
	folds  int
	peak   uint64
}

func declare(opts ...journal.EntityOptions) *kind {
	k := &kind{entity: journal.NewEntity[state]("long", opts...)}
	k.said = journal.Type(k.entity, "said", func(s *state, e journal.Event[said]) error {
		s.Events++
		s.Sum += e.Payload.N
		if k.folds++; k.folds%100 == 0 || len(e.Payload.Text) > 1000 {
			k.peak = max(k.peak, heap())
		}
		return nil
	})
	return k
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// fill records events of some bytes each.
func fill[Tx any](tb testing.TB, j *journal.Journal[Tx], id string, events, bytes int) *kind {
	tb.Helper()
	k := declare()
	text := strings.Repeat("x", bytes)
	for n, one := 0, 0; n < events; n += one {
		one = min(every, events-n, 8<<20/bytes)
		drafts := make([]journal.Draft, one)
		for i := range drafts {
			drafts[i] = k.said.New(said{1, text})
		}
		require.NoError(tb, j.InTx(tb.Context(), func(ctx context.Context, tx Tx) error {
			_, err := j.Record(ctx, tx, k.entity.Key(id), journal.Version(int64(n)), drafts...)
			return err
		}))
	}
	return k
}

// Test has a long entity of so many events, or 1,000,000 with STINT_TEST_JOURNAL=full, and one of so many events of 1 MB.
func Test[Tx any](t *testing.T, store journal.Store[Tx], events, large int) {
	t.Helper()
	j, err := journal.New(store, journal.Options{})
	require.NoError(t, err)
	full := os.Getenv("STINT_TEST_JOURNAL") == "full"
	if full {
		events = 1_000_000
	}
	for id, size := range map[string][2]int{"many": {events, 100}, "large": {large, 1000_000}} {
		began := time.Now()
		k := fill(t, j, id, size[0], size[1])
		wrote := time.Since(began)
		runtime.GC()
		before := heap()
		began = time.Now()
		s, err := journal.Read(t.Context(), j, k.entity, id)
		require.NoError(t, err)
		require.Equal(t, state{size[0], size[0]}, s.Value)
		used := k.peak - min(before, k.peak)
		t.Logf("%d events of %d bytes: recorded in %v, loaded in %v with %.1f MiB of heap", size[0], size[1],
			wrote.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), float64(used)/(1<<20))
		require.Less(t, used, uint64(maxHeap), "bytes of heap for %d events of %d bytes", size[0], size[1])
	}

	k := declare(journal.EntityOptions{SnapshotEvery: every})
	do := func() {
		_, err := journal.Do(t.Context(), j, k.entity, "many", func(context.Context, Tx, journal.State[state]) ([]journal.Draft, error) {
			return []journal.Draft{k.said.New(said{N: 1})}, nil
		})
		require.NoError(t, err)
	}
	do() // the first one makes the snapshot
	k.folds = 0
	var took []time.Duration
	for range 20 {
		for _, call := range []func(){do, func() {
			_, err := journal.Read(t.Context(), j, k.entity, "many")
			require.NoError(t, err)
		}} {
			began := time.Now()
			call()
			took = append(took, time.Since(began))
		}
	}
	require.Less(t, k.folds, len(took)*every, "events folded beyond snapshots")
	slices.Sort(took)
	t.Logf("with a snapshot: Do and Read %v in the median, %v at most", took[len(took)/2], took[len(took)-1])
	if full { // a clock on a shared machine says little otherwise
		require.Less(t, took[len(took)/2], maxTime)
	}
}

// Benchmark loads an entity of 20,000 events, with and without a snapshot.
func Benchmark[Tx any](b *testing.B, store journal.Store[Tx]) {
	b.Helper()
	const events = 20_000
	j, err := journal.New(store, journal.Options{})
	require.NoError(b, err)
	plain, kept := fill(b, j, "many", events, 100), declare(journal.EntityOptions{SnapshotEvery: every})
	_, err = journal.Do(b.Context(), j, kept.entity, "many", func(context.Context, Tx, journal.State[state]) ([]journal.Draft, error) {
		return nil, nil
	})
	require.NoError(b, err)
	for name, k := range map[string]*kind{"events": plain, "snapshot": kept} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s, err := journal.Read(b.Context(), j, k.entity, "many")
				if err != nil || s.Version != events {
					b.Fatal(s.Version, err)
				}
			}
		})
	}
}
