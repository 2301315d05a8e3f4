package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Worker claims jobs from one store and runs them. Register handlers with Job.Handle, then call Run.
// Its methods are safe for concurrent use.
type Worker struct {
	store Store
	opts  WorkerOptions
	log   *slog.Logger

	disp    *dispatcher
	wake    *waker
	beat    *heartbeat
	settle  *settler
	flights *inflight
	orphans *orphans
	plan    *planner

	busy     atomic.Bool // Run or Drain is under way
	stopping atomic.Bool
	spent    atomic.Bool // a Run left handlers behind
	failures *onFailure
	audience audience
}

// NewWorker returns a worker for s; InvalidError names an option that is out of range.
func NewWorker(s Store, opts WorkerOptions) (*Worker, error) {
	if err := given("Store", s); err != nil {
		return nil, err
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Worker{store: s, opts: opts, log: opts.Logger.With("worker", opts.ID), flights: newInflight()}
	w.disp, w.wake, w.beat, w.orphans = newDispatcher(w), newWaker(w), newHeartbeat(w), newOrphans(w)
	w.plan = newPlanner(w)
	return w, nil
}

// takers is how many takers a queue has, or an error if its handlers disagree (Q17).
func (w *Worker) takers(name string, asked []handleSettings) (int, error) {
	if n := w.opts.Queues[name].Concurrency; n > 0 {
		return n, nil
	}
	n := 0
	for _, s := range asked {
		if s.concurrency > 0 && n > 0 && s.concurrency != n {
			return 0, &InvalidError{"Concurrency", fmt.Sprintf("handlers of queue %q ask for %d and for %d", name, n, s.concurrency)}
		}
		n = max(n, s.concurrency)
	}
	if n == 0 {
		n = w.opts.Concurrency
	}
	return n, nil
}

// storeCall bounds one call to the store, so that none can hold a lease's keeper for long (Q21).
func (w *Worker) storeCall(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, w.opts.Lease/6)
}

// Run claims and runs jobs until ctx ends, then stops in order: no further claim; jobs claimed but not started
// are released; handlers run on for Grace; then their contexts end with ErrStopping. It returns nil once
// everything is settled, or a *ShutdownError naming what is not: what the store could not be told, and handlers
// that still ran one Lease after Grace (Q23). A store that fails is retried, never an error, unless a claim says that it
// was closed: then Run stops in the same order, and its error wraps ErrClosed, beside any *ShutdownError (Q24).
//
// One Run or Drain at a time. Afterwards Run may be called again, unless handlers were left behind.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.occupy(); err != nil {
		return err
	}
	defer w.busy.Store(false)

	// The work outlives ctx: its values stay, its end does not reach it.
	base := context.WithoutCancel(ctx)
	ctx, end := context.WithCancel(ctx)
	defer end()
	service, stopService := context.WithCancel(base)
	defer stopService()
	if err := w.disp.start(base); err != nil {
		return err
	}
	w.announce()
	w.settle, w.failures, w.audience = newSettler(w), newOnFailure(w, base), newAudience(w, base)
	w.settle.start(service, flushers)

	var intake, services sync.WaitGroup
	var closed atomic.Pointer[error]
	intake.Go(func() {
		if err := w.disp.loop(ctx); err != nil {
			closed.Store(&err)
			end()
		}
	})
	intake.Go(func() { w.wake.loop(ctx) })
	intake.Go(func() { w.sweep(ctx) })
	intake.Go(func() { w.prune(ctx) })
	intake.Go(func() { w.plan.loop(ctx) })
	services.Go(func() { w.beat.loop(service) })
	services.Go(func() { w.orphans.loop(service) })

	<-ctx.Done()
	w.stopping.Store(true)
	last := time.Now().Add(w.opts.Grace + w.opts.Lease)
	w.settle.unbound()
	if !waitFor(intake.Wait, w.opts.Lease) {
		w.log.Error("a store call ignores its context, leaving it behind")
		w.spent.Store(true)
	}
	w.disp.stop()
	w.finishRuns(last)
	w.windUp(last, stopService)
	services.Wait()
	err := w.leftOver(w.orphans.left())
	if why := closed.Load(); why != nil {
		err = errors.Join(*why, err)
	}
	w.log.Info("worker stopped", "error", err)
	return err
}

// announce logs the start, and what looks like a mistake.
func (w *Worker) announce() {
	queues := w.disp.counts()
	w.log.Info("worker started", "takers", queues)
	if len(queues) == 0 {
		w.log.Warn("worker has no handlers yet and runs nothing")
	}
	for name := range w.opts.Queues {
		if _, ok := queues[name]; !ok {
			w.log.Warn("WorkerOptions.Queues names a queue that no handler is registered for", "queue", name)
		}
	}
}

var (
	errBusy  = errors.New("stint: this worker is running already")
	errSpent = errors.New("stint: this worker left handlers behind and cannot run again")
)

const flushers = 1

func (w *Worker) occupy() error {
	if w.spent.Load() {
		return errSpent
	}
	if !w.busy.CompareAndSwap(false, true) {
		return errBusy
	}
	w.stopping.Store(false)
	return nil
}

// windUp waits until everything is settled, at least for one store call and at most until last.
func (w *Worker) windUp(last time.Time, stopService func()) {
	patience := max(time.Until(last), w.opts.Lease/6)
	w.settle.close()
	if !waitFor(w.settle.flusher.Wait, patience) {
		w.log.Error("the store did not take all outcomes in time")
	}
	stopService()
	w.settle.flusher.Wait()
	w.closeHooks(patience)
}

// finishRuns waits for the handlers: Grace in peace, then until last after telling them to stop.
func (w *Worker) finishRuns(last time.Time) {
	if waitFor(w.disp.takers.Wait, w.opts.Grace) {
		return
	}
	for _, r := range w.flights.all() {
		r.cancel(ErrStopping)
	}
	if !waitFor(w.disp.takers.Wait, time.Until(last)) {
		w.spent.Store(true)
		w.log.Error("handlers ignore their context, leaving them behind")
	}
}

// leftOver names what was not settled, and forgets it: nobody keeps these leases alive any more.
func (w *Worker) leftOver(claims int) error {
	left := w.flights.empty()
	if len(left) == 0 && claims == 0 {
		return nil
	}
	slices.SortFunc(left, func(a, b Lease) int { return strings.Compare(a.ID, b.ID) })
	return &ShutdownError{Jobs: left, Claims: claims}
}

// waitFor calls wait and reports whether it returned within d.
func waitFor(wait func(), d time.Duration) bool {
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// claim asks the store under a fresh token. A claim whose reply was lost is never repeated under it; what it may
// have taken is looked for and released (architecture decision 3).
func (w *Worker) claim(wants []Want) (claimed Claimed, token string, sent time.Time, slow bool, err error) {
	token, sent = NewToken(), time.Now()
	// Not bounded by Run's ctx: a claim cut short by a shutdown would leave jobs to their lease's end.
	ctx, cancel := w.storeCall(context.Background())
	defer cancel()
	claimed, err = w.store.Claim(ctx, ClaimRequest{Wants: wants, Token: token, Lease: w.opts.Lease, Worker: w.opts.ID})
	if w.audience != nil {
		w.tellClaim(wants, claimed, time.Since(sent), err)
	}
	if err != nil && !errors.Is(err, ErrUnavailable) && !isInvalid(err) {
		w.orphans.add(token, sent)
	}
	return claimed, token, sent, ranOut(ctx), err
}

// ranOut reports whether a store call used up its deadline.
func ranOut(call context.Context) bool { return errors.Is(call.Err(), context.DeadlineExceeded) }

// extend renews leases in one bounded call.
func (w *Worker) extend(ctx context.Context, leases []Lease) (ext Extended, slow bool, err error) {
	ctx, cancel := w.storeCall(ctx)
	defer cancel()
	ext, err = w.store.Extend(ctx, leases, w.opts.Lease)
	return ext, err != nil && ranOut(ctx), err
}

func isInvalid(err error) bool {
	var invalid *InvalidError
	return errors.As(err, &invalid)
}

// finish takes over a run whose handler returned.
func (w *Worker) finish(r *run, ack Ack, err error) {
	r.returned()
	if r.lost.Load() {
		w.tellLost(r, "", ErrLeaseLost)
		w.flights.remove(r) // somebody else has the job, or had (Q19)
		return
	}
	w.settle.put(settling{run: r, ack: ack, err: err, verify: r.completing.Load()})
}

func jobAttr(r *run) slog.Attr {
	return slog.Group("job", "id", r.rec.ID, "name", r.rec.Name, "queue", r.rec.Queue, "attempt", r.rec.Attempts+1)
}
