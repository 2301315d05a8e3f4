package core_test

import (
	"context"
	"fmt"
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

// TestRegisterTwice panics and names both places (Q17).
func TestRegisterTwice(t *testing.T) {
	w := newWorker(t, memstore.New(memstore.Options{}), core.WorkerOptions{})
	task := core.NewTask[int]("task")
	handle := func() { task.Handle(w, func(context.Context, int) error { return nil }) }
	_, file, line, _ := runtime.Caller(0)
	handle()
	defer func() {
		text := fmt.Sprint(recover())
		place := fmt.Sprintf("%s:%d", file, line-1)
		require.Contains(t, text, `"task" is handled twice`)
		require.Contains(t, text, "at "+place+" and at "+place)
	}()
	handle()
}

// TestTakerCounts: two different counts for one queue are an error from Run; WorkerOptions.Queues settles it (Q17).
func TestTakerCounts(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		noop := func(context.Context, int) error { return nil }
		register := func(w *core.Worker) {
			core.NewTask[int]("a").Handle(w, noop, core.Concurrency(2))
			core.NewTask[int]("b").Handle(w, noop, core.Concurrency(3))
			core.NewTask[int]("c").Handle(w, noop)
		}
		w := newWorker(t, s, core.WorkerOptions{})
		register(w)
		var invalid *core.InvalidError
		require.ErrorAs(t, w.Run(t.Context()), &invalid)
		require.Equal(t, "Concurrency", invalid.Field)
		w = newWorker(t, s, core.WorkerOptions{Queues: map[string]core.QueueOptions{"default": {Concurrency: 4}}})
		register(w)
		require.NoError(t, start(t, w)())
	})
}

// TestConcurrency: never more than N at once per queue, nor MaxConcurrent over all, and both are used (Q17, Q18).
func TestConcurrency(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{Concurrency: 3, MaxConcurrent: 5})
		var mu sync.Mutex
		running, most := map[string]int{}, map[string]int{}
		add := func(queue string, n int) {
			mu.Lock()
			defer mu.Unlock()
			for _, k := range []string{queue, "all"} {
				running[k] += n
				most[k] = max(most[k], running[k])
			}
		}
		for _, queue := range []string{"a", "b", "c"} {
			task := core.NewTask[int]("task-"+queue, core.JobOptions[int]{Queue: queue})
			task.Handle(w, func(context.Context, int) error {
				add(queue, 1)
				time.Sleep(time.Second)
				add(queue, -1)
				return nil
			})
			for i := range 30 {
				enqueue(t, task.Job, s, i)
			}
		}
		start(t, w)
		time.Sleep(20 * time.Second)
		require.EqualValues(t, 90, counts(t, s)[core.StateCompleted], "90 seconds of work, 5 at a time")
		require.Equal(t, map[string]int{"a": 3, "b": 3, "c": 3, "all": 5}, most)
	})
}

// TestRegisterWhileRunning takes effect at once; unregistering lets the running job finish (Q17).
func TestRegisterWhileRunning(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{Poll: time.Hour})
		start(t, w)
		task := core.NewTask[int]("task")
		id := enqueue(t, task.Job, s, 1)
		time.Sleep(time.Minute)
		require.Equal(t, core.StateWaiting, get(t, s, id).State)
		began := time.Now()
		unregister := task.Handle(w, func(context.Context, int) error { time.Sleep(time.Minute); return nil })
		synctest.Wait()
		require.Equal(t, core.StateActive, get(t, s, id).State)
		require.Equal(t, began, time.Now())
		unregister()
		left := enqueue(t, task.Job, s, 2)
		time.Sleep(time.Hour)
		require.Equal(t, core.StateCompleted, get(t, s, id).State)
		require.Equal(t, core.StateWaiting, get(t, s, left).State)
		task.Handle(w, func(context.Context, int) error { return nil })
		synctest.Wait()
		require.Equal(t, core.StateCompleted, get(t, s, left).State)
	})
}

// TestQueueOverride: a handler may take a name from another queue than the job's own (Q17).
func TestQueueOverride(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { return nil }, core.Queue("other"))
		start(t, w)
		here := enqueue(t, task.Job, s, 1, core.Queue("other"))
		there := enqueue(t, task.Job, s, 1)
		time.Sleep(time.Minute)
		require.Equal(t, core.StateCompleted, get(t, s, here).State)
		require.Equal(t, core.StateWaiting, get(t, s, there).State)
	})
}

// TestStoreCallsUnderLoad: about two calls per batch of N jobs, and no claim asks for more than is idle (Q18).
func TestStoreCallsUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		const takers, jobs = 100, 10_000
		spied := spyOn(s)
		var running atomic.Int32
		spied.claim = func(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
			if asked := req.Wants[0].Limit + int(running.Load()); asked > takers {
				t.Errorf("claim of %d while %d run", req.Wants[0].Limit, running.Load())
			}
			return s.Claim(ctx, req)
		}
		w := newWorker(t, spied, core.WorkerOptions{Concurrency: takers})
		task := core.NewTask[int]("task")
		task.Handle(w, func(_ context.Context, n int) error {
			running.Add(1)
			time.Sleep(time.Duration(n%20) * 100 * time.Microsecond)
			running.Add(-1)
			return nil
		})
		payloads := make([]int, jobs)
		for i := range payloads {
			payloads[i] = i
		}
		_, err := task.EnqueueMany(t.Context(), s, payloads)
		require.NoError(t, err)
		start(t, w)
		began := time.Now()
		for counts(t, s)[core.StateCompleted] < jobs {
			time.Sleep(100 * time.Millisecond)
		}
		require.Less(t, time.Since(began), time.Second, "95 ms of work at full use")
		require.LessOrEqual(t, spied.called("claim"), 4*jobs/takers+10, "a quarter of the takers or more per claim")
	})
}

// TestPickup: an idle worker starts a job at once, without a poll, due jobs included (Q15).
func TestPickup(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{Concurrency: 64, Poll: time.Hour})
		task := core.NewTask[time.Time]("task")
		var late atomic.Int64
		task.Handle(w, func(_ context.Context, due time.Time) error {
			late.Store(max(late.Load(), int64(time.Since(due))))
			return nil
		})
		start(t, w)
		time.Sleep(90 * time.Minute)
		for range 1000 {
			enqueue(t, task.Job, s, time.Now())
			time.Sleep(time.Millisecond)
		}
		enqueue(t, task.Job, s, time.Now().Add(time.Minute), core.Delay(time.Minute))
		enqueue(t, task.Job, s, time.Now().Add(30*time.Second), core.Delay(30*time.Second))
		time.Sleep(2 * time.Minute)
		require.EqualValues(t, 1002, counts(t, s)[core.StateCompleted])
		require.LessOrEqual(t, time.Duration(late.Load()), 100*time.Millisecond)
	})
}

// TestNoHotLoop: neither a store that fails nor a wake channel that always returns makes more than 20 calls per
// second, and both are recovered from (Q24).
func TestNoHotLoop(t *testing.T) {
	for name, failing := range map[string]bool{"failing claims": true, "endless wakes": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *memstore.Store) {
				spied := spyOn(s)
				var down atomic.Bool
				down.Store(true)
				spied.await = func(context.Context, []string, core.WakeToken) (core.Wake, error) { return core.Wake{}, nil }
				spied.claim = func(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
					if failing && down.Load() {
						return core.Claimed{}, core.ErrUnavailable
					}
					return s.Claim(ctx, req)
				}
				w := newWorker(t, spied, core.WorkerOptions{Poll: time.Hour})
				task := core.NewTask[int]("task")
				task.Handle(w, func(context.Context, int) error { return nil })
				start(t, w)
				const seconds = 60
				time.Sleep(seconds * time.Second)
				require.LessOrEqual(t, spied.called("claim")+spied.called("await"), 20*seconds)
				down.Store(false)
				id := enqueue(t, task.Job, s, 1)
				time.Sleep(10 * time.Second)
				require.Equal(t, core.StateCompleted, get(t, s, id).State)
			})
		})
	}
}

// TestStoreWithoutWake: with an AwaitWake that only ends with its context, the poll finds everything (Q15).
func TestStoreWithoutWake(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		spied := spyOn(s)
		spied.await = func(ctx context.Context, _ []string, _ core.WakeToken) (core.Wake, error) {
			<-ctx.Done()
			return core.Wake{}, ctx.Err()
		}
		w := newWorker(t, spied, core.WorkerOptions{})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { return nil })
		stop := start(t, w)
		time.Sleep(time.Hour)
		id := enqueue(t, task.Job, s, 1)
		time.Sleep(7 * time.Second)
		require.Equal(t, core.StateCompleted, get(t, s, id).State)
		require.NoError(t, stop())
	})
}

// TestFailingStore: a store whose every method fails for an hour ends no loop (Q24).
func TestFailingStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		spied := spyOn(s)
		var down atomic.Bool
		fail := func() error {
			if down.Load() {
				return errBoom // not even one of the store's own errors
			}
			return nil
		}
		spied.claim = func(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
			if err := fail(); err != nil {
				return core.Claimed{}, err
			}
			return s.Claim(ctx, req)
		}
		spied.extend = func(ctx context.Context, ls []core.Lease) (core.Extended, error) {
			if err := fail(); err != nil {
				return core.Extended{}, err
			}
			return s.Extend(ctx, ls, 30*time.Second)
		}
		spied.ack = func(ctx context.Context, as []core.Ack) ([]core.AckResult, error) {
			if err := fail(); err != nil {
				return nil, err
			}
			return s.Ack(ctx, as)
		}
		spied.recover = func(ctx context.Context, req core.RecoverRequest) ([]core.Recovered, error) {
			if err := fail(); err != nil {
				return nil, err
			}
			return s.RecoverStalled(ctx, req)
		}
		spied.await = func(ctx context.Context, qs []string, since core.WakeToken) (core.Wake, error) {
			if err := fail(); err != nil {
				return core.Wake{}, err
			}
			return s.AwaitWake(ctx, qs, since)
		}
		w := newWorker(t, spied, core.WorkerOptions{Concurrency: 2})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { time.Sleep(time.Minute); return nil })
		stop := start(t, w)
		enqueue(t, task.Job, s, 1)
		synctest.Wait()
		down.Store(true)
		time.Sleep(time.Hour)
		enqueue(t, task.Job, s, 2)
		down.Store(false)
		time.Sleep(5 * time.Minute)
		require.EqualValues(t, 2, counts(t, s)[core.StateCompleted])
		require.NoError(t, stop())
	})
}
