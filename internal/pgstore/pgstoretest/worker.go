package pgstoretest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// worker runs jobs with a real worker: those that were there before it, and those that come while it idles.
func worker(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	const n = 2000
	double := core.NewJob[int, int]("double")
	payloads := make([]int, n)
	for i := range payloads {
		payloads[i] = i
	}
	many, err := double.EnqueueMany(ctx, s, payloads)
	require.NoError(t, err)

	w, err := core.NewWorker(s, core.WorkerOptions{Concurrency: 100, Poll: time.Hour})
	require.NoError(t, err)
	var ran atomic.Int64
	double.Handle(w, func(_ context.Context, n int) (int, error) {
		ran.Add(1)
		return 2 * n, nil
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	got, err := double.Await(ctx, s, many[n-1].ID)
	require.NoError(t, err)
	require.Equal(t, 2*(n-1), got)
	got, err = double.Execute(ctx, s, 21)
	require.NoError(t, err)
	require.Equal(t, 42, got)
	for _, e := range many {
		_, err := double.Await(ctx, s, e.ID)
		require.NoError(t, err)
	}
	stop()
	require.NoError(t, <-done)
	require.EqualValues(t, n+1, ran.Load(), "each job once")
	k.CheckInvariants(t, k.SchemaOf(s))
}

// benchWorker is jobs through a worker with 100 takers, no-op handlers.
func benchWorker(b *testing.B, k *Kit) {
	s := k.Own(b)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	noop := core.NewTask[int]("noop")
	for left := b.N; left > 0; left -= 1000 {
		_, err := noop.EnqueueMany(ctx, s, make([]int, min(left, 1000)))
		require.NoError(b, err)
	}
	w, err := core.NewWorker(s, core.WorkerOptions{Concurrency: 100})
	require.NoError(b, err)
	var left atomic.Int64
	left.Store(int64(b.N))
	noop.Handle(w, func(context.Context, int) error {
		if left.Add(-1) == 0 {
			stop()
		}
		return nil
	})
	b.ResetTimer()
	require.NoError(b, w.Run(ctx))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
