package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// diary is a Hooks value that writes everything down.
type diary struct {
	mu       sync.Mutex
	order    []string
	finished []core.Finished
	lost     []core.LostLease
	failed   []core.Failed
	swept    []core.Recovered
	claims   []core.ClaimCall
	missed   int
}

func (d *diary) note(what, id string, keep func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.order = append(d.order, what+" "+id)
	keep()
}

func (d *diary) hooks() core.Hooks {
	return core.Hooks{
		Start: func(_ context.Context, r core.Run) { d.note("start", r.ID, func() {}) },
		Finish: func(_ context.Context, f core.Finished) {
			d.note("finish", f.Run.ID, func() { d.finished = append(d.finished, f) })
		},
		Failure: func(_ context.Context, f core.Failed) {
			d.note("failure", f.Run.ID, func() { d.failed = append(d.failed, f) })
		},
		LeaseLost: func(_ context.Context, l core.LostLease) {
			d.note("lost", l.Run.ID, func() { d.lost = append(d.lost, l) })
		},
		Stall: func(_ context.Context, r core.Recovered) {
			d.note("stall", r.ID, func() { d.swept = append(d.swept, r) })
		},
		Claim: func(_ context.Context, c core.ClaimCall) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.claims = append(d.claims, c)
		},
		Missed: func(_ context.Context, n int) { d.note("missed", "", func() { d.missed += n }) },
	}
}

// TestHooksTellTheTruth: what the store did, after it did it, with durations (Q6).
func TestHooksTellTheTruth(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     error
		cancel  bool
		outcome core.Outcome
		state   core.State
		retryIn time.Duration
		failure bool
	}{
		{name: "complete", outcome: core.OutcomeComplete, state: core.StateCompleted},
		{name: "retry", err: errBoom, outcome: core.OutcomeRetry, state: core.StateDelayed, retryIn: time.Minute, failure: true},
		{name: "cancelled instead", err: errBoom, cancel: true, outcome: core.OutcomeRetry, state: core.StateCancelled, failure: true},
		{name: "fail", err: core.Unrecoverable(errBoom), outcome: core.OutcomeFail, state: core.StateFailed, failure: true},
		{name: "snooze", err: core.Snooze(time.Hour), outcome: core.OutcomeSnooze, state: core.StateDelayed, retryIn: time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *memstore.Store) {
				spied := spyOn(s)
				spied.extend = func(context.Context, []core.Lease) (core.Extended, error) { return core.Extended{}, nil }
				spied.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
					time.Sleep(500 * time.Millisecond)
					return s.Ack(ctx, acks)
				}
				var d diary
				w := newWorker(t, spied, core.WorkerOptions{Hooks: []core.Hooks{{}, d.hooks()}})
				task := core.NewTask[int]("task", core.JobOptions[int]{Backoff: core.Fixed(time.Minute, core.NoJitter())})
				task.Handle(w, func(ctx context.Context, _ int) error {
					time.Sleep(2 * time.Second)
					if run, _ := core.Current(ctx); c.cancel { // unheard of by the handler
						if _, err := s.Cancel(ctx, run.ID); err != nil {
							return err
						}
					}
					return c.err
				})
				id := enqueue(t, task.Job, s, 1)
				time.Sleep(7 * time.Second)
				stop := start(t, w)
				time.Sleep(3 * time.Second)
				require.NoError(t, stop())

				order := []string{"start " + id, "finish " + id}
				if c.failure {
					order = append(order, "failure "+id)
					require.Equal(t, c.state, d.failed[0].State)
				}
				require.Equal(t, order, d.order)
				f := d.finished[0]
				require.Equal(t, 1, f.Run.Attempt)
				require.Equal(t, c.outcome, f.Outcome)
				require.Equal(t, c.state, f.State)
				require.Equal(t, c.retryIn, f.RetryIn)
				require.Equal(t, c.err, f.Err)
				require.Equal(t, c.failure, f.Failure != nil)
				require.False(t, f.InTx)
				require.Equal(t, 7*time.Second, f.Wait)
				require.Equal(t, 2*time.Second, f.Ran)
				require.Equal(t, 9500*time.Millisecond, f.Total)
				require.Equal(t, []core.QueueClaim{{Queue: "default", Asked: 1, Got: 1}}, d.claims[0].Queues)
				require.NoError(t, d.claims[0].Err)
				require.Greater(t, len(d.claims), 1, "claims that bring nothing are told, too")
			})
		})
	}
}

// TestHooksOfCompleteInTx: a run that its own transaction ended is told as completed; one whose transaction was rolled
// back as what became of it (Q14).
func TestHooksOfCompleteInTx(t *testing.T) {
	for _, commit := range []bool{true, false} {
		bubble(t, func(t *testing.T, s *memstore.Store) {
			var d diary
			w := newWorker(t, s, core.WorkerOptions{Hooks: []core.Hooks{d.hooks()}})
			task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 1})
			task.Handle(w, func(ctx context.Context, _ int) error {
				tx := s.Begin()
				if err := task.Complete(ctx, s.WithTx(tx)); err != nil {
					return err
				}
				if !commit {
					return tx.Rollback()
				}
				return errors.Join(tx.Commit(), errBoom)
			})
			enqueue(t, task.Job, s, 1)
			n, err := w.Drain(t.Context(), core.DrainOptions{})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Len(t, d.finished, 1)
			require.Empty(t, d.lost)
			f := d.finished[0]
			require.Equal(t, commit, f.InTx)
			if commit {
				require.Equal(t, core.StateCompleted, f.State)
				require.Equal(t, core.OutcomeComplete, f.Outcome)
				require.Nil(t, f.Failure)
			} else {
				require.Equal(t, core.StateFailed, f.State)
				require.ErrorIs(t, f.Err, core.ErrTxNotCommitted)
			}
		})
	}
}

// TestHooksOfLostLeases: each run has one end, also where its lease is reported lost more than once (Q19).
func TestHooksOfLostLeases(t *testing.T) {
	for _, c := range []struct {
		name    string
		extend  bool // a heartbeat reports the loss, else the ack
		outcome core.Outcome
	}{{"reported", true, ""}, {"dropped", false, core.OutcomeComplete}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *memstore.Store) {
				var d diary
				spied := spyOn(s)
				spied.extend = func(_ context.Context, ls []core.Lease) (core.Extended, error) {
					if c.extend {
						return core.Extended{Lost: ls}, nil
					}
					return core.Extended{}, nil // it says so, and does nothing
				}
				w := newWorker(t, spied, core.WorkerOptions{Concurrency: 2, Lease: 3 * time.Second, Hooks: []core.Hooks{d.hooks()}})
				task := core.NewTask[int]("task")
				task.Handle(w, func(ctx context.Context, _ int) error {
					run, _ := core.Current(ctx)
					if run.Attempt == 1 && get(t, s, run.ID).Stalls == 0 {
						time.Sleep(time.Minute)
					}
					return nil
				})
				stop := start(t, w)
				id := enqueue(t, task.Job, s, 1)
				time.Sleep(10 * time.Minute)
				require.NoError(t, stop())
				require.Equal(t, core.StateCompleted, get(t, s, id).State)
				require.Len(t, d.finished, 1)
				require.Len(t, d.lost, 1)
				require.Equal(t, c.outcome, d.lost[0].Outcome)
				require.ErrorIs(t, d.lost[0].Err, core.ErrLeaseLost)
				require.Equal(t, []core.Recovered{{ID: id, Name: "task", Queue: "default", State: core.StateDelayed}}, d.swept)
				require.Empty(t, d.failed)
			})
		})
	}
}

// TestHooksOfASweep: jobs that a sweep fails are told as failures, as OnFailure is.
func TestHooksOfASweep(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		var d diary
		task := core.NewTask[int]("task")
		id := enqueue(t, task.Job, s, 1)
		_, err := s.Claim(t.Context(), core.ClaimRequest{
			Wants: []core.Want{{Queue: "default", Names: []string{"task"}, Limit: 1}}, Token: core.NewToken(),
		})
		require.NoError(t, err)
		stop := start(t, newWorker(t, s, core.WorkerOptions{MaxStalls: -1, Hooks: []core.Hooks{d.hooks()}}))
		time.Sleep(2 * time.Minute)
		require.NoError(t, stop())
		require.Equal(t, []string{"stall " + id, "failure " + id}, d.order)
		require.Equal(t, "stalled", d.failed[0].Failure.Type)
	})
}

// TestHooksAtShutdown: what could not be told to the store ends as a lost lease, and jobs that were claimed and never
// started are told of by nothing but the claim.
func TestHooksAtShutdown(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		var d diary
		spied := spyOn(s)
		spied.ack = func(context.Context, []core.Ack) ([]core.AckResult, error) { return nil, core.ErrUnavailable }
		w := newWorker(t, spied, core.WorkerOptions{Hooks: []core.Hooks{d.hooks()}})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { return nil })
		enqueue(t, task.Job, s, 1)
		stop := start(t, w)
		synctest.Wait()
		var shutdown *core.ShutdownError
		require.ErrorAs(t, stop(), &shutdown)
		require.Len(t, d.lost, 1)
		require.ErrorIs(t, d.lost[0].Err, core.ErrStopping)
		require.Empty(t, d.finished)
	})
}

// TestHooksServedBeforeDrainReturns: whoever drains and then looks at what the hooks heard misses nothing.
func TestHooksServedBeforeDrainReturns(t *testing.T) {
	s := memstore.New(memstore.Options{})
	var ends atomic.Int64
	w := newWorker(t, s, core.WorkerOptions{Concurrency: 8, Hooks: []core.Hooks{{
		Finish: func(context.Context, core.Finished) { ends.Add(1) },
	}}})
	task := core.NewTask[int]("task")
	task.Handle(w, func(context.Context, int) error { return nil })
	for i := range 3 {
		_, err := task.EnqueueMany(t.Context(), s, make([]int, 1000))
		require.NoError(t, err)
		_, err = w.Drain(t.Context(), core.DrainOptions{})
		require.NoError(t, err)
		require.EqualValues(t, (i+1)*1000, ends.Load(), fmt.Sprint("drain ", i))
	}
}
