package bunstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// TestWakeAcrossHandles: another handle on the file is what another process is (Q15).
func TestWakeAcrossHandles(t *testing.T) {
	here := open(t)
	there := openAt(t, pathOf(t, here))
	ctx := context.Background()
	since := claim(t, here, 1, "job").Wake
	for range 5 {
		woken := make(chan core.Wake, 1)
		go func() {
			if w, err := here.AwaitWake(ctx, []string{"q"}, since); err == nil {
				woken <- w
			}
		}()
		began := time.Now()
		enqueue(t, there, request("job"))
		since = (<-woken).Token
		require.Less(t, time.Since(began), 250*time.Millisecond)
	}
}

// TestWakeIsOfItsQueue: news of one queue leave the waiters of others alone, whoever reads the table for all.
func TestWakeIsOfItsQueue(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	since := claim(t, s, 1, "job").Wake
	other, mine := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.AwaitWake(ctx, []string{"other"}, since)
		other <- err
	}()
	go func() {
		_, err := s.AwaitWake(ctx, []string{"q"}, since)
		mine <- err
	}()
	enqueue(t, s, request("job"))
	require.NoError(t, <-mine)
	cancel()
	require.ErrorIs(t, <-other, context.Canceled)
}

// TestWakeWithForeignTokens: a token that the store can't place returns at once and never waits for good.
func TestWakeWithForeignTokens(t *testing.T) {
	s := open(t)
	for _, token := range []core.WakeToken{"", "nonsense", "-5", "999999999"} {
		w, err := s.AwaitWake(context.Background(), []string{"q"}, token)
		require.NoError(t, err)
		require.NotEmpty(t, w.Token)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	s := open(t)
	ctx := context.Background()
	since := claim(t, s, 1, "job").Wake
	waiting := make(chan error, 3)
	for range cap(waiting) {
		go func() {
			_, err := s.AwaitWake(ctx, []string{"q"}, since)
			waiting <- err
		}()
	}
	require.NoError(t, s.Close())
	for range cap(waiting) {
		require.ErrorIs(t, <-waiting, core.ErrClosed)
	}
	require.NoError(t, s.Close())
	_, err := s.Enqueue(ctx, []core.EnqueueRequest{request("job")})
	require.ErrorIs(t, err, core.ErrClosed)
	_, err = s.Counts(ctx, "")
	require.ErrorIs(t, err, core.ErrClosed)
	require.ErrorIs(t, s.Migrate(ctx), core.ErrClosed)
	_, err = s.AwaitWake(ctx, nil, "")
	require.ErrorIs(t, err, core.ErrClosed)
}

// TestCallsHonourTheirContext: a call that ended by its context was not done.
func TestCallsHonourTheirContext(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Enqueue(ctx, []core.EnqueueRequest{request("job")})
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.ErrorIs(t, err, context.Canceled)

	tx, err := s.DB().BeginTx(context.Background(), nil)
	require.NoError(t, err)
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = s.Enqueue(ctx, []core.EnqueueRequest{request("job")})
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, tx.Rollback())
	require.Empty(t, claim(t, s, 1, "job").Jobs)
}
