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

// batchLimit is how many items to put into one store call: fewer after calls that did not end in time, since a
// batch that is too large for the call's deadline would never be done, and more again as calls succeed.
type batchLimit struct{ most, limit int }

func newBatchLimit(most int) batchLimit { return batchLimit{most, most} }

func (b *batchLimit) now() int { return b.limit }

// note learns from a call: slow, it ran into its deadline.
func (b *batchLimit) note(slow bool, err error) {
	switch {
	case slow:
		b.limit = max(b.limit/2, 1)
	case err == nil:
		b.limit = min(b.limit+b.limit/4+1, b.most)
	}
}
