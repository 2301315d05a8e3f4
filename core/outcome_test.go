package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestOutcomes goes through what a handler can do and what becomes of its job (Q19).
func TestOutcomes(t *testing.T) {
	type want struct {
		state    core.State
		ledger   core.Outcome // "": no entry
		attempts int
		failure  string // part of the ledger's failure
		dueIn    time.Duration
	}
	exact := core.Fixed(time.Minute, core.NoJitter())
	for _, c := range []struct {
		name    string
		opts    core.JobOptions[int]
		handler func(ctx context.Context) (any, error)
		want    want
	}{
		{"nil completes", core.JobOptions[int]{}, func(context.Context) (any, error) { return "done", nil },
			want{core.StateCompleted, core.OutcomeComplete, 1, "", 0}},
		{"an error is retried after the backoff", core.JobOptions[int]{}, func(context.Context) (any, error) { return nil, errBoom },
			want{core.StateDelayed, core.OutcomeRetry, 1, "boom", time.Minute}},
		{"the last attempt fails", core.JobOptions[int]{MaxAttempts: 1}, func(context.Context) (any, error) { return nil, errBoom },
			want{core.StateFailed, core.OutcomeFail, 1, "boom", 0}},
		{"unrecoverable fails at once", core.JobOptions[int]{},
			func(context.Context) (any, error) { return nil, fmt.Errorf("wrapped: %w", core.Unrecoverable(errBoom)) },
			want{core.StateFailed, core.OutcomeFail, 1, "boom", 0}},
		{"retry after replaces the backoff", core.JobOptions[int]{},
			func(context.Context) (any, error) { return nil, core.RetryAfter(time.Hour, errBoom) },
			want{core.StateDelayed, core.OutcomeRetry, 1, "boom", time.Hour}},
		{"retry after keeps to the budget", core.JobOptions[int]{MaxAttempts: 1},
			func(context.Context) (any, error) { return nil, core.RetryAfter(time.Hour, errBoom) },
			want{core.StateFailed, core.OutcomeFail, 1, "boom", 0}},
		{"snooze costs nothing", core.JobOptions[int]{MaxAttempts: 1},
			func(context.Context) (any, error) { return nil, core.Snooze(time.Hour) },
			want{core.StateDelayed, "", 0, "", time.Hour}},
		{"retryable says no", core.JobOptions[int]{Retryable: func(err error) bool { return !errors.Is(err, errBoom) }},
			func(context.Context) (any, error) { return nil, errBoom },
			want{core.StateFailed, core.OutcomeFail, 1, "boom", 0}},
		{"a panicking retryable is a failed attempt", core.JobOptions[int]{Retryable: func(error) bool { panic("no") }},
			func(context.Context) (any, error) { return nil, errBoom },
			want{core.StateDelayed, core.OutcomeRetry, 1, "panic", time.Minute}},
		{"a panic is a failed attempt", core.JobOptions[int]{}, func(context.Context) (any, error) { panic("ouch") },
			want{core.StateDelayed, core.OutcomeRetry, 1, "ouch", time.Minute}},
		{"Goexit is a failed attempt", core.JobOptions[int]{}, func(context.Context) (any, error) { runtime.Goexit(); return nil, nil },
			want{core.StateDelayed, core.OutcomeRetry, 1, "Goexit", time.Minute}},
		{"an error that panics is a failed attempt", core.JobOptions[int]{}, func(context.Context) (any, error) { return nil, panickyError{} },
			want{core.StateDelayed, core.OutcomeRetry, 1, "panic", time.Minute}},
		{"an error that calls Goexit is a failed attempt", core.JobOptions[int]{}, func(context.Context) (any, error) { return nil, goexitError{} },
			want{core.StateDelayed, core.OutcomeRetry, 1, "Goexit", time.Minute}},
		{"a result that cannot be encoded fails", core.JobOptions[int]{}, func(context.Context) (any, error) { return make(chan int), nil },
			want{core.StateFailed, core.OutcomeFail, 1, "encode result", 0}},
		{"a timeout is a failed attempt", core.JobOptions[int]{Timeout: time.Second},
			func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
			want{core.StateDelayed, core.OutcomeRetry, 1, "deadline", time.Minute}},
		{"the handler's own deadline is an ordinary error", core.JobOptions[int]{},
			func(ctx context.Context) (any, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			},
			want{core.StateDelayed, core.OutcomeRetry, 1, "deadline", time.Minute}},
		{"Canceled out of the blue is an ordinary error", core.JobOptions[int]{MaxAttempts: 1},
			func(context.Context) (any, error) { return nil, context.Canceled },
			want{core.StateFailed, core.OutcomeFail, 1, "canceled", 0}},
		{"nil wins over a timeout", core.JobOptions[int]{Timeout: time.Second},
			func(ctx context.Context) (any, error) { <-ctx.Done(); return "done", nil },
			want{core.StateCompleted, core.OutcomeComplete, 1, "", 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *memstore.Store) {
				c.opts.Backoff = exact
				job := core.NewJob[int, any]("job", c.opts)
				w := newWorker(t, s, core.WorkerOptions{})
				job.Handle(w, func(ctx context.Context, _ int) (any, error) { return c.handler(ctx) })
				id := enqueue(t, job, s, 1)
				_, err := w.Drain(t.Context(), core.DrainOptions{Limit: 1})
				require.NoError(t, err)
				rec := get(t, s, id)
				require.Equal(t, c.want.state, rec.State)
				require.Equal(t, c.want.attempts, rec.Attempts)
				require.Equal(t, c.want.dueIn, max(0, time.Until(rec.RunAt)))
				entries := ledger(t, s, id)
				if c.want.ledger == "" {
					require.Empty(t, entries)
					return
				}
				require.Len(t, entries, 1)
				require.Equal(t, c.want.ledger, entries[0].Outcome)
				if c.want.failure != "" {
					require.Contains(t, entries[0].Failure.Message, c.want.failure)
				}
			})
		})
	}
}

type panickyError struct{}

func (panickyError) Error() string { panic("no text") }

type goexitError struct{}

func (goexitError) Error() string { runtime.Goexit(); return "" }

// TestCancelledRun: whatever a cancelled handler returns but nil, its job is cancelled without an attempt used (Q6, Q19).
func TestCancelledRun(t *testing.T) {
	for name, ret := range map[string]error{"context error": nil, "own error": errBoom, "unrecoverable": core.Unrecoverable(errBoom)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *memstore.Store) {
				task := core.NewTask[int]("task")
				w := newWorker(t, s, core.WorkerOptions{})
				var cause error
				task.Handle(w, func(ctx context.Context, _ int) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					if ret == nil {
						return ctx.Err()
					}
					return ret
				})
				stop := start(t, w)
				id := enqueue(t, task.Job, s, 1)
				synctest.Wait()
				began := time.Now()
				state, err := s.Cancel(t.Context(), id)
				require.NoError(t, err)
				require.Equal(t, core.StateActive, state)
				synctest.Wait()
				require.Equal(t, began, time.Now(), "the wake channel delivers a cancel at once (Q8)")
				require.NoError(t, stop())
				require.ErrorIs(t, cause, core.ErrCancelled)
				rec := get(t, s, id)
				require.Equal(t, core.StateCancelled, rec.State)
				require.Zero(t, rec.Attempts)
				require.Equal(t, []core.Outcome{core.OutcomeCancel}, outcomes(t, s, id))
			})
		})
	}
}

// TestCancelLosesToSuccess: nil completes even a cancelled run (Q6).
func TestCancelLosesToSuccess(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		w := newWorker(t, s, core.WorkerOptions{})
		task.Handle(w, func(ctx context.Context, _ int) error { <-ctx.Done(); return nil })
		start(t, w)
		id := enqueue(t, task.Job, s, 1)
		synctest.Wait()
		_, err := s.Cancel(t.Context(), id)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, core.StateCompleted, get(t, s, id).State)
	})
}

// TestCorruptPayload: a payload that cannot be decoded is an ordinary failed attempt, and its neighbours run (Q19).
func TestCorruptPayload(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 2, Backoff: core.Fixed(0)})
		w := newWorker(t, s, core.WorkerOptions{Concurrency: 10})
		ran := 0
		task.Handle(w, func(context.Context, int) error { ran++; return nil }, core.Concurrency(1))
		req, err := task.Request(t.Context(), 0)
		require.NoError(t, err)
		req.Payload = []byte("{")
		reqs := []core.EnqueueRequest{req}
		for i := range 9 {
			good, err := task.Request(t.Context(), i)
			require.NoError(t, err)
			reqs = append(reqs, good)
		}
		res, err := s.Enqueue(t.Context(), reqs)
		require.NoError(t, err)
		_, err = w.Drain(t.Context(), core.DrainOptions{})
		require.NoError(t, err)
		require.Equal(t, 9, ran)
		require.Equal(t, []core.Outcome{core.OutcomeRetry, core.OutcomeFail}, outcomes(t, s, res[0].ID))
	})
}

// TestFailureText: what reaches the store is clean and bounded (Q22).
func TestFailureText(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 1})
		w := newWorker(t, s, core.WorkerOptions{})
		task.Handle(w, func(context.Context, int) error {
			return errors.New("a\x00b\xff" + strings.Repeat("ü", 100_000))
		})
		id := enqueue(t, task.Job, s, 1)
		_, err := w.Drain(t.Context(), core.DrainOptions{})
		require.NoError(t, err)
		f := get(t, s, id).Failure
		require.True(t, strings.HasPrefix(f.Message, "ab?ü"), f.Message[:10])
		require.LessOrEqual(t, len(f.Message), core.MaxFailureBytes)
		require.Equal(t, "*errors.errorString", f.Type)
	})
}

// TestOnFailure is told what the store did, after it did it (Q6).
func TestOnFailure(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 2, Backoff: core.Fixed(time.Hour, core.NoJitter())})
		told := make(chan core.Failed, 10)
		w := newWorker(t, s, core.WorkerOptions{OnFailure: func(_ context.Context, f core.Failed) {
			told <- f
			panic("a hook's panic is its own")
		}})
		task.Handle(w, func(context.Context, int) error { return errBoom })
		start(t, w)
		id := enqueue(t, task.Job, s, 1)
		f := <-told
		require.Equal(t, core.StateDelayed, f.State)
		require.Equal(t, time.Hour, f.RetryIn)
		require.Equal(t, 1, f.Run.Attempt)
		require.ErrorIs(t, f.Err, errBoom)
		f = <-told
		require.Equal(t, core.StateFailed, f.State)
		require.Equal(t, id, f.Run.ID)
		require.Equal(t, 2, f.Run.Attempt)
	})
}

// TestSnoozedFor sees through what wraps it.
func TestSnoozedFor(t *testing.T) {
	d, ok := core.SnoozedFor(fmt.Errorf("later: %w", core.Snooze(time.Minute)))
	require.True(t, ok)
	require.Equal(t, time.Minute, d)
	for _, err := range []error{nil, errBoom, core.RetryAfter(time.Minute, errBoom)} {
		_, ok := core.SnoozedFor(err)
		require.False(t, ok)
	}
}
