package journal

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
)

// WorkerOptions of a Worker. The zero value is good to start with.
type WorkerOptions struct {
	// Core is of the worker that runs effects. That is a worker like any other: it takes stalled jobs back, plans schedules
	// and prunes finished jobs of the whole store, so what it says of Keep is what others must say. A program that has a
	// worker of its own gives it the effects by Journal.Handle, and says NoEffects.
	Core core.WorkerOptions
	Poll time.Duration // how often to look at the log where no wake came, +-25 %; 0: 1 s
	// NoEffects, NoProjections and NoTaps leave these to other processes.
	NoEffects, NoProjections, NoTaps bool
}

// Worker runs a journal's effects, async projections and taps. Make one with Journal.Worker.
type Worker[Tx any] struct {
	j    *Journal[Tx]
	opts WorkerOptions
	core *core.Worker // nil: no effects
	busy atomic.Bool

	tail        *tail[Tx] // nil: no taps
	projections *loop     // nil: none
	all         []*loop
}

// Worker returns a worker for what is declared by now.
func (j *Journal[Tx]) Worker(opts WorkerOptions) (*Worker[Tx], error) {
	if opts.Poll == 0 {
		opts.Poll = time.Second
	}
	if opts.Poll < 10*time.Millisecond {
		return nil, &core.InvalidError{Field: "Poll", Reason: "must be at least 10 ms"}
	}
	w := &Worker[Tx]{j: j, opts: opts}
	j.mu.RLock()
	effects, taps := len(j.effects), len(j.taps)
	j.mu.RUnlock()
	if effects > 0 && !opts.NoEffects {
		cw, err := core.NewWorker(j.jobs, opts.Core)
		if err != nil {
			return nil, err
		}
		j.Handle(cw)
		w.core = cw
	}
	if !opts.NoProjections && len(j.declared(false)) > 0 {
		w.projections = newLoop(j.CatchUp)
		w.all = append(w.all, w.projections)
	}
	if !opts.NoTaps && taps > 0 {
		w.tail = &tail[Tx]{j: j}
		w.all = append(w.all, newLoop(w.tail.pass))
	}
	return w, nil
}

// Handle has a worker of the caller's run the effects that are declared by now, beside its other handlers. A second time
// for one worker it panics, as core.Job.Handle does.
func (j *Journal[Tx]) Handle(w *core.Worker) {
	if err := given("Worker", w != nil); err != nil {
		panic(err)
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, name := range names(j.effects) {
		j.handle(w, j.effects[name])
	}
}

// Wake has the worker look at the log at once.
func (w *Worker[Tx]) Wake() {
	for _, l := range w.all {
		l.nudge()
	}
}

// Run works until ctx ends: no further effect is claimed, those that run settle as core.Worker.Run says, a batch under
// way commits or rolls back, a tap that runs returns. Its error is that of core.Worker.Run. Run twice at once is
// ErrRunning; afterwards it may be called again (J11). Taps hear what is recorded once
// they have looked at the log, a moment after the call (J10).
func (w *Worker[Tx]) Run(ctx context.Context) error {
	if !w.busy.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer w.busy.Store(false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.tail != nil {
		w.tail.begun = false // what was recorded since the last Run is not tapped
	}
	var loops sync.WaitGroup
	for _, l := range w.all {
		loops.Go(func() { l.run(ctx, w.opts.Poll, w.failed) })
	}
	if len(w.all) > 0 {
		loops.Go(func() { w.listen(ctx) })
	}
	var err error
	if w.core != nil {
		err = w.core.Run(ctx)
		cancel() // it may have refused to
	} else {
		<-ctx.Done()
	}
	loops.Wait()
	return err
}

func (w *Worker[Tx]) failed(err error) {
	w.j.opts.Logger.Warn("journal: pass failed, will be repeated", "error", err)
}

// Drain runs what is due now, and waits for nothing but the turns of ordered effects: effects, then projections until they
// have caught up, then taps. It returns how many effects ran and how many events projections scanned. What was recorded
// before a worker's first Drain, or in it by effects, taps don't hear: they begin at the log's end as it is then (J10). For
// tests and command lines; not while Run does.
func (w *Worker[Tx]) Drain(ctx context.Context, opts core.DrainOptions) (effects, events int, err error) {
	if !w.busy.CompareAndSwap(false, true) {
		return 0, 0, ErrRunning
	}
	defer w.busy.Store(false)
	if w.core != nil {
		if effects, err = w.drainEffects(ctx, opts); err != nil {
			return effects, 0, err
		}
	}
	var errs []error
	for _, l := range w.all {
		for ctx.Err() == nil {
			n, err := l.pass(ctx)
			if l == w.projections {
				events += n
			}
			if err != nil {
				errs = append(errs, err)
			}
			if n == 0 {
				break
			}
		}
	}
	return effects, events, errors.Join(append(errs, ctx.Err())...)
}

// drainEffects goes on as long as ordered effects wait for runs that do get on.
func (w *Worker[Tx]) drainEffects(ctx context.Context, opts core.DrainOptions) (total int, err error) {
	w.j.draining.Add(1)
	defer w.j.draining.Add(-1)
	for {
		before := w.j.waited.Load()
		n, err := w.core.Drain(ctx, opts)
		total += n
		waited := int(w.j.waited.Load() - before)
		if err != nil || waited == 0 || n <= waited || ctx.Err() != nil {
			return total, err
		}
		if opts.Limit > 0 {
			if opts.Limit -= n; opts.Limit <= 0 {
				return total, nil
			}
		}
		rest(ctx, 2*minTurn) // which is more than a turn, also where jitter shortens it
	}
}

// listen nudges the loops when the wake channel tells of events. It is a hint: a store without one is polled.
func (w *Worker[Tx]) listen(ctx context.Context) {
	var since core.WakeToken
	for failures := 0; ctx.Err() == nil; {
		wake, err := w.j.jobs.AwaitWake(ctx, []string{WakeQueue}, since)
		if err != nil {
			failures++
			rest(ctx, min(100*time.Millisecond<<min(failures, 6), 5*time.Second))
			continue
		}
		failures, since = 0, wake.Token
		w.Wake()
		rest(ctx, 5*time.Millisecond) // a channel that always returns must not make a hot loop (Q24)
	}
}

// loop repeats a pass: at once as long as that finds something, else when it is nudged, or polls.
type loop struct {
	pass  func(context.Context) (int, error)
	woken chan struct{}
}

func newLoop(pass func(context.Context) (int, error)) *loop {
	return &loop{pass, make(chan struct{}, 1)}
}

// nudge has a pass follow: the one under way may have looked already.
func (l *loop) nudge() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

func (l *loop) run(ctx context.Context, poll time.Duration, failed func(error)) {
	failures, said := 0, ""
	for ctx.Err() == nil {
		n, err := l.pass(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if text := err.Error(); text != said {
				failed(err)
				said = text
			}
			failures++
			if n == 0 {
				l.cool(ctx, min(50*time.Millisecond<<min(failures, 7), 5*time.Second, max(poll, time.Second)))
			}
		default:
			failures, said = 0, ""
			if n == 0 {
				l.idle(ctx, poll)
			}
		}
	}
}

// cool pauses after a failure: for a moment in any case, so that wakes do not make it hot, and then at most until the
// next wake, since what failed may be one projection of many.
func (l *loop) cool(ctx context.Context, d time.Duration) {
	const moment = 100 * time.Millisecond
	rest(ctx, min(d, moment))
	if d > moment {
		l.idle(ctx, d-moment)
	}
}

// idle waits for d, +-25 %, for a wake, or until ctx ends.
func (l *loop) idle(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d*3/4 + rand.N(d/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-l.woken:
	case <-timer.C:
	}
}

// rest waits for d, +-25 %, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d*3/4 + rand.N(d/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
