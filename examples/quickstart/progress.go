package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
)

// tally counts what this process did; the store knows the rest.
type tally struct{ done, retried atomic.Int64 }

// failure is told of every failed attempt.
func (t *tally) failure(_ context.Context, f core.Failed) {
	if !f.State.Terminal() {
		t.retried.Add(1)
	}
}

// watch shows how far the work is until nothing is left to do, or until ctx ends.
func watch(ctx context.Context, db core.Inspector, t *tally, out *screen) error {
	start := time.Now()
	tick := time.NewTicker(out.look)
	defer tick.Stop()
	for {
		n, err := db.Counts(ctx, "") // the store's view: other processes may work on it as well
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		left := n[core.StateWaiting] + n[core.StateDelayed] + n[core.StateActive]
		out.status("%s done, %s failed, %s retried, %s left (%d leased), %s jobs/s",
			grouped(n[core.StateCompleted]), grouped(n[core.StateFailed]), grouped(t.retried.Load()),
			grouped(left), n[core.StateActive], grouped(rate(t.done.Load(), time.Since(start))))
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func rate(n int64, d time.Duration) int64 {
	return int64(float64(n) / max(d.Seconds(), 0.001))
}

// grouped is n with its thousands apart.
func grouped[N int | int64](n N) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
