package conformance

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
)

// quiet is how long a waiter is watched for not returning. A test can only ever look for so long.
const quiet = 15 * time.Millisecond

// woke is what an AwaitWake returned.
type woke struct {
	wake core.Wake
	err  error
}

// waiter is an AwaitWake in a goroutine of its own; the case's end cancels and awaits it.
type waiter struct {
	returned chan woke
	cancel   context.CancelFunc
}

func (k *kit) await(queues []string, since core.WakeToken) waiter {
	k.Helper()
	return k.awaitIn(k.ctx, queues, since)
}

func (k *kit) awaitIn(ctx context.Context, queues []string, since core.WakeToken) waiter {
	k.Helper()
	ctx, cancel := context.WithCancel(ctx)
	w := waiter{make(chan woke, 1), cancel}
	store := k.store
	k.waiters.Go(func() {
		defer cancel()
		wake, err := store.AwaitWake(ctx, queues, since)
		w.returned <- woke{wake, err}
	})
	return w
}

// must returns what the waiter returned, which must come in time.
func (k *kit) must(what string, w waiter) woke {
	k.Helper()
	patience := time.NewTimer(k.suite.patience)
	defer patience.Stop()
	select {
	case got := <-w.returned:
		return got
	case <-patience.C:
		k.failf("%s: AwaitWake did not return within %v", what, k.suite.patience)
		return woke{}
	}
}

// woken returns the wake of a waiter, which must come in time and without an error.
func (k *kit) woken(what string, w waiter) core.Wake {
	k.Helper()
	got := k.must(what, w)
	k.ok(what+": AwaitWake", got.err)
	return got.wake
}

// stays reports whether a waiter does not return for a little while.
func (w waiter) stays() bool {
	watch := time.NewTimer(quiet)
	defer watch.Stop()
	select {
	case got := <-w.returned:
		w.returned <- got // for whoever looks next
		return false
	case <-watch.C:
		return true
	}
}

// current returns a token that stands for everything up to now.
func (k *kit) current(queues ...string) core.WakeToken {
	k.Helper()
	return k.woken(`AwaitWake since ""`, k.await(queues, "")).Token
}

// wakes checks that an event wakes a waiter of the queue: one that comes after the event with a token from
// before it, and one that is parked already. prepare is called for each and returns the event.
func (k *kit) wakes(what, queue string, prepare func() (event func())) {
	k.Helper()
	k.wakesOn(k, what, queue, prepare)
}

// wakesOn has the waiter on another handle, where a wake may take its way: that it comes at all is what counts.
func (k *kit) wakesOn(o *kit, what, queue string, prepare func() (event func())) {
	k.Helper()
	event := prepare()
	since := o.settled(queue)
	event()
	k.woken(what+", AwaitWake called later", o.await([]string{queue}, since))

	event = prepare()
	w := o.await([]string{queue}, o.settled(queue))
	w.stays()
	event()
	k.woken(what+", AwaitWake called before", w)
}

// settled returns a token with which a waiter stays parked: what wakes were still on their way have arrived.
func (k *kit) settled(queue string) core.WakeToken {
	k.Helper()
	since := k.current(queue)
	for range 20 {
		w := k.await([]string{queue}, since)
		if w.stays() {
			w.cancel()
			k.must("AwaitWake whose context ended", w)
			return since
		}
		since = k.woken("AwaitWake", w).Token
	}
	k.failf("AwaitWake returned 20 times although nothing happened")
	return ""
}

// controlled waits until Control is set, over any number of other returns.
func (k *kit) controlled(what string, queues []string, since core.WakeToken) {
	k.Helper()
	for range 20 {
		wake := k.woken(what, k.await(queues, since))
		if wake.Control {
			return
		}
		since = wake.Token
	}
	k.failf("%s: AwaitWake returned 20 times without Control", what)
}
