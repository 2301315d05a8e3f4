package stinttest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
	"github.com/stintmq/stint/stinttest"
)

// TestJournal: effects run with the kit's worker and projections when they are let.
func TestJournal(t *testing.T) {
	k := stinttest.New(t)
	orders := journal.NewEntity[int]("order")
	placed := journal.Type[string](orders, "placed", func(n *int, _ journal.Event[string]) error { *n++; return nil })
	j, err := journal.New(k.Store.Journal(), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	err = journal.On(j, "confirm", placed, func(_ context.Context, e journal.Event[string], call journal.Call[*memstore.Transaction]) error {
		seen = append(seen, fmt.Sprintf("confirm %s, %s", e.Payload, call.JobID))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	list := journal.NewProjection[*memstore.Transaction]("list")
	journal.Apply(list, placed, func(_ context.Context, _ *memstore.Transaction, e journal.Event[string]) error {
		seen = append(seen, "list "+e.Payload)
		return nil
	})
	if err := j.Project(list); err != nil {
		t.Fatal(err)
	}
	j.Handle(k.Worker)
	_, err = journal.Do(t.Context(), j, orders, "1", func(context.Context, *memstore.Transaction, journal.State[int]) ([]journal.Draft, error) {
		return []journal.Draft{placed.New("tea")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	k.Work()
	if n, err := j.CatchUp(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if want := "[confirm tea, journal/confirm:1 list tea]"; fmt.Sprint(seen) != want {
		t.Fatalf("got %v, want %s", seen, want)
	}
}

// TestSlot: Perform can be told what slot the run is for.
func TestSlot(t *testing.T) {
	job := core.NewTask[string]("report")
	slot := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)
	_, err := stinttest.Perform(t, job, func(ctx context.Context, _ string) error {
		if got, ok := core.Slot(ctx); !ok || !got.Equal(slot) {
			t.Errorf("got %v, %v", got, ok)
		}
		return nil
	}, "x", stinttest.Slot(slot))
	if err != nil {
		t.Fatal(err)
	}
}
