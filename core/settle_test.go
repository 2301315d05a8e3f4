package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestAckBatches: what gathers while a flush is under way goes with the next, each job once per batch; an idle
// ack waits for nothing (Q18, Q22).
func TestAckBatches(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		spied := spyOn(s)
		spied.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
			seen := map[string]bool{}
			for _, a := range acks {
				if seen[a.Lease.ID] {
					t.Errorf("%s twice in a batch", a.Lease.ID)
				}
				seen[a.Lease.ID] = true
			}
			time.Sleep(10 * time.Millisecond) // a round trip
			return s.Ack(ctx, acks)
		}
		w := newWorker(t, spied, core.WorkerOptions{Concurrency: 100})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { return nil })
		start(t, w)
		_, err := task.EnqueueMany(t.Context(), s, make([]int, 5000))
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		require.EqualValues(t, 5000, counts(t, s)[core.StateCompleted])
		require.LessOrEqual(t, spied.called("ack"), 5000/25)

		id := enqueue(t, task.Job, s, 1)
		time.Sleep(11 * time.Millisecond)
		require.Equal(t, core.StateCompleted, get(t, s, id).State, "a single ack is sent at once")
	})
}

// TestDataFault: a row that the store refuses ends as failed with the reason; its neighbours land (Q22).
func TestDataFault(t *testing.T) {
	for _, pinned := range []bool{true, false} {
		t.Run(fmt.Sprintf("store says which row: %v", pinned), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *memstore.Store) {
				spied := spyOn(s)
				bad := func(a core.Ack) bool { return string(a.Result) == "13" }
				spied.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
					time.Sleep(time.Millisecond)
					var ok []core.Ack
					for _, a := range acks {
						if !bad(a) {
							ok = append(ok, a)
						} else if !pinned {
							return nil, fmt.Errorf("batch refused: %w", &core.InvalidError{Field: "Result", Reason: "is unlucky"})
						}
					}
					landed, err := s.Ack(ctx, ok)
					if err != nil {
						return nil, err
					}
					var res []core.AckResult
					for _, a := range acks {
						if bad(a) {
							res = append(res, core.AckResult{Err: errors.New("is unlucky")})
							continue
						}
						res, landed = append(res, landed[0]), landed[1:]
					}
					return res, nil
				}
				failed := make(chan core.Failed, 1)
				w := newWorker(t, spied, core.WorkerOptions{
					Concurrency: 50, OnFailure: func(_ context.Context, f core.Failed) { failed <- f },
				})
				job := core.NewJob[int, int]("job")
				job.Handle(w, func(_ context.Context, n int) (int, error) { return n, nil })
				var payloads []int
				for i := range 50 {
					payloads = append(payloads, i)
				}
				res, err := job.EnqueueMany(t.Context(), s, payloads)
				require.NoError(t, err)
				stop := start(t, w)
				time.Sleep(time.Second)
				require.NoError(t, stop())
				require.EqualValues(t, 49, counts(t, s)[core.StateCompleted])
				rec := get(t, s, res[13].ID)
				require.Equal(t, core.StateFailed, rec.State)
				require.Contains(t, rec.Failure.Message, "unlucky")
				require.Equal(t, res[13].ID, (<-failed).Run.ID)
			})
		})
	}
}

// TestHeldRow: an ack whose row is held elsewhere is offered again; the others don't wait for it (Q22).
func TestHeldRow(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		spied := spyOn(s)
		var held atomic.Bool
		held.Store(true)
		var first string
		spied.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
			res := make([]core.AckResult, len(acks))
			for i, a := range acks {
				if a.Lease.ID == first && held.Load() {
					res[i].Err = core.ErrUnavailable
					continue
				}
				r, err := s.Ack(ctx, []core.Ack{a})
				if err != nil {
					return nil, err
				}
				res[i] = r[0]
			}
			return res, nil
		}
		w := newWorker(t, spied, core.WorkerOptions{})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { return nil })
		first = enqueue(t, task.Job, s, 1)
		second := enqueue(t, task.Job, s, 2)
		start(t, w)
		time.Sleep(10 * time.Minute)
		require.Equal(t, core.StateActive, get(t, s, first).State, "kept alive, not stalled")
		require.Equal(t, core.StateCompleted, get(t, s, second).State)
		held.Store(false)
		time.Sleep(2 * time.Second)
		require.Equal(t, []core.Outcome{core.OutcomeComplete}, outcomes(t, s, first))
	})
}

// TestFullSettleQueue: takers wait when outcomes cannot be delivered; memory stays bounded, nothing is lost (Q22).
func TestFullSettleQueue(t *testing.T) {
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
		var ran atomic.Int32
		w := newWorker(t, spied, core.WorkerOptions{Concurrency: 50})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { ran.Add(1); return nil })
		_, err := task.EnqueueMany(t.Context(), s, make([]int, 10_000))
		require.NoError(t, err)
		start(t, w)
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, ran.Load(), int32(2000))
		down.Store(false)
		time.Sleep(time.Minute)
		require.EqualValues(t, 10_000, counts(t, s)[core.StateCompleted])
		require.EqualValues(t, 10_000, ran.Load())
	})
}

// TestCompleteInTransaction: the job ends by the commit and with it, or not at all (Q14).
func TestCompleteInTransaction(t *testing.T) {
	for _, c := range []struct {
		name     string
		commit   bool
		ret      error
		state    core.State
		outcomes []core.Outcome
		failure  string
	}{
		{"commit and nil", true, nil, core.StateCompleted, []core.Outcome{core.OutcomeComplete}, ""},
		{"commit and error", true, errBoom, core.StateCompleted, []core.Outcome{core.OutcomeComplete}, ""},
		{"rollback and nil", false, nil, core.StateFailed, []core.Outcome{core.OutcomeFail}, "not committed"},
		{"rollback and error", false, errBoom, core.StateFailed, []core.Outcome{core.OutcomeFail}, "boom"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *memstore.Store) {
				spied := spyOn(s)
				var hooks atomic.Int32
				w := newWorker(t, spied, core.WorkerOptions{OnFailure: func(context.Context, core.Failed) { hooks.Add(1) }})
				job := core.NewJob[int, string]("job", core.JobOptions[int]{MaxAttempts: 1})
				next := core.NewTask[int]("next")
				job.Handle(w, func(ctx context.Context, n int) (string, error) {
					tx := s.Begin()
					view := s.WithTx(tx)
					if _, err := next.Enqueue(ctx, view, n); err != nil {
						return "", err
					}
					if err := job.Complete(ctx, view, "in tx"); err != nil {
						return "", err
					}
					if !c.commit {
						return "ignored", errors.Join(tx.Rollback(), c.ret)
					}
					return "ignored", errors.Join(tx.Commit(), c.ret)
				})
				stop := start(t, w)
				id := enqueue(t, job, s, 1)
				time.Sleep(time.Minute)
				require.NoError(t, stop())
				rec := get(t, s, id)
				require.Equal(t, c.state, rec.State)
				require.Equal(t, c.outcomes, outcomes(t, s, id))
				if c.commit {
					require.Equal(t, `"in tx"`, string(rec.Result))
					require.EqualValues(t, 1, counts(t, s)[core.StateWaiting])
					require.Zero(t, spied.called("ack"), "ended once")
					require.Zero(t, hooks.Load())
				} else {
					require.Contains(t, rec.Failure.Message, c.failure)
					require.Zero(t, counts(t, s)[core.StateWaiting])
					require.EqualValues(t, 1, hooks.Load())
				}
			})
		})
	}
}

// TestCompleteInLongTransaction: a heartbeat that sees the lease gone does not cancel a run that ended it itself,
// and one whose transaction is still open is asked about until it is decided (Q14).
func TestCompleteInLongTransaction(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{})
		task := core.NewTask[int]("task")
		var cause error
		task.Handle(w, func(ctx context.Context, _ int) error {
			tx := s.Begin()
			if err := task.Complete(ctx, s.WithTx(tx)); err != nil {
				return err
			}
			if err := tx.Commit(); err != nil {
				return err
			}
			time.Sleep(5 * time.Minute) // mail somebody
			cause = context.Cause(ctx)
			return nil
		})
		stop := start(t, w)
		id := enqueue(t, task.Job, s, 1)
		synctest.Wait()
		require.NoError(t, func() error { time.Sleep(6 * time.Minute); return stop() }())
		require.NoError(t, cause)
		require.Equal(t, []core.Outcome{core.OutcomeComplete}, outcomes(t, s, id))
	})
}

// TestCompleteOutsideRun is refused.
func TestCompleteOutsideRun(t *testing.T) {
	s := memstore.New(memstore.Options{})
	tx := s.Begin()
	var invalid *core.InvalidError
	require.ErrorAs(t, core.NewTask[int]("task").Complete(t.Context(), s.WithTx(tx)), &invalid)
	require.NoError(t, tx.Rollback())
}
