package core_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestLongRun: a healthy run of 24 hours on 30-second leases is never taken over (Q21).
func TestLongRun(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		var runs atomic.Int32
		for range 3 { // three processes that sweep
			w := newWorker(t, s, core.WorkerOptions{})
			task.Handle(w, func(ctx context.Context, _ int) error {
				runs.Add(1)
				time.Sleep(24 * time.Hour)
				return ctx.Err()
			})
			start(t, w)
		}
		id := enqueue(t, task.Job, s, 1)
		time.Sleep(25 * time.Hour)
		require.EqualValues(t, 1, runs.Load())
		require.Equal(t, []core.Outcome{core.OutcomeComplete}, outcomes(t, s, id))
	})
}

// TestCrashedHolder: a job whose holder is gone comes back, with a stall and no attempt used (Q7).
func TestCrashedHolder(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 1})
		id := enqueue(t, task.Job, s, 1)
		claimed, err := s.Claim(t.Context(), core.ClaimRequest{
			Wants: []core.Want{{Queue: "default", Names: []string{"task"}, Limit: 1}}, Token: core.NewToken(), Lease: 30 * time.Second,
		})
		require.NoError(t, err)
		require.Len(t, claimed.Jobs, 1)
		w := newWorker(t, s, core.WorkerOptions{})
		task.Handle(w, func(context.Context, int) error { return nil })
		start(t, w)
		time.Sleep(2 * time.Minute)
		rec := get(t, s, id)
		require.Equal(t, core.StateCompleted, rec.State)
		require.Equal(t, 1, rec.Stalls)
		require.Equal(t, 1, rec.Attempts)
		require.Equal(t, []core.Outcome{core.OutcomeStalled, core.OutcomeComplete}, outcomes(t, s, id))
	})
}

// TestPoisonJob: one that kills every holder is failed after MaxStalls, and the hook hears of it (Q7).
func TestPoisonJob(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		id := enqueue(t, task.Job, s, 1)
		told := make(chan core.Failed, 1)
		w := newWorker(t, s, core.WorkerOptions{MaxStalls: 2, OnFailure: func(_ context.Context, f core.Failed) { told <- f }})
		start(t, w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for get(t, s, id).State != core.StateFailed && ctx.Err() == nil {
			_, err := s.Claim(ctx, core.ClaimRequest{
				Wants: []core.Want{{Queue: "default", Names: []string{"task"}, Limit: 1}}, Token: core.NewToken(), Lease: time.Second,
			})
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		f := <-told
		require.Equal(t, id, f.Run.ID)
		require.Equal(t, "stalled", f.Failure.Type)
		require.Equal(t, core.StateFailed, get(t, s, id).State)
		require.Equal(t, 3, get(t, s, id).Stalls)
	})
}

// TestReportedLoss: what a handler returns after the store reported the loss is dropped (Q19).
func TestReportedLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		spied := spyOn(s)
		spied.extend = func(_ context.Context, ls []core.Lease) (core.Extended, error) {
			return core.Extended{Lost: ls}, nil
		}
		failed := make(chan core.Failed, 1)
		w := newWorker(t, spied, core.WorkerOptions{OnFailure: func(_ context.Context, f core.Failed) { failed <- f }})
		var cause error
		task.Handle(w, func(ctx context.Context, _ int) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return errBoom
		})
		stop := start(t, w)
		began := time.Now()
		enqueue(t, task.Job, s, 1)
		time.Sleep(11 * time.Second)
		require.NoError(t, stop())
		require.ErrorIs(t, cause, core.ErrLeaseLost)
		require.Less(t, time.Since(began), 12*time.Second, "told within one heartbeat")
		require.Zero(t, spied.called("ack"))
		require.Empty(t, failed, "a lost run is no failure")
	})
}

// TestDoubtfulLease: a store that cannot be reached past a lease's end makes it doubtful, not lost: a result is
// still offered, an error that is only the context's gives the job back (Q19, Q21).
func TestDoubtfulLease(t *testing.T) {
	for _, returnsNil := range []bool{true, false} {
		bubble(t, func(t *testing.T, s *memstore.Store) {
			task := core.NewTask[int]("task")
			spied := spyOn(s)
			var down atomic.Bool
			spied.extend = func(ctx context.Context, ls []core.Lease) (core.Extended, error) {
				if down.Load() {
					<-ctx.Done() // hangs
					return core.Extended{}, core.ErrUnknown
				}
				return s.Extend(ctx, ls, 30*time.Second)
			}
			spied.recover = func(context.Context, core.RecoverRequest) ([]core.Recovered, error) { return nil, nil }
			w := newWorker(t, spied, core.WorkerOptions{})
			doubted := make(chan time.Time, 2)
			task.Handle(w, func(ctx context.Context, _ int) error {
				if len(doubted) > 0 {
					return nil // given back and claimed again
				}
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), core.ErrLeaseDoubtful)
				doubted <- time.Now()
				if returnsNil {
					return nil
				}
				return ctx.Err()
			})
			stop := start(t, w)
			id := enqueue(t, task.Job, s, 1)
			synctest.Wait()
			claimedAt := time.Now()
			down.Store(true)
			time.Sleep(31 * time.Second)
			require.NoError(t, stop())
			require.Equal(t, 30*time.Second, (<-doubted).Sub(claimedAt), "told when the lease is over, not later")
			rec := get(t, s, id)
			require.Equal(t, core.StateCompleted, rec.State)
			require.Equal(t, 1, rec.Attempts, "a presumed loss costs no attempt")
			require.Equal(t, []core.Outcome{core.OutcomeComplete}, outcomes(t, s, id))
			require.EqualValues(t, map[bool]int64{true: 1, false: 2}[returnsNil], rec.Fence)
		})
	}
}

// TestOldRunOfSameJob: a worker that holds an old and a new lease of one job keeps the new one alive when the old
// run ends (reference: in-flight by claim, not by job) (Q21).
func TestOldRunOfSameJob(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task", core.JobOptions[int]{MaxStalls: 9})
		spied := spyOn(s)
		var blind atomic.Bool // heartbeats of the first token fail silently
		var first atomic.Value
		spied.extend = func(ctx context.Context, ls []core.Lease) (core.Extended, error) {
			if blind.Load() {
				ls = slices.DeleteFunc(slices.Clone(ls), func(l core.Lease) bool { return l.Token == first.Load() })
			}
			return s.Extend(ctx, ls, 30*time.Second)
		}
		w := newWorker(t, spied, core.WorkerOptions{Concurrency: 2})
		var runs atomic.Int32
		task.Handle(w, func(ctx context.Context, _ int) error {
			run, _ := core.Current(ctx)
			if runs.Add(1) == 1 {
				first.Store(run.Lease.Token)
				blind.Store(true)
				time.Sleep(10 * time.Minute) // its lease runs out unnoticed
				return errBoom
			}
			time.Sleep(time.Hour)
			return nil
		})
		start(t, w)
		id := enqueue(t, task.Job, s, 1)
		time.Sleep(3 * time.Hour)
		require.EqualValues(t, 2, runs.Load(), "the second run was not disturbed by the end of the first")
		require.Equal(t, []core.Outcome{core.OutcomeStalled, core.OutcomeComplete}, outcomes(t, s, id))
	})
}

// TestHeartbeatUntilSettled: while a finished run's ack cannot land, its lease is kept (Q21, Q22).
func TestHeartbeatUntilSettled(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		spied := spyOn(s)
		until := time.Now().Add(10 * time.Minute)
		spied.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
			if time.Now().Before(until) {
				return nil, core.ErrUnavailable
			}
			return s.Ack(ctx, acks)
		}
		w := newWorker(t, spied, core.WorkerOptions{})
		var runs atomic.Int32
		task.Handle(w, func(context.Context, int) error { runs.Add(1); return nil })
		start(t, w)
		id := enqueue(t, task.Job, s, 1)
		time.Sleep(20 * time.Minute)
		require.EqualValues(t, 1, runs.Load())
		require.Equal(t, []core.Outcome{core.OutcomeComplete}, outcomes(t, s, id))
	})
}

// TestLostReplies: a store that loses every third reply to a claim or an ack loses and doubles no job (architecture decision 3).
func TestLostReplies(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		spied := spyOn(s)
		var mu sync.Mutex
		dice := rand.New(rand.NewPCG(1, 2))
		lost := func() bool { mu.Lock(); defer mu.Unlock(); return dice.IntN(3) == 0 }
		spied.claim = func(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
			c, err := s.Claim(ctx, req)
			if len(req.Wants) > 0 && lost() {
				return core.Claimed{}, core.ErrUnknown
			}
			return c, err
		}
		spied.ack = func(ctx context.Context, as []core.Ack) ([]core.AckResult, error) {
			r, err := s.Ack(ctx, as)
			if lost() {
				return nil, core.ErrUnknown
			}
			return r, err
		}
		w := newWorker(t, spied, core.WorkerOptions{Concurrency: 4})
		runs := map[int]int{}
		task.Handle(w, func(_ context.Context, n int) error {
			mu.Lock()
			runs[n]++
			mu.Unlock()
			time.Sleep(time.Second)
			return nil
		}, core.Concurrency(1))
		start(t, w)
		var ids []string
		for i := range 20 {
			ids = append(ids, enqueue(t, task.Job, s, i))
		}
		time.Sleep(15 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, runs, 20)
		for i, id := range ids {
			require.Equal(t, 1, runs[i])
			require.Equal(t, []core.Outcome{core.OutcomeComplete}, outcomes(t, s, id), "no stall: the orphaned claim was released")
		}
	})
}

// TestBusyLease: a lease whose row is held elsewhere is asked for again within Renew/3 (Q21).
func TestBusyLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		spied := spyOn(s)
		var mu sync.Mutex
		var beats []time.Time
		spied.extend = func(ctx context.Context, ls []core.Lease) (core.Extended, error) {
			mu.Lock()
			defer mu.Unlock()
			beats = append(beats, time.Now())
			if len(beats) == 1 {
				return core.Extended{Busy: ls}, nil
			}
			return s.Extend(ctx, ls, 30*time.Second)
		}
		w := newWorker(t, spied, core.WorkerOptions{})
		task.Handle(w, func(context.Context, int) error { time.Sleep(time.Minute); return nil })
		start(t, w)
		enqueue(t, task.Job, s, 1)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		require.GreaterOrEqual(t, len(beats), 2)
		require.LessOrEqual(t, beats[1].Sub(beats[0]), 10*time.Second/3)
	})
}
