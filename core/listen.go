package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// audience is who listens to a worker, one for each value of WorkerOptions.Hooks; nil: nobody, and nothing is measured.
type audience []*listener

// listener calls one Hooks value, in order, from a goroutine of its own: user code must not hold up takers, heartbeats or
// acks, nor other listeners, whatever it does (Q19).
type listener struct {
	w      *Worker
	hooks  Hooks
	ctx    context.Context //nolint:containedctx // of the calls; ends when the worker waited long enough
	cancel context.CancelFunc
	over   chan struct{} // closed once serve has ended

	mu     sync.Mutex
	ready  sync.Cond // a call came, or the listener closed
	queue  []func(context.Context)
	missed int // calls dropped since the last time that was told
	closed bool
}

const hooksQueued = 10_000

// seen is what is measured of a run. It is there once the handler was started, if anybody listens.
type seen struct {
	began time.Time
	ran   time.Duration // set when the handler returned
	told  atomic.Bool   // of its end: a lease may be reported lost more than once
}

func newAudience(w *Worker, base context.Context) audience {
	var a audience
	for _, h := range w.opts.Hooks {
		l := &listener{w: w, hooks: h, over: make(chan struct{})}
		l.ready.L = &l.mu
		l.ctx, l.cancel = context.WithCancel(base)
		go l.serve()
		a = append(a, l)
	}
	return a
}

// tell hands an event to those who have a function for it.
func tell[T any](a audience, of func(*Hooks) func(context.Context, T), event T) {
	for _, l := range a {
		if f := of(&l.hooks); f != nil {
			l.put(func(ctx context.Context) { f(ctx, event) })
		}
	}
}

func ofStart(h *Hooks) func(context.Context, Run)           { return h.Start }
func ofFinish(h *Hooks) func(context.Context, Finished)     { return h.Finish }
func ofFailure(h *Hooks) func(context.Context, Failed)      { return h.Failure }
func ofLeaseLost(h *Hooks) func(context.Context, LostLease) { return h.LeaseLost }
func ofStall(h *Hooks) func(context.Context, Recovered)     { return h.Stall }
func ofClaim(h *Hooks) func(context.Context, ClaimCall)     { return h.Claim }

// put queues a call, or drops it where thousands wait already.
func (l *listener) put(call func(context.Context)) {
	l.mu.Lock()
	full := len(l.queue) >= hooksQueued
	switch {
	case l.closed:
	case full:
		l.missed++
		full = l.missed == 1
	default:
		l.queue = append(l.queue, call)
		l.ready.Signal()
	}
	l.mu.Unlock()
	if full {
		l.w.log.Error("a hook is too slow, calls of it are dropped")
	}
}

// serve makes the calls until close. A hook that calls runtime.Goexit takes the goroutine along; another takes its place.
func (l *listener) serve() {
	over := false
	defer func() {
		if !over {
			go l.serve()
			return
		}
		close(l.over)
	}()
	for call := l.next(); call != nil; call = l.next() {
		l.call(call)
	}
	over = true
}

func (l *listener) call(call func(context.Context)) {
	returned := false
	defer func() {
		if v := recover(); v != nil || !returned {
			l.w.log.Error("a hook panicked, or called runtime.Goexit")
		}
	}()
	call(l.ctx)
	returned = true
}

// next waits for a call; nil: there are no more. What was missed is told once there is room again, or much was.
func (l *listener) next() func(context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && l.missed == 0 && !l.closed {
		l.ready.Wait()
	}
	if n := l.missed; n > 0 && (n >= hooksQueued || len(l.queue) <= hooksQueued/2) {
		l.missed = 0
		return l.tellMissed(n)
	}
	if len(l.queue) == 0 {
		return nil
	}
	call := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	return call
}

func (l *listener) tellMissed(n int) func(context.Context) {
	return func(ctx context.Context) {
		l.w.log.Error("calls of a hook were dropped", "calls", n)
		if l.hooks.Missed != nil {
			l.hooks.Missed(ctx, n)
		}
	}
}

// close waits for the calls, then ends their context and waits as long again. What still runs is left behind.
func (a audience) close(patience time.Duration) {
	var all sync.WaitGroup
	for _, l := range a {
		all.Go(func() { l.close(patience) })
	}
	all.Wait()
}

func (l *listener) close(patience time.Duration) {
	defer l.cancel()
	l.mu.Lock()
	l.closed = true
	l.ready.Broadcast()
	l.mu.Unlock()
	served := func() { <-l.over }
	if waitFor(served, patience) {
		return
	}
	l.cancel()
	l.mu.Lock()
	dropped := len(l.queue) + l.missed
	l.queue, l.missed = nil, 0
	l.mu.Unlock()
	if !waitFor(served, patience) || dropped > 0 {
		l.w.log.Error("a hook did not end in time", "calls_dropped", dropped)
	}
}
