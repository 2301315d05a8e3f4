package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

func TestErrClosed(t *testing.T) {
	require.ErrorIs(t, core.ErrClosed, core.ErrUnavailable)
	require.NotErrorIs(t, core.ErrUnavailable, core.ErrClosed)
	require.NotErrorIs(t, core.ErrClosed, core.ErrUnknown)
}

// TestAwaitOnClosedStore: nobody will ever answer.
func TestAwaitOnClosedStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		task := core.NewTask[int]("task")
		id := enqueue(t, task.Job, s, 1)
		done := make(chan error, 1)
		go func() { _, err := task.Await(t.Context(), s, id); done <- err }()
		time.Sleep(time.Minute)
		require.NoError(t, s.Close())
		require.ErrorIs(t, within(t, time.Second, done), core.ErrClosed)
	})
}

// within is what comes in time.
func within(t *testing.T, d time.Duration, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		require.Fail(t, "nothing came within", "%v", d)
		return nil
	}
}

// TestRunOnClosedStore: Run ends by itself (Q24), in the order of a shutdown (Q23): the handler has its Grace, and its lease
// is named.
func TestRunOnClosedStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{Concurrency: 2})
		task := core.NewTask[int]("task")
		returned := false
		task.Handle(w, func(ctx context.Context, _ int) error {
			time.Sleep(15 * time.Second)
			returned = true
			return ctx.Err()
		})
		id := enqueue(t, task.Job, s, 1)
		done := make(chan error, 1)
		go func() { done <- w.Run(t.Context()) }()
		synctest.Wait()
		began := time.Now()
		require.NoError(t, s.Close())
		err := within(t, time.Minute, done)
		require.ErrorIs(t, err, core.ErrClosed)
		require.True(t, returned)
		left, ok := errors.AsType[*core.ShutdownError](err)
		require.True(t, ok, "%v", err)
		require.Len(t, left.Jobs, 1)
		require.Equal(t, id, left.Jobs[0].ID)
		require.Equal(t, 15*time.Second, time.Since(began), "no ack is repeated")
	})
}

// TestIdleRunOnClosedStore: with nothing in flight nothing is named.
func TestIdleRunOnClosedStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{})
		core.NewTask[int]("task").Handle(w, func(context.Context, int) error { return nil })
		done := make(chan error, 1)
		go func() { done <- w.Run(t.Context()) }()
		synctest.Wait()
		require.NoError(t, s.Close())
		err := within(t, 10*time.Second, done)
		require.ErrorIs(t, err, core.ErrClosed)
		_, named := errors.AsType[*core.ShutdownError](err)
		require.False(t, named)
		// Nothing is left over from it: a Run on another occasion fails the same way.
		require.ErrorIs(t, w.Run(t.Context()), core.ErrClosed)
	})
}

// TestCompleteOnClosedStore: a run that completed in a transaction of its own, and whose lease nobody can be asked about, is
// named and not asked about again (Q14).
func TestCompleteOnClosedStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{})
		task := core.NewTask[int]("task")
		task.Handle(w, func(ctx context.Context, _ int) error {
			tx := s.Begin()
			require.NoError(t, task.Complete(ctx, s.WithTx(tx)))
			require.NoError(t, tx.Commit())
			return s.Close()
		})
		id := enqueue(t, task.Job, s, 1)
		done := make(chan error, 1)
		go func() { done <- w.Run(t.Context()) }()
		err := within(t, 10*time.Second, done)
		require.ErrorIs(t, err, core.ErrClosed)
		left, ok := errors.AsType[*core.ShutdownError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, id, left.Jobs[0].ID)
	})
}
