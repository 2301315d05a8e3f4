package core

import (
	"context"
	"time"
)

// pause is the wait between tries of something that fails: doubling from low to high, with jitter (Q24).
type pause struct{ next, low, high time.Duration }

func newPause(low, high time.Duration) *pause { return &pause{low, low, high} }

// step returns the next wait.
func (p *pause) step() time.Duration {
	d := p.next
	p.next = min(2*p.next, p.high)
	return jitter(d)
}

func (p *pause) reset() { p.next = p.low }

// wait sleeps for the next wait or until ctx ends.
func (p *pause) wait(ctx context.Context) { sleep(ctx, p.step()) }

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// allowance lets a few of something pass freely, and more once it has been quiet for a second.
type allowance struct {
	burst, left int
	last        time.Time
}

func newAllowance(burst int) allowance { return allowance{burst: burst, left: burst} }

func (a *allowance) take(now time.Time) bool {
	if now.Sub(a.last) > time.Second {
		a.left = a.burst
	}
	a.last = now
	if a.left == 0 {
		return false
	}
	a.left--
	return true
}
