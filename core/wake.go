package core

import (
	"context"
	"slices"
	"sync"
	"time"
)

// waker listens to the store's wake channel on the dispatcher's behalf (Q15). It waits for those queues only
// that the last claims left with nothing to hand out; without any, for cancels and schedules only.
//
// Each wait goes on from the token of the wake before, not from that of a claim: a claim sees new work, but not
// that a running job was cancelled meanwhile.
type waker struct {
	w *Worker

	mu     sync.Mutex
	queues []string           // what to wait for, sorted
	parked []string           // what is being waited for
	unpark context.CancelFunc // nil: not parked
	fresh  chan struct{}      // the dispatcher claimed since the last wake
}

func newWaker(w *Worker) *waker { return &waker{w: w, fresh: make(chan struct{}, 1)} }

// expect says which queues have nothing to hand out, after a claim.
func (k *waker) expect(queues []string) {
	k.mu.Lock()
	k.queues = queues
	if k.unpark != nil && !containsAll(k.parked, queues) {
		k.unpark()
	}
	k.mu.Unlock()
	select {
	case k.fresh <- struct{}{}:
	default:
	}
}

func containsAll(have, want []string) bool {
	for _, q := range want {
		if _, ok := slices.BinarySearch(have, q); !ok {
			return false
		}
	}
	return true
}

const (
	wakeUsed     = 250 * time.Millisecond // how long to wait for the dispatcher to claim after a wake
	wakeUnused   = 55 * time.Millisecond  // between wakes that it has no idle taker for,
	wakeBurst    = 3                      // after so many that nothing held up
	wakeRetryMin = 100 * time.Millisecond
	wakeRetryMax = 5 * time.Second
)

func (k *waker) loop(ctx context.Context) {
	outage := newPause(wakeRetryMin, wakeRetryMax)
	failing := false
	var since WakeToken
	idle := newAllowance(wakeBurst)
	for ctx.Err() == nil {
		queues, wake, unparked, err := k.await(ctx, since)
		switch {
		case unparked || ctx.Err() != nil:
			continue
		case err != nil:
			if !failing {
				k.w.log.Warn("wake channel failed, polling", "error", err)
			}
			failing = true
			outage.wait(ctx)
			continue
		}
		failing = false
		outage.reset()
		since = wake.Token
		if wake.Control {
			k.w.beat.now()
			k.w.plan.now()
		}
		// Wait until the dispatcher made use of it: a channel that always returns must not make a hot loop (Q24).
		select {
		case <-k.fresh:
		default:
		}
		if k.w.disp.wake(queues) {
			idle = newAllowance(wakeBurst)
			sleepOr(ctx, wakeUsed, k.fresh)
		} else if !idle.take(time.Now()) {
			sleepOr(ctx, wakeUnused, nil)
		}
	}
}

func (k *waker) await(ctx context.Context, since WakeToken) (queues []string, wake Wake, unparked bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k.mu.Lock()
	queues = k.queues
	k.parked, k.unpark = queues, cancel
	k.mu.Unlock()

	wake, err = k.w.store.AwaitWake(ctx, queues, since)

	k.mu.Lock()
	defer k.mu.Unlock()
	k.unpark = nil
	return queues, wake, err != nil && ctx.Err() != nil, err
}

// sleepOr waits for d, for ctx, or for the signal.
func sleepOr(ctx context.Context, d time.Duration, signal <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-signal:
	case <-timer.C:
	}
}
