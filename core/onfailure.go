package core

import (
	"context"
	"sync"
	"time"
)

// onFailure calls WorkerOptions.OnFailure, a few at a time, each on a goroutine of its own: a panic, runtime.Goexit or a call that
// never ends must not hold up acks (Q19).
type onFailure struct {
	w      *Worker
	ctx    context.Context //nolint:containedctx // of the calls; ends when the worker waited long enough
	cancel context.CancelFunc

	mu      sync.Mutex
	idle    sync.Cond // running fell
	queue   []Failed
	running int
}

const (
	failuresAtOnce = 8
	failuresQueued = 10_000
)

func newOnFailure(w *Worker, base context.Context) *onFailure {
	h := &onFailure{w: w}
	h.idle.L = &h.mu
	h.ctx, h.cancel = context.WithCancel(base)
	return h
}

// tell hands a failure to OnFailure. Where that is so slow that thousands wait, it is dropped and logged.
func (h *onFailure) tell(f Failed) {
	if h.w.opts.OnFailure == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.running < failuresAtOnce:
		h.running++
		go h.call(f)
	case len(h.queue) < failuresQueued:
		h.queue = append(h.queue, f)
	default:
		h.w.log.Error("OnFailure is too slow, a failure was not reported", "id", f.Run.ID)
	}
}

func (h *onFailure) call(f Failed) {
	defer func() {
		if v := recover(); v != nil {
			h.w.log.Error("OnFailure panicked", "id", f.Run.ID)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.queue) == 0 {
			h.running--
			h.idle.Broadcast()
			return
		}
		next := h.queue[0]
		h.queue = h.queue[1:]
		go h.call(next)
	}()
	h.w.opts.OnFailure(h.ctx, f)
}

// close waits for the calls, then ends their context and waits as long again. What still runs is left behind.
func (h *onFailure) close(patience time.Duration) {
	defer h.cancel()
	if waitFor(h.wait, patience) {
		return
	}
	h.cancel()
	h.mu.Lock()
	dropped := len(h.queue)
	h.queue = nil
	h.mu.Unlock()
	if !waitFor(h.wait, patience) || dropped > 0 {
		h.w.log.Error("OnFailure did not end in time", "not_reported", dropped)
	}
}

func (h *onFailure) wait() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.running > 0 {
		h.idle.Wait()
	}
}
