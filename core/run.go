package core

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// run is one claimed job on its way through a worker.
type run struct {
	rec     *Record // in the claim's answer
	lease   Lease
	handler *handler

	ctx    runContext // the handler's, as long as the run
	cancel context.CancelCauseFunc

	deadline   time.Time   // end of the lease by our own clock; owned by the heartbeat
	lost       atomic.Bool // the store said so
	completing atomic.Bool // Job.Complete was called
	completed  atomic.Bool // and the store took it, if the transaction commits
	ended      atomic.Bool // it was, and the lease is gone since: committed, most likely
	acking     atomic.Bool // its outcome is on its way to the store, which decides from here on

	seen atomic.Pointer[seen] // what hooks are told of it
}

// runContext is a run's context. It answers for the run itself, which saves a context per run.
type runContext struct {
	context.Context //nolint:containedctx // it is one
	run             *run
}

func (c *runContext) Value(key any) any {
	if key == (runKey{}) {
		return c.run
	}
	return c.Context.Value(key)
}

// newRuns makes a run for each job of a claim.
func newRuns(base context.Context, jobs []Record, token string, deadline time.Time, handlers map[string]*handler) []run {
	runs := make([]run, len(jobs))
	for i := range runs {
		r, rec := &runs[i], &jobs[i]
		r.rec, r.handler, r.deadline = rec, handlers[rec.Name], deadline
		r.lease = Lease{ID: rec.ID, Token: token, Ref: rec.Ref}
		r.ctx.run = r
		r.ctx.Context, r.cancel = context.WithCancelCause(base)
	}
	return runs
}

func (r *run) info() Run {
	return Run{
		ID: r.rec.ID, Name: r.rec.Name, Queue: r.rec.Queue,
		Attempt: r.rec.Attempts + 1, MaxAttempts: r.rec.MaxAttempts,
		Fence: r.rec.Fence, Lease: r.lease, EnqueuedAt: r.rec.EnqueuedAt,
		Metadata: r.rec.Metadata, Trace: r.rec.Trace,
	}
}

// lose ends a run whose lease the store no longer knows. One that completes in a transaction of its own may have
// ended the lease itself, and one whose ack is under way will hear from the store (Q14, Q19).
func (r *run) lose() {
	switch {
	case r.acking.Load():
	case r.completing.Load():
		r.ended.Store(true)
	default:
		r.lost.Store(true)
		r.cancel(ErrLeaseLost)
	}
}

// tellable reports whether the handler still runs under a lease that matters to it.
func (r *run) tellable() bool {
	return r.ctx.Err() == nil && !r.ended.Load() && !r.acking.Load()
}

// crash is what user code did instead of returning.
type crash struct {
	text  string
	panic bool // else runtime.Goexit
	stack []byte
}

func (c *crash) Error() string { return c.text }

func goexitCrash() *crash {
	return &crash{text: "runtime.Goexit was called", stack: debug.Stack()}
}

// encodeError: the handler succeeded, so its side effects happened, but its result cannot be stored (Q19).
type encodeError struct{ err error }

func (e *encodeError) Error() string { return fmt.Sprintf("stint: encode result: %v", e.err) }
func (e *encodeError) Unwrap() error { return e.err }

// invoke runs the handler. A panic becomes a *crash; runtime.Goexit passes through.
func (r *run) invoke() (result []byte, cause, err error) {
	var ctx context.Context = &r.ctx
	if r.rec.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, r.rec.Timeout, ErrTimeout)
		defer stop()
	}
	defer func() {
		// The cause as the handler could see it, before anything later can become one.
		if ctx.Err() != nil {
			cause = context.Cause(ctx)
		}
		if v := recover(); v != nil {
			// fmt survives values whose methods panic, and whoever calls invoke survives their Goexit.
			result, err = nil, &crash{text: fmt.Sprint("panic: ", v), panic: true, stack: debug.Stack()}
		}
	}()
	result, err = r.handler.run(ctx, r.info(), r.rec.Payload)
	return result, cause, err
}

// decide turns what the handler returned into the outcome that the store is asked for (Q19). It calls user code
// (Retryable, Error methods).
func (r *run) decide(result []byte, cause, err error) Ack {
	ack := Ack{Lease: r.lease}
	if err == nil {
		ack.Outcome, ack.Result = OutcomeComplete, result
		return ack
	}
	if cause == ErrCancelled { //nolint:errorlint // causes are our own sentinels
		ack.Outcome = OutcomeCancel
		return ack
	}
	var (
		snooze *snoozeError
		after  *retryAfterError
		final  *unrecoverableError
		encode *encodeError
		broken *crash
	)
	switch {
	case errors.As(err, &broken):
		return r.failed(ack, newFailure(err), true)
	case errors.As(err, &encode), errors.As(err, &final):
		return r.failed(ack, newFailure(err), false)
	case errors.As(err, &snooze):
		ack.Outcome, ack.Delay = OutcomeSnooze, snooze.delay
		return ack
	case errors.As(err, &after):
		ack = r.failed(ack, newFailure(err), true)
		if ack.Outcome == OutcomeRetry {
			ack.Delay = after.delay
		}
		return ack
	case cause != nil && isContextError(err, cause):
		if cause == ErrTimeout { //nolint:errorlint // causes are our own sentinels
			f := newFailure(err)
			f.Timeout = true
			return r.failed(ack, f, true)
		}
		ack.Outcome = OutcomeRelease // stopping, or a loss that is only presumed
		return ack
	}
	return r.failed(ack, newFailure(err), r.handler.retryable == nil || r.handler.retryable(err))
}

func isContextError(err, cause error) bool {
	return errors.Is(err, cause) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// failed asks for another attempt if one is left and worth it.
func (r *run) failed(ack Ack, f *Failure, again bool) Ack {
	ack.Failure = f
	if attempt := r.rec.Attempts + 1; again && attempt < r.rec.MaxAttempts {
		backoff := r.rec.Backoff
		backoff.NoJitter = backoff.NoJitter || r.handler.exact
		ack.Outcome, ack.Delay = OutcomeRetry, backoff.Delay(attempt)
	} else {
		ack.Outcome = OutcomeFail
	}
	return ack
}

// process runs one job and hands its outcome on. Whatever user code does, finish is called exactly once. If it calls
// runtime.Goexit, nothing can stop that: the goroutine ends.
func (r *run) process(finish func(*run, Ack, error)) {
	normal := false
	defer func() {
		if normal {
			return
		}
		// A panic of Retryable or of an Error method, or Goexit anywhere: a failed attempt like any other.
		c := goexitCrash()
		if v := recover(); v != nil {
			// Only the type is printed: no more user code here.
			c.text, c.panic = fmt.Sprintf("panic of type %T outside the handler", v), true
		}
		finish(r, r.failed(Ack{Lease: r.lease}, newFailure(c), true), c)
	}()
	result, cause, err := r.invoke()
	r.rec.Payload = nil // it has served; the record stays as long as any of its claim
	ack := r.decide(result, cause, err)
	normal = true
	finish(r, ack, err)
}
