package journal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
)

// TestDrainRunsOrderedEffects: one Drain runs all that can run, also what had to wait for its turn (J5); what waits for a
// backoff it leaves.
func TestDrainRunsOrderedEffects(t *testing.T) {
	for _, takers := range []int{1, 10} {
		for _, backoff := range []core.Backoff{core.Fixed(0), core.DefaultBackoff()} {
			store := memstore.New(memstore.Options{})
			j, err := journal.New(store.Journal(), journal.Options{})
			require.NoError(t, err)
			items := journal.NewEntity[int]("item")
			sold := journal.Type[int](items, "sold", nil)
			var seen []string
			require.NoError(t, journal.On(j, "tell", sold, func(_ context.Context, e journal.Event[int], call journal.Call[*memstore.Transaction]) error {
				if e.Payload == 1 && call.Attempt == 1 {
					return errors.New("not yet")
				}
				seen = append(seen, fmt.Sprint(e.Key.ID, e.Payload))
				return nil
			}, journal.EffectOptions{Ordered: true, Backoff: backoff}))
			require.NoError(t, j.InTx(t.Context(), func(ctx context.Context, tx *memstore.Transaction) error {
				var drafts []journal.Draft
				for n := range 5 {
					drafts = append(drafts, sold.New(n))
				}
				_, err := j.Record(ctx, tx, items.Key("tea"), journal.NoEntity, drafts...)
				return err
			}))
			w, err := j.Worker(journal.WorkerOptions{Core: core.WorkerOptions{Concurrency: takers}})
			require.NoError(t, err)
			_, _, err = w.Drain(t.Context(), core.DrainOptions{})
			require.NoError(t, err)
			want := []string{"tea0", "tea1", "tea2", "tea3", "tea4"}
			if backoff != core.Fixed(0) {
				want = want[:1]
			}
			require.Equal(t, want, seen, "%d takers, %v", takers, backoff)
			require.NoError(t, store.Close())
		}
	}
}
