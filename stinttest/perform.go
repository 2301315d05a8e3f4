package stinttest

import (
	"context"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// Handled is a kind of work with the type of its handlers: a *core.Job or a *core.Task.
type Handled[P, F any] interface {
	Enqueue(ctx context.Context, to core.Enqueuer, payload P, opts ...core.EnqueueOption) (core.Enqueued, error)
	Handle(w *core.Worker, fn F, opts ...core.HandleOption) (unregister func())
}

// Perform runs a handler once on a payload, alone, as a worker would: the payload is encoded and decoded, core.Current
// works, a timeout ends the context, a panic is an error. It returns the job as the run left it, and the handler's
// error; Job.Result reads the result.
func Perform[P, F any](tb testing.TB, kind Handled[P, F], handler F, payload P, opts ...core.EnqueueOption) (core.Record, error) {
	tb.Helper()
	k := New(tb)
	e, err := kind.Enqueue(context.Background(), k.Store, payload, opts...)
	if err != nil {
		tb.Fatalf("stinttest: %v", err)
	}
	rec, err := k.Store.Get(context.Background(), e.ID)
	if err != nil {
		tb.Fatalf("stinttest: %v", err)
	}
	if rec.State == core.StateDelayed {
		k.clock.advance(rec.RunAt.Sub(k.Now()))
	}
	kind.Handle(k.Worker, handler, core.Queue(rec.Queue))
	if _, err := k.Worker.Drain(context.Background(), core.DrainOptions{Limit: 1}); err != nil {
		tb.Fatalf("stinttest: %v", err)
	}
	if len(k.ran) != 1 {
		tb.Fatalf("stinttest: the handler ran %d times", len(k.ran))
	}
	if rec, err = k.Store.Get(context.Background(), e.ID); err != nil {
		tb.Fatalf("stinttest: %v", err)
	}
	return rec, k.ran[0].Err
}

// Slot is for Perform: the run is one that a schedule made for slot (core.Slot).
func Slot(slot time.Time) core.EnqueueOption {
	return core.WithMetadata(map[string]string{core.SlotMetadata: core.Micros(slot).Format(time.RFC3339Nano)})
}
