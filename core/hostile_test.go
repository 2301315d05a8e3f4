package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestSecondRunLetsGo: what a Run left unsettled is not kept alive by the next one; a sweep brings it back (Q23).
func TestSecondRunLetsGo(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		spied := spyOn(s)
		var down atomic.Bool
		down.Store(true)
		spied.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
			if down.Load() {
				return nil, core.ErrUnavailable
			}
			return s.Ack(ctx, acks)
		}
		w := newWorker(t, spied, core.WorkerOptions{})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { return nil })
		stop := start(t, w)
		id := enqueue(t, task.Job, s, 1)
		synctest.Wait()
		var shutdown *core.ShutdownError
		require.ErrorAs(t, stop(), &shutdown)
		require.Equal(t, id, shutdown.Jobs[0].ID)
		down.Store(false)
		stop = start(t, w)
		time.Sleep(5 * time.Minute)
		require.Equal(t, []core.Outcome{core.OutcomeStalled, core.OutcomeComplete}, outcomes(t, s, id))
		require.NoError(t, stop())
	})
}

// TestManyQueues: a worker-wide cap starves no queue and slows none, however many are empty (Q15, Q17, Q24).
func TestManyQueues(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		const queues, jobs = 50, 40
		spied := spyOn(s)
		w := newWorker(t, spied, core.WorkerOptions{MaxConcurrent: 2, Concurrency: 4})
		var ran [queues]atomic.Int32
		var tasks []*core.Task[time.Time]
		var late atomic.Int64
		for q := range queues {
			task := core.NewTask[time.Time](fmt.Sprint("task", q), core.JobOptions[time.Time]{Queue: fmt.Sprint("queue", q)})
			task.Handle(w, func(_ context.Context, due time.Time) error {
				ran[q].Add(1)
				late.Store(max(late.Load(), int64(time.Since(due))))
				time.Sleep(10 * time.Millisecond)
				return nil
			})
			tasks = append(tasks, task)
		}
		start(t, w)
		time.Sleep(time.Hour)
		for _, task := range tasks {
			enqueue(t, task.Job, s, time.Now())
			time.Sleep(time.Second)
		}
		require.Less(t, time.Duration(late.Load()), 100*time.Millisecond, "an idle worker starts at once")

		for range jobs { // a backlog in two queues of fifty
			enqueue(t, tasks[3].Job, s, time.Now())
			enqueue(t, tasks[33].Job, s, time.Now())
		}
		claims := spied.called("claim")
		time.Sleep(jobs * 10 * time.Millisecond / 2)
		a, b := ran[3].Load(), ran[33].Load()
		require.InDelta(t, jobs/2, float64(a), 3, "each has its turn")
		require.InDelta(t, jobs/2, float64(b), 3)
		time.Sleep(jobs*10*time.Millisecond/2 + 20*time.Millisecond)
		require.EqualValues(t, 2*(jobs+1), ran[3].Load()+ran[33].Load(), "the cap is used up to the last")
		require.Less(t, spied.called("claim")-claims, 6*jobs, "no storm of claims for the empty ones")
	})
}

// TestDrainAsksEveryQueue, also where there is no room to ask all at once (Q25).
func TestDrainAsksEveryQueue(t *testing.T) {
	for _, opts := range []core.WorkerOptions{{}, {MaxConcurrent: 1}, {MaxConcurrent: 3, Concurrency: 2}} {
		bubble(t, func(t *testing.T, s *memstore.Store) {
			w := newWorker(t, s, opts)
			var ran atomic.Int32
			var last *core.Task[int]
			for q := range 10 {
				last = core.NewTask[int](fmt.Sprint("task", q), core.JobOptions[int]{Queue: fmt.Sprint("queue", q)})
				last.Handle(w, func(context.Context, int) error { ran.Add(1); return nil })
			}
			for i := range 5 {
				enqueue(t, last.Job, s, i)
			}
			n, err := w.Drain(t.Context(), core.DrainOptions{Limit: 1})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			n, err = w.Drain(t.Context(), core.DrainOptions{})
			require.NoError(t, err)
			require.Equal(t, 4, n)
			require.EqualValues(t, 5, ran.Load())
		})
	}
}

// TestPanicWhileExiting: a panic inside runtime.Goexit, outside the handler, costs no taker (Q19).
func TestPanicWhileExiting(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{})
		task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 1, Retryable: func(error) bool {
			defer func() { panic("on the way out") }()
			runtime.Goexit()
			return true
		}})
		task.Handle(w, func(_ context.Context, n int) error {
			if n == 0 {
				return errBoom
			}
			return nil
		})
		start(t, w)
		first := enqueue(t, task.Job, s, 0)
		second := enqueue(t, task.Job, s, 1)
		time.Sleep(time.Second)
		require.Equal(t, core.StateFailed, get(t, s, first).State)
		require.Equal(t, core.StateCompleted, get(t, s, second).State)
	})
}

type hostileHandler struct {
	panickyHandler
	enabled, handle func()
}

func (h hostileHandler) Enabled(context.Context, slog.Level) bool  { h.enabled(); return true }
func (h hostileHandler) Handle(context.Context, slog.Record) error { h.handle(); return nil }
func (h hostileHandler) WithAttrs([]slog.Attr) slog.Handler        { return h }

// TestHostileLogger ends no loop, whatever it does (Q19).
func TestHostileLogger(t *testing.T) {
	nothing := func() {}
	for name, h := range map[string]hostileHandler{
		"panic in Enabled":  {enabled: func() { panic("no") }, handle: nothing},
		"Goexit in Enabled": {enabled: runtime.Goexit, handle: nothing},
		"Goexit in Handle":  {enabled: nothing, handle: runtime.Goexit},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *memstore.Store) {
				w := newWorker(t, s, core.WorkerOptions{Logger: slog.New(h)})
				task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 2})
				task.Handle(w, func(context.Context, int) error { return errBoom })
				stop := start(t, w)
				id := enqueue(t, task.Job, s, 1)
				time.Sleep(time.Minute)
				require.Equal(t, core.StateFailed, get(t, s, id).State)
				require.NoError(t, stop())
			})
		})
	}
}

// TestSlowStore: one that needs 10 ms for each item gets batches that it can do within a call's deadline, in
// claims, acks and heartbeats alike (Q21, Q22).
func TestSlowStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		const jobs = 2000
		spied := spyOn(s)
		work := func(ctx context.Context, items int) error {
			select {
			case <-ctx.Done():
				return core.ErrUnavailable
			case <-time.After(time.Duration(items) * 10 * time.Millisecond):
				return nil
			}
		}
		spied.claim = func(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
			if len(req.Wants) > 0 {
				if err := work(ctx, req.Wants[0].Limit); err != nil {
					return core.Claimed{}, err
				}
			}
			return s.Claim(ctx, req)
		}
		spied.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
			if err := work(ctx, len(acks)); err != nil {
				return nil, err
			}
			return s.Ack(ctx, acks)
		}
		spied.extend = func(ctx context.Context, ls []core.Lease) (core.Extended, error) {
			if err := work(ctx, len(ls)); err != nil {
				return core.Extended{}, err
			}
			return s.Extend(ctx, ls, 30*time.Second)
		}
		w := newWorker(t, spied, core.WorkerOptions{Concurrency: 600})
		task := core.NewTask[int]("task")
		var told atomic.Int32
		task.Handle(w, func(ctx context.Context, _ int) error {
			select {
			case <-ctx.Done():
				told.Add(1)
			case <-time.After(20 * time.Second):
			}
			return ctx.Err()
		})
		_, err := task.EnqueueMany(t.Context(), s, make([]int, jobs))
		require.NoError(t, err)
		start(t, w)
		time.Sleep(30 * time.Minute)
		require.EqualValues(t, jobs, counts(t, s)[core.StateCompleted])
		require.Zero(t, told.Load())
	})
}

// TestFullQueueAtShutdown: handlers that returned are not left behind, though nobody takes their outcomes; neither
// Run nor Drain waits for ever (Q22, Q23, Q25).
func TestFullQueueAtShutdown(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		spied := spyOn(s)
		var down atomic.Bool
		down.Store(true)
		spied.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
			if down.Load() {
				return nil, core.ErrUnavailable
			}
			return s.Ack(ctx, acks)
		}
		w := newWorker(t, spied, core.WorkerOptions{Concurrency: 2000, Grace: time.Second})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { return nil })
		for range 2 {
			_, err := task.EnqueueMany(t.Context(), s, make([]int, 2000))
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		var shutdown *core.ShutdownError
		_, err := w.Drain(ctx, core.DrainOptions{})
		require.ErrorAs(t, err, &shutdown)
		require.LessOrEqual(t, time.Since(began), 3*time.Minute)

		stop := start(t, w)
		time.Sleep(time.Minute)
		began = time.Now()
		require.ErrorAs(t, stop(), &shutdown)
		require.LessOrEqual(t, time.Since(began), time.Minute)
		down.Store(false)
		stop = start(t, w)
		time.Sleep(10 * time.Minute)
		require.EqualValues(t, 4000, counts(t, s)[core.StateCompleted])
		require.NoError(t, stop())
	})
}

// TestBlockedHook: OnFailure that never ends holds up neither acks nor shutdown for ever, and makes no more
// goroutines than a few.
func TestBlockedHook(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		var calls atomic.Int32
		w := newWorker(t, s, core.WorkerOptions{Concurrency: 100, OnFailure: func(ctx context.Context, _ core.Failed) {
			calls.Add(1)
			<-ctx.Done()
		}})
		task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 1})
		task.Handle(w, func(context.Context, int) error { return errBoom })
		_, err := task.EnqueueMany(t.Context(), s, make([]int, 20_000))
		require.NoError(t, err)
		stop := start(t, w)
		time.Sleep(time.Minute)
		require.EqualValues(t, 20_000, counts(t, s)[core.StateFailed])
		require.EqualValues(t, 8, calls.Load())
		began := time.Now()
		require.NoError(t, stop())
		require.LessOrEqual(t, time.Since(began), 2*time.Minute)
	})
}

// TestRegistrationChurn: what was unregistered counts no more, and costs nothing (Q17).
func TestRegistrationChurn(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{})
		task := core.NewTask[int]("task")
		noop := func(context.Context, int) error { return nil }
		for range 20_000 {
			task.Handle(w, noop, core.Concurrency(2))()
		}
		unregister := task.Handle(w, noop, core.Concurrency(3))
		start(t, w)
		synctest.Wait()
		other := core.NewTask[int]("other")
		require.Panics(t, func() { other.Handle(w, noop, core.Concurrency(5)) }, "the queue has its takers")
		unregister()
		task.Handle(w, noop)
		id := enqueue(t, task.Job, s, 1)
		time.Sleep(time.Second)
		require.Equal(t, core.StateCompleted, get(t, s, id).State)
	})
}

// TestOrphanAtShutdown: a claim whose reply was lost is looked after before Run returns nil (Q23).
func TestOrphanAtShutdown(t *testing.T) {
	for _, reachable := range []bool{true, false} {
		bubble(t, func(t *testing.T, s *memstore.Store) {
			spied := spyOn(s)
			ctx, cancel := context.WithCancel(t.Context())
			var once sync.Once
			spied.claim = func(c context.Context, req core.ClaimRequest) (core.Claimed, error) {
				if len(req.Wants) == 0 && !reachable {
					return core.Claimed{}, core.ErrUnavailable
				}
				claimed, err := s.Claim(c, req)
				if len(claimed.Jobs) > 0 && len(req.Wants) > 0 {
					once.Do(func() { err = core.ErrUnknown; cancel() })
				}
				return claimed, err
			}
			w := newWorker(t, spied, core.WorkerOptions{})
			task := core.NewTask[int]("task")
			task.Handle(w, func(context.Context, int) error { return nil })
			id := enqueue(t, task.Job, s, 1)
			err := w.Run(ctx)
			if reachable {
				require.NoError(t, err)
				require.Equal(t, core.StateWaiting, get(t, s, id).State)
				return
			}
			var shutdown *core.ShutdownError
			require.ErrorAs(t, err, &shutdown)
			require.Equal(t, 1, shutdown.Claims)
		})
	}
}

// TestDeafStore: a store call that ignores its context does not hold Run for ever (Q23).
func TestDeafStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		spied := spyOn(s)
		release := make(chan struct{})
		spied.await = func(context.Context, []string, core.WakeToken) (core.Wake, error) {
			<-release
			return core.Wake{}, errBoom
		}
		w := newWorker(t, spied, core.WorkerOptions{})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { return nil })
		stop := start(t, w)
		synctest.Wait()
		began := time.Now()
		_ = stop()
		require.LessOrEqual(t, time.Since(began), time.Minute)
		close(release)
	})
}

// TestExtremeOptions are refused where they would overflow or spin.
func TestExtremeOptions(t *testing.T) {
	s := memstore.New(memstore.Options{})
	for field, opts := range map[string]core.WorkerOptions{
		"Renew":           {Renew: 1},
		"Poll":            {Poll: math.MaxInt64},
		"StalledInterval": {StalledInterval: math.MaxInt64},
		"Lease":           {Lease: math.MaxInt64},
		"Grace":           {Grace: math.MaxInt64},
	} {
		_, err := core.NewWorker(s, opts)
		var invalid *core.InvalidError
		require.True(t, errors.As(err, &invalid), field)
		require.Equal(t, field, invalid.Field)
	}
	require.Panics(t, func() { core.NewTask[int]("#1") })
	require.Panics(t, func() { core.NewTask[int]("@daily") })
}
