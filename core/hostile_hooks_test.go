package core_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// everywhere calls f in every function of a Hooks value.
func everywhere(f func(ctx context.Context)) core.Hooks {
	return core.Hooks{
		Start:     func(ctx context.Context, _ core.Run) { f(ctx) },
		Finish:    func(ctx context.Context, _ core.Finished) { f(ctx) },
		Failure:   func(ctx context.Context, _ core.Failed) { f(ctx) },
		LeaseLost: func(ctx context.Context, _ core.LostLease) { f(ctx) },
		Stall:     func(ctx context.Context, _ core.Recovered) { f(ctx) },
		Claim:     func(ctx context.Context, _ core.ClaimCall) { f(ctx) },
		Missed:    func(ctx context.Context, _ int) { f(ctx) },
	}
}

// TestHostileHooks: a panic, runtime.Goexit, or a call that never ends harms neither jobs nor other hooks (Q19).
func TestHostileHooks(t *testing.T) {
	for name, f := range map[string]func(context.Context){
		"panic":              func(context.Context) { panic("no") },
		"panic with nil":     func(context.Context) { panic(nil) },
		"Goexit":             func(context.Context) { runtime.Goexit() },
		"panic in Goexit":    func(context.Context) { defer func() { panic("on the way out") }(); runtime.Goexit() },
		"until told to stop": func(ctx context.Context) { <-ctx.Done() },
		"one hour each":      func(context.Context) { time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *memstore.Store) {
				var d diary
				var calls atomic.Int32
				spied := spyOn(s)
				w := newWorker(t, spied, core.WorkerOptions{Concurrency: 4, Hooks: []core.Hooks{
					everywhere(func(ctx context.Context) { calls.Add(1); f(ctx) }), d.hooks(),
				}})
				task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 1})
				task.Handle(w, func(_ context.Context, n int) error {
					time.Sleep(time.Minute) // several heartbeats
					if n == 0 {
						return errBoom
					}
					return nil
				})
				for i := range 20 {
					enqueue(t, task.Job, s, i%2)
				}
				stop := start(t, w)
				time.Sleep(6 * time.Minute)
				n := counts(t, s)
				require.EqualValues(t, 10, n[core.StateCompleted])
				require.EqualValues(t, 10, n[core.StateFailed])
				require.Len(t, d.finished, 20)
				require.Len(t, d.failed, 10)
				require.Empty(t, d.lost)
				began := time.Now()
				require.NoError(t, stop())
				require.LessOrEqual(t, time.Since(began), 2*time.Minute)
				require.NotZero(t, calls.Load())
				time.Sleep(2 * time.Hour) // what was left behind ends
			})
		})
	}
}

// TestOverflowingHooks: what a hook is too slow for is counted and told to it; others miss nothing.
func TestOverflowingHooks(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		const jobs = 30_000
		var heard, missed atomic.Int64
		gate := make(chan struct{})
		slow := core.Hooks{
			Finish: func(context.Context, core.Finished) { <-gate; heard.Add(1) },
			Missed: func(_ context.Context, n int) { missed.Add(int64(n)) },
		}
		var quick atomic.Int64
		w := newWorker(t, s, core.WorkerOptions{Concurrency: 100, Hooks: []core.Hooks{slow, {
			Finish: func(context.Context, core.Finished) { quick.Add(1) },
		}}})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { time.Sleep(time.Millisecond); return nil })
		_, err := task.EnqueueMany(t.Context(), s, make([]int, jobs))
		require.NoError(t, err)
		stop := start(t, w)
		time.Sleep(time.Minute)
		require.EqualValues(t, jobs, counts(t, s)[core.StateCompleted], "nothing waits for a hook")
		require.EqualValues(t, jobs, quick.Load())
		require.Zero(t, heard.Load())
		close(gate)
		synctest.Wait()
		require.EqualValues(t, jobs, heard.Load()+missed.Load())
		require.NotZero(t, missed.Load())
		require.GreaterOrEqual(t, heard.Load(), int64(10_000))
		require.NoError(t, stop())
	})
}

// TestHookLeftBehind: one that ignores its context does not hold Run for ever, and the worker may run again.
func TestHookLeftBehind(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		forever := make(chan struct{})
		defer close(forever)
		var calls atomic.Int32
		w := newWorker(t, s, core.WorkerOptions{Hooks: []core.Hooks{{
			Finish: func(context.Context, core.Finished) {
				if calls.Add(1) == 1 {
					<-forever
				}
			},
		}}})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { return nil })
		for want := range 2 {
			enqueue(t, task.Job, s, 1)
			began := time.Now()
			_, err := w.Drain(t.Context(), core.DrainOptions{})
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(began), 2*time.Minute)
			require.EqualValues(t, want+1, calls.Load())
		}
	})
}
