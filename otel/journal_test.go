package stintotel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
	stintotel "github.com/stintmq/stint/otel"
)

// TestJournal: an effect's run is a child of the span in which its event was recorded, and the journal's store keeps its
// capabilities.
func TestJournal(t *testing.T) {
	k := newKit(t, stintotel.Options{})
	orders := journal.NewEntity[int]("order")
	placed := journal.Type[string](orders, "placed", nil)
	j, err := journal.New(stintotel.Journal(k.tel, k.memory.Journal()), journal.Options{})
	require.NoError(t, err)
	require.NoError(t, journal.On(j, "confirm", placed, func(context.Context, journal.Event[string], journal.Call[*memstore.Transaction]) error {
		return nil
	}))
	_, err = journal.Do(context.Background(), j, orders, "1", func(context.Context, *memstore.Transaction, journal.State[int]) ([]journal.Draft, error) {
		return []journal.Draft{placed.New("tea")}, nil
	})
	require.NoError(t, err)
	stranded, err := j.Stranded(context.Background())
	require.NoError(t, err, "an Inspector all the same")
	require.Empty(t, stranded)

	w, err := core.NewWorker(k.memory, core.WorkerOptions{Middleware: []core.Middleware{k.tel.Middleware()}})
	require.NoError(t, err)
	j.Handle(w)
	n, err := w.Drain(context.Background(), core.DrainOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	sent, run := k.named("enqueue journal/confirm"), k.named("process journal/confirm")
	require.Len(t, sent, 1)
	require.Len(t, run, 1)
	require.Equal(t, sent[0].SpanContext().TraceID(), run[0].SpanContext().TraceID())
	require.Equal(t, sent[0].SpanContext().SpanID(), run[0].Parent().SpanID())
}
