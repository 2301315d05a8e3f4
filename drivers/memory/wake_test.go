package memstore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// await starts an AwaitWake and returns where its answer will be.
func await(ctx context.Context, s core.Store, since core.WakeToken, queues ...string) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := s.AwaitWake(ctx, queues, since)
		answer <- err
	}()
	return answer
}

func now(t *testing.T, s core.Store) core.WakeToken {
	t.Helper()
	w, err := s.AwaitWake(t.Context(), nil, "")
	require.NoError(t, err)
	return w.Token
}

// Every waiter of a queue wakes, and nobody else does (Q15).
func TestWakeReachesTheQueueOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{})
		since := now(t, s)
		one, two := await(t.Context(), s, since, "q"), await(t.Context(), s, since, "p", "q", "q")
		other := await(t.Context(), s, since, "p")
		control := await(t.Context(), s, since)
		synctest.Wait()
		enqueue(t, s, request("work"))
		require.NoError(t, <-one)
		require.NoError(t, <-two)
		synctest.Wait()
		require.Empty(t, other)
		require.Empty(t, control)

		require.NoError(t, s.Close())
		require.ErrorIs(t, <-other, core.ErrUnavailable)
		require.ErrorIs(t, <-control, core.ErrUnavailable)
	})
}

// Everything that makes a job of a queue pending wakes it, and nothing else does (Q15).
func TestWhatWakes(t *testing.T) {
	ack := func(o core.Outcome) func(t *testing.T, s *memstore.Store, l core.Lease) {
		return func(t *testing.T, s *memstore.Store, l core.Lease) {
			_, err := s.Ack(t.Context(), []core.Ack{{Lease: l, Outcome: o, Delay: time.Minute}})
			require.NoError(t, err)
		}
	}
	for name, c := range map[string]struct {
		wakes bool
		do    func(t *testing.T, s *memstore.Store, l core.Lease)
	}{
		"complete": {false, ack(core.OutcomeComplete)},
		"fail":     {false, ack(core.OutcomeFail)},
		"cancel":   {false, ack(core.OutcomeCancel)},
		"retry":    {true, ack(core.OutcomeRetry)},
		"snooze":   {true, ack(core.OutcomeSnooze)},
		"release":  {true, ack(core.OutcomeRelease)},
		"sweep": {true, func(t *testing.T, s *memstore.Store, l core.Lease) {
			taken, err := s.RecoverStalled(t.Context(), core.RecoverRequest{MaxStalls: 1})
			require.NoError(t, err)
			require.Equal(t, core.StateDelayed, taken[0].State)
		}},
		"sweep to the end": {false, func(t *testing.T, s *memstore.Store, l core.Lease) {
			taken, err := s.RecoverStalled(t.Context(), core.RecoverRequest{})
			require.NoError(t, err)
			require.Equal(t, core.StateFailed, taken[0].State)
		}},
		"duplicate": {false, func(t *testing.T, s *memstore.Store, l core.Lease) {
			r := request("work")
			r.ID = l.ID
			enqueue(t, s, r)
		}},
		"promote": {true, func(t *testing.T, s *memstore.Store, _ core.Lease) {
			require.NoError(t, s.Promote(t.Context(), "late"))
		}},
		"retry by hand": {true, func(t *testing.T, s *memstore.Store, _ core.Lease) {
			require.NoError(t, s.Retry(t.Context(), "ended"))
		}},
		"pause":  {false, func(t *testing.T, s *memstore.Store, _ core.Lease) { require.NoError(t, s.Pause(t.Context(), "q")) }},
		"resume": {true, func(t *testing.T, s *memstore.Store, _ core.Lease) { require.NoError(t, s.Resume(t.Context(), "q")) }},
	} {
		t.Run(name, func(t *testing.T) {
			s, clk := newStore(t)
			for _, id := range []string{"ended", "late", "held"} {
				r := request("work")
				if r.ID = id; id == "late" {
					r.Delay = time.Hour
				}
				enqueue(t, s, r)
			}
			ack(core.OutcomeFail)(t, s, claimOne(t, s, "work"))
			l := claimOne(t, s, "work")
			clk.advance(time.Minute)
			before := now(t, s)
			c.do(t, s, l)
			require.Equal(t, c.wakes, now(t, s) != before)
		})
	}
}

// A cancel of an active job reaches waiters of every queue, and of none (Q8, Q15).
func TestCancelRaisesControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{})
		enqueue(t, s, request("work"))
		l := claimOne(t, s, "work")
		since := now(t, s)
		var answers [2]core.Wake
		for i, queues := range [][]string{{"elsewhere"}, nil} {
			go func() { answers[i], _ = s.AwaitWake(t.Context(), queues, since) }()
		}
		synctest.Wait()
		st, err := s.Cancel(t.Context(), l.ID)
		require.NoError(t, err)
		require.Equal(t, core.StateActive, st)
		synctest.Wait()
		for _, w := range answers {
			require.True(t, w.Control)
		}
		late, err := s.AwaitWake(t.Context(), []string{"elsewhere"}, since)
		require.NoError(t, err)
		require.True(t, late.Control, "whoever comes late is told too")
	})
}

// A waiter that gives up leaves nothing behind, and its error is the context's (Q15).
func TestAwaitWakeHonoursContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, <-await(ctx, s, now(t, s), "q"), context.DeadlineExceeded)
		enqueue(t, s, request("work"))
		require.ErrorIs(t, <-await(ctx, s, "", "q"), context.DeadlineExceeded)
	})
}

// Tokens that the store cannot read are no reason to wait.
func TestForeignTokenReturnsAtOnce(t *testing.T) {
	s, _ := newStore(t)
	for _, token := range []core.WakeToken{"", "x", "-1", "999"} {
		w, err := s.AwaitWake(t.Context(), []string{"q"}, token)
		require.NoError(t, err)
		require.Equal(t, now(t, s), w.Token)
	}
}
