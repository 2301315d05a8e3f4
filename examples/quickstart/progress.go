package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
)

// tally counts what this process does; the store knows the rest.
type tally struct {
	start                          time.Time
	running, done, failed, retried atomic.Int64
}

// failure is told of every failed attempt.
func (t *tally) failure(_ context.Context, f core.Failed) {
	if f.State.Terminal() {
		t.failed.Add(1)
	} else {
		t.retried.Add(1)
	}
}

// ended is how many jobs this process brought to an end.
func (t *tally) ended() int64 { return t.done.Load() + t.failed.Load() }

// watch shows how far the work is until nothing is left to do, or until ctx ends.
func watch(ctx context.Context, db core.Inspector, t *tally, out *screen) error {
	tick := time.NewTicker(out.look)
	defer tick.Stop()
	var idle patience
	for {
		n, err := db.Counts(ctx, "") // the store's view: other processes may work on it as well
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if left(n) == 0 && t.ended() == 0 {
			return nil // there was nothing to do, and so there is nothing to show
		}
		status(n, t, out)
		if left(n) == 0 {
			return nil
		}
		if idle.over(n[core.StateActive] > 0 && n[core.StateWaiting] == 0 && t.running.Load() == 0) {
			out.printf("waiting for the leases of another run: if it was killed, they run out, and this one takes over in %v or so", 2*lease)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// show shows how far the work is.
func show(ctx context.Context, db core.Inspector, t *tally, out *screen) error {
	n, err := db.Counts(ctx, "")
	if err == nil {
		status(n, t, out)
	}
	return err
}

func status(n map[core.State]int64, t *tally, out *screen) {
	out.status("%s done, %s failed, %s retried, %s left (%d leased), %s jobs/s",
		grouped(n[core.StateCompleted]), grouped(n[core.StateFailed]), grouped(t.retried.Load()),
		grouped(left(n)), n[core.StateActive], grouped(rate(t.done.Load(), time.Since(t.start))))
}

func left(n map[core.State]int64) int64 {
	return n[core.StateWaiting] + n[core.StateDelayed] + n[core.StateActive]
}

// patience runs out once each time that something lasts a second.
type patience struct {
	since time.Time // zero: it does not last
	told  bool
}

func (p *patience) over(lasts bool) bool {
	switch {
	case !lasts:
		*p = patience{}
	case p.since.IsZero():
		p.since = time.Now()
	case !p.told && time.Since(p.since) >= time.Second:
		p.told = true
		return true
	}
	return false
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
