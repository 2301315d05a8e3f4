package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestShutdownInGrace: a handler may finish what it began, and nothing new starts (Q23).
func TestShutdownInGrace(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		w := newWorker(t, s, core.WorkerOptions{})
		var runs atomic.Int32
		task.Handle(w, func(ctx context.Context, _ int) error {
			runs.Add(1)
			time.Sleep(19 * time.Second)
			return ctx.Err()
		})
		stop := start(t, w)
		first := enqueue(t, task.Job, s, 1)
		second := enqueue(t, task.Job, s, 2)
		synctest.Wait()
		require.NoError(t, stop())
		require.EqualValues(t, 1, runs.Load())
		require.Equal(t, core.StateCompleted, get(t, s, first).State)
		require.Equal(t, core.StateWaiting, get(t, s, second).State)
	})
}

// TestShutdownAfterGrace: a handler that stops when told gives its job back, no attempt used (Q19, Q23).
func TestShutdownAfterGrace(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		w := newWorker(t, s, core.WorkerOptions{})
		var cause error
		task.Handle(w, func(ctx context.Context, _ int) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			time.Sleep(25 * time.Second) // slow to clean up: heartbeats go on
			return ctx.Err()
		})
		stop := start(t, w)
		id := enqueue(t, task.Job, s, 1)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, stop())
		require.Equal(t, 45*time.Second, time.Since(began))
		require.ErrorIs(t, cause, core.ErrStopping)
		rec := get(t, s, id)
		require.Equal(t, core.StateWaiting, rec.State)
		require.Zero(t, rec.Attempts)
		require.Empty(t, ledger(t, s, id))
	})
}

// TestShutdownKeepsFinishedWork: nil completes, even after the worker told the handler to stop (Q19).
func TestShutdownKeepsFinishedWork(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		w := newWorker(t, s, core.WorkerOptions{Grace: -1})
		task.Handle(w, func(ctx context.Context, _ int) error { <-ctx.Done(); return nil })
		stop := start(t, w)
		id := enqueue(t, task.Job, s, 1)
		synctest.Wait()
		require.NoError(t, stop())
		require.Equal(t, core.StateCompleted, get(t, s, id).State)
	})
}

// TestShutdownWithStuckHandler: one that ignores its context does not hold Run for ever; it is named (Q23).
func TestShutdownWithStuckHandler(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		w := newWorker(t, s, core.WorkerOptions{})
		release := make(chan struct{})
		task.Handle(w, func(context.Context, int) error { <-release; return nil })
		stop := start(t, w)
		id := enqueue(t, task.Job, s, 1)
		synctest.Wait()
		began := time.Now()
		err := stop()
		var shutdown *core.ShutdownError
		require.ErrorAs(t, err, &shutdown)
		require.Len(t, shutdown.Jobs, 1)
		require.Equal(t, id, shutdown.Jobs[0].ID)
		require.Equal(t, 50*time.Second, time.Since(began), "Grace and one Lease")
		require.Error(t, w.Run(t.Context()), "a worker that left a handler behind does not run again")
		close(release)
	})
}

// TestShutdownWithDeadStore: outcomes that the store never took are named (Q23).
func TestShutdownWithDeadStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		spied := spyOn(s)
		spied.ack = func(ctx context.Context, _ []core.Ack) ([]core.AckResult, error) {
			<-ctx.Done()
			return nil, core.ErrUnknown
		}
		w := newWorker(t, spied, core.WorkerOptions{})
		task.Handle(w, func(context.Context, int) error { return nil })
		stop := start(t, w)
		id := enqueue(t, task.Job, s, 1)
		synctest.Wait()
		began := time.Now()
		var shutdown *core.ShutdownError
		require.ErrorAs(t, stop(), &shutdown)
		require.Equal(t, id, shutdown.Jobs[0].ID)
		require.LessOrEqual(t, time.Since(began), 51*time.Second)
	})
}

// TestShutdownReleasesUnstarted: what a claim brings after the end is given back (Q23).
func TestShutdownReleasesUnstarted(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		spied := spyOn(s)
		ctx, cancel := context.WithCancel(t.Context())
		spied.claim = func(c context.Context, req core.ClaimRequest) (core.Claimed, error) {
			claimed, err := s.Claim(c, req)
			cancel() // the end comes while the reply is on its way
			return claimed, err
		}
		w := newWorker(t, spied, core.WorkerOptions{Concurrency: 5})
		var runs atomic.Int32
		task.Handle(w, func(context.Context, int) error { runs.Add(1); return nil })
		for i := range 5 {
			enqueue(t, task.Job, s, i)
		}
		require.NoError(t, w.Run(ctx))
		require.Zero(t, runs.Load())
		require.EqualValues(t, 5, counts(t, s)[core.StateWaiting])
	})
}

// TestRunTwice: one Run at a time, and again after the first one ended.
func TestRunTwice(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		w := newWorker(t, s, core.WorkerOptions{})
		task.Handle(w, func(context.Context, int) error { return nil })
		stop := start(t, w)
		synctest.Wait()
		require.Error(t, w.Run(t.Context()))
		_, err := w.Drain(t.Context(), core.DrainOptions{})
		require.Error(t, err)
		require.NoError(t, stop())
		start(t, w)
		id := enqueue(t, task.Job, s, 1)
		synctest.Wait()
		require.Equal(t, core.StateCompleted, get(t, s, id).State)
	})
}
