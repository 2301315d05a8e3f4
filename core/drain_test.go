package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestDrain runs what is due now and no more (Q25).
func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		spied := spyOn(s)
		w := newWorker(t, spied, core.WorkerOptions{Concurrency: 3})
		n, err := w.Drain(t.Context(), core.DrainOptions{})
		require.NoError(t, err)
		require.Zero(t, n)
		require.Zero(t, spied.called("claim"), "no handlers, no store call")

		task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 2, Backoff: core.Fixed(0)})
		var ran atomic.Int32
		task.Handle(w, func(_ context.Context, n int) error {
			ran.Add(1)
			if n == 7 {
				return errBoom // and again at once, which is due now
			}
			return nil
		})
		for i := range 10 {
			enqueue(t, task.Job, s, i)
		}
		later := enqueue(t, task.Job, s, 100, core.Delay(time.Hour))

		n, err = w.Drain(t.Context(), core.DrainOptions{Limit: 4})
		require.NoError(t, err)
		require.Equal(t, 4, n)
		require.EqualValues(t, 4, ran.Load())

		n, err = w.Drain(t.Context(), core.DrainOptions{})
		require.NoError(t, err)
		require.Equal(t, 7, n, "six jobs and one second attempt")
		require.Equal(t, core.StateDelayed, get(t, s, later).State)
		require.Zero(t, spied.called("await")+spied.called("recover"), "no loops")

		_, err = w.Drain(t.Context(), core.DrainOptions{Limit: -1})
		var invalid *core.InvalidError
		require.ErrorAs(t, err, &invalid)
	})
}

// TestDrainEnds: an ended ctx stops the claiming; what runs is finished, on a kept lease (Q25).
func TestDrainEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{})
		task := core.NewTask[int]("task")
		ctx, cancel := context.WithCancel(t.Context())
		task.Handle(w, func(ctx context.Context, _ int) error {
			cancel()
			time.Sleep(10 * time.Minute)
			return ctx.Err()
		})
		first := enqueue(t, task.Job, s, 1)
		second := enqueue(t, task.Job, s, 2)
		n, err := w.Drain(ctx, core.DrainOptions{})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, core.StateCompleted, get(t, s, first).State)
		require.Equal(t, core.StateWaiting, get(t, s, second).State)
	})
}

// TestDrainOnFailingStore returns the store's error.
func TestDrainOnFailingStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		spied := spyOn(s)
		spied.claim = func(context.Context, core.ClaimRequest) (core.Claimed, error) {
			return core.Claimed{}, core.ErrUnavailable
		}
		w := newWorker(t, spied, core.WorkerOptions{})
		core.NewTask[int]("task").Handle(w, func(context.Context, int) error { return nil })
		_, err := w.Drain(t.Context(), core.DrainOptions{})
		require.ErrorIs(t, err, core.ErrUnavailable)
	})
}
