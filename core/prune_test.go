package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// pruneSpy answers prunes in the place of a store.
type pruneSpy struct {
	core.Store
	answer func(req core.PruneRequest) (int, error)

	mu   sync.Mutex
	at   []time.Time
	reqs []core.PruneRequest
}

func (s *pruneSpy) Prune(_ context.Context, req core.PruneRequest) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.reqs = append(s.at, time.Now()), append(s.reqs, req)
	return s.answer(req)
}

// runFor runs a worker in virtual time and returns when prunes began, since its start.
func (s *pruneSpy) runFor(t *testing.T, d time.Duration, opts core.WorkerOptions) []time.Duration {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	require.NoError(t, newWorker(t, s, opts).Run(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	var since []time.Duration
	for _, at := range s.at {
		since = append(since, at.Sub(began))
	}
	return since
}

func pruneBubble(t *testing.T, answer func(core.PruneRequest) (int, error), test func(t *testing.T, s *pruneSpy)) {
	t.Helper()
	bubble(t, func(t *testing.T, s *memstore.Store) { test(t, &pruneSpy{Store: s, answer: answer}) })
}

func nothingToPrune(core.PruneRequest) (int, error) { return 0, nil }

// TestPrunesNowAndThen: soon after the start, then every PruneInterval, with what the options say is kept (Q28).
func TestPrunesNowAndThen(t *testing.T) {
	pruneBubble(t, nothingToPrune, func(t *testing.T, s *pruneSpy) {
		keep := core.Keep{Failed: core.KeepRule{Forever: true}}
		most := core.Keep{Completed: core.KeepRule{Count: 9}}
		at := s.runFor(t, time.Hour, core.WorkerOptions{Keep: keep, KeepAtMost: most})
		require.Less(t, at[0], 10*time.Second)
		require.InDelta(t, 60, len(at), 12)
		for i, d := range at[1:] {
			require.GreaterOrEqual(t, d-at[i], 45*time.Second)
			require.LessOrEqual(t, d-at[i], 75*time.Second)
		}
		require.Equal(t, core.PruneRequest{Default: keep, Ceiling: most, Limit: core.DefaultPruneLimit}, s.reqs[0])
	})
	pruneBubble(t, nothingToPrune, func(t *testing.T, s *pruneSpy) {
		at := s.runFor(t, time.Second, core.WorkerOptions{PruneInterval: 20 * time.Millisecond})
		require.Less(t, at[0], 20*time.Millisecond, "never later than an interval")
		require.InDelta(t, 50, len(at), 10)
	})
}

// TestPrunesBatches: a full batch is followed by another, after a rest that is longer than it took.
func TestPrunesBatches(t *testing.T) {
	left := 3500
	pruneBubble(t, func(req core.PruneRequest) (int, error) {
		time.Sleep(100 * time.Millisecond)
		n := min(left, req.Limit)
		left -= n
		return n, nil
	}, func(t *testing.T, s *pruneSpy) {
		at := s.runFor(t, 30*time.Second, core.WorkerOptions{})
		require.Zero(t, left)
		require.Len(t, at, 4)
		for i, d := range at[1:] {
			require.Equal(t, 500*time.Millisecond, d-at[i])
		}
	})
}

// TestPrunesSlowStore: a batch that is too large for the call's deadline is made smaller.
func TestPrunesSlowStore(t *testing.T) {
	bubble(t, func(t *testing.T, m *memstore.Store) {
		s := &slowPruner{Store: m, per: 20 * time.Millisecond} // 250 in 5 s
		w := newWorker(t, s, core.WorkerOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, w.Run(ctx))
		require.Positive(t, s.done)
	})
}

// slowPruner takes its time, and gives up when a call's ends.
type slowPruner struct {
	core.Store
	per  time.Duration
	done int
}

func (s *slowPruner) Prune(ctx context.Context, req core.PruneRequest) (int, error) {
	select {
	case <-time.After(time.Duration(req.Limit) * s.per):
		s.done++
		return 0, nil
	case <-ctx.Done():
		return 0, errors.Join(core.ErrUnavailable, ctx.Err())
	}
}

// TestPruneOutage: a store that fails is asked more and more rarely, and it is said once that it does, and that it is over.
func TestPruneOutage(t *testing.T) {
	began := time.Time{}
	pruneBubble(t, func(core.PruneRequest) (int, error) {
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) < 2*time.Hour {
			return 0, core.ErrUnavailable
		}
		return 0, nil
	}, func(t *testing.T, s *pruneSpy) {
		var log bytes.Buffer
		at := s.runFor(t, 3*time.Hour, core.WorkerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.Equal(t, 1, strings.Count(log.String(), "were not pruned"), log.String())
		require.Equal(t, 1, strings.Count(log.String(), "are pruned again"), log.String())
		failures := 0
		for _, d := range at {
			if d < 2*time.Hour {
				failures++
			}
		}
		require.InDelta(t, 18, failures, 5)
		require.InDelta(t, 55, len(at)-failures, 15, "as before once it is over")
	})
}

// TestPrunesNot: not with a negative interval, not on a store that is no Retainer, and not again on one that says so.
func TestPrunesNot(t *testing.T) {
	pruneBubble(t, nothingToPrune, func(t *testing.T, s *pruneSpy) {
		require.Empty(t, s.runFor(t, time.Hour, core.WorkerOptions{PruneInterval: -1}))
	})
	pruneBubble(t, func(core.PruneRequest) (int, error) { return 0, &core.UnsupportedError{Op: "Prune"} }, func(t *testing.T, s *pruneSpy) {
		require.Len(t, s.runFor(t, time.Hour, core.WorkerOptions{}), 1)
	})
	bubble(t, func(t *testing.T, s *memstore.Store) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, newWorker(t, struct{ core.Store }{s}, core.WorkerOptions{}).Run(ctx))
	})
}

// TestPruneOptions: rules that contradict themselves are refused by name.
func TestPruneOptions(t *testing.T) {
	s := memstore.New(memstore.Options{})
	for field, opts := range map[string]core.WorkerOptions{
		"Keep.Failed":          {Keep: core.Keep{Failed: core.KeepRule{Count: -1}}},
		"KeepAtMost.Completed": {KeepAtMost: core.Keep{Completed: core.KeepRule{None: true, Age: 1}}},
		"PruneInterval":        {PruneInterval: time.Millisecond},
	} {
		_, err := core.NewWorker(s, opts)
		var invalid *core.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
	}
}

// TestPruneRule: what a group's Keep comes to.
func TestPruneRule(t *testing.T) {
	const day = 24 * time.Hour
	rule := func(r core.KeepRule) core.Keep { return core.Keep{Completed: r, Failed: r} }
	none, forever := core.KeepRule{None: true}, core.KeepRule{Forever: true}
	for _, c := range []struct {
		def, top, own, want core.KeepRule
	}{
		{want: core.KeepRule{Age: day}},
		{def: forever, want: forever},
		{def: forever, own: none, want: none},
		{def: none, own: core.KeepRule{Count: 3}, want: core.KeepRule{Count: 3}},
		{top: core.KeepRule{Age: time.Hour}, want: core.KeepRule{Age: time.Hour}},
		{top: core.KeepRule{Age: 2 * day}, want: core.KeepRule{Age: day}},
		{top: core.KeepRule{Count: 5}, want: core.KeepRule{Age: day, Count: 5}},
		{top: core.KeepRule{Count: 5}, own: forever, want: core.KeepRule{Count: 5}},
		{top: core.KeepRule{Count: 5, Age: day}, own: core.KeepRule{Count: 9, Age: time.Hour}, want: core.KeepRule{Count: 5, Age: time.Hour}},
		{top: none, own: forever, want: none},
		{top: forever, own: core.KeepRule{Count: 1}, want: core.KeepRule{Count: 1}},
		{top: core.KeepRule{Count: 5}, own: none, want: none},
	} {
		req := core.PruneRequest{Default: rule(c.def), Ceiling: rule(c.top)}
		require.Equal(t, c.want, req.Rule(core.StateCompleted, rule(c.own)), "%+v", c)
	}
	require.Equal(t, core.KeepRule{Age: 7 * day}, core.PruneRequest{}.Rule(core.StateFailed, core.Keep{Completed: none}))
	require.Equal(t, core.KeepRule{Age: 7 * day}, core.PruneRequest{}.Rule(core.StateCancelled, core.Keep{}))
	require.Equal(t, forever, core.PruneRequest{Ceiling: rule(none)}.Rule(core.StateActive, rule(none)), "never what is pending")
}

// TestAwaitPruned: a job that is pruned before its result was read is gone, and Await says that this may be why.
func TestAwaitPruned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Options{})
		job := core.NewJob[int, int]("double")
		w := newWorker(t, s, core.WorkerOptions{})
		job.Handle(w, func(_ context.Context, n int) (int, error) { return 2 * n, nil })
		stop := start(t, w)
		id := enqueue(t, job, s, 4, core.WithKeep(core.Keep{Completed: core.KeepRule{Age: time.Hour}}))
		got, err := job.Await(t.Context(), s, id)
		require.NoError(t, err)
		require.Equal(t, 8, got)
		time.Sleep(59 * time.Minute)
		_, err = job.Await(t.Context(), s, id)
		require.NoError(t, err)
		time.Sleep(3 * time.Minute)
		_, err = job.Await(t.Context(), s, id)
		var gone *core.JobError
		require.ErrorAs(t, err, &gone)
		require.ErrorIs(t, err, core.ErrNotFound)
		require.Contains(t, err.Error(), "is gone: pruned")
		require.NoError(t, stop())
		require.NoError(t, s.Close())
	})
}
