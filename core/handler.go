package core

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Run is what a handler may know about the run it is in.
type Run struct {
	ID, Name, Queue string
	Attempt         int   // 1 for the first
	MaxAttempts     int   // the last attempt has Attempt == MaxAttempts
	Fence           int64 // grows with every claim of this job: hand it to systems that must refuse a stale holder
	Lease           Lease
	EnqueuedAt      time.Time
	Metadata        map[string]string
	Trace           *Trace
}

// HandlerFunc is one run as middleware sees it: bytes in, bytes out. A nil result is none.
type HandlerFunc func(ctx context.Context, run Run, payload []byte) (result []byte, err error)

// Middleware wraps every run of a worker, inside its lease. It is applied once, when a handler is registered.
type Middleware func(next HandlerFunc) HandlerFunc

// Failed is what WorkerOptions.OnFailure is told.
type Failed struct {
	Run     Run // of a job that a sweep failed: ID, Name and Queue only
	Err     error
	Failure Failure
	State   State         // where the job stands now, whatever the worker asked for (Q6)
	RetryIn time.Duration // State waiting or delayed: when the next attempt is due
}

// OnFailureFunc hears of failed attempts.
type OnFailureFunc func(context.Context, Failed)

type runKey struct{}

// Current returns the run that ctx belongs to.
func Current(ctx context.Context) (Run, bool) {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return Run{}, false
	}
	return r.info(), true
}

func completeIn(ctx context.Context, in TxView, name string, result []byte) error {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return &InvalidError{"ctx", "Complete needs the context of a running handler"}
	}
	if r.rec.Name != name {
		return &InvalidError{"ctx", fmt.Sprintf("belongs to a run of %q, not of %q", r.rec.Name, name)}
	}
	// Marked first: a heartbeat that reports the lease lost may see the commit before we do.
	r.completing.Store(true)
	err := in.Complete(ctx, r.lease, result)
	r.completed.Store(err == nil)
	return err
}

// handler is one registered kind of work.
type handler struct {
	name      string
	queue     *queue
	run       HandlerFunc
	retryable func(error) bool
	exact     bool           // its retries wait without jitter
	place     string         // file:line of the registration
	asked     handleSettings // of its registration
}

func (w *Worker) register(h *handler, queueName string, opts []HandleOption) func() {
	s := handleSettings{queue: queueName}
	for _, o := range opts {
		o.applyHandle(&s)
	}
	if err := ValidateQueue("Queue", s.queue); err != nil {
		panic(err)
	}
	if s.concurrency < 0 {
		panic(&InvalidError{"Concurrency", "must not be negative"})
	}
	h.place, h.exact = callerOutside(), w.opts.NoJitter
	for _, v := range slices.Backward(w.opts.Middleware) {
		h.run = v(h.run)
	}
	if err := w.disp.add(h, s); err != nil {
		panic(err)
	}
	return func() { w.disp.remove(h) }
}

// callerOutside is the place of the Handle call, past the methods of Job and Task.
func callerOutside() string {
	pcs := make([]uintptr, 8)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		own := strings.Contains(f.Function, "/core.(*Job[") || strings.Contains(f.Function, "/core.(*Task[")
		if !own || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}
