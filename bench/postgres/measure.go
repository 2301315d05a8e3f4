package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sample is what one process measured. A phase that was not measured has no jobs.
type sample struct {
	Insert, Drain, Steady, Tx phase
	Near, Far                 latency   // enqueued by the process that works; by another
	Parts                     []phase   // of a run that is compared with itself
	Pruned                    []float64 // jobs/s
}

// latency is in ms, from the call of an enqueue to the handler's first line.
type latency struct{ P50, P99 float64 }

const (
	pickups    = 200
	txConns    = 16              // connections that enqueue singly
	patience   = 2 * time.Minute // for one phase
	producers  = 2               // of the steady state
	production = 250             // jobs per call of theirs
	backlog    = 10000           // they stay so far ahead of the worker at most
)

// subject is a contender in its database, with a meter beside it.
type subject struct {
	contender
	queue
	meter *meter
	cfg   Config
	dsn   string
}

func (s *subject) wants(phase string) bool { return matches(phase, s.cfg.Phases) }

// measure takes the phases one after the other.
func (s *subject) measure(ctx context.Context) (out sample, err error) {
	n := s.jobs(s.cfg.Jobs)
	if s.wants("insert") || s.wants("drain") {
		if out.Insert, err = s.timed(ctx, n, func() error { return s.insert(ctx, n) }); err != nil {
			return out, fmt.Errorf("insert: %w", err)
		}
		if out.Drain, err = s.drain(ctx, n); err != nil {
			return out, fmt.Errorf("drain: %w", err)
		}
	}
	if s.wants("steady") {
		if out.Steady, err = s.steady(ctx, n); err != nil {
			return out, fmt.Errorf("steady: %w", err)
		}
	}
	q, ok := s.queue.(enqueuer)
	if !ok {
		return out, nil
	}
	if s.wants("pickup") {
		if out.Near, out.Far, err = s.pickup(ctx, q); err != nil {
			return out, fmt.Errorf("pickup: %w", err)
		}
	}
	if s.wants("transaction") {
		if out.Tx, err = s.transactions(ctx, q, max(s.cfg.Jobs/12, 1000)); err != nil {
			return out, fmt.Errorf("transaction: %w", err)
		}
	}
	return out, nil
}

// timed is what f takes for n jobs.
func (s *subject) timed(ctx context.Context, n int, f func() error) (phase, error) {
	runtime.GC() // the garbage of the phase before
	from, err := s.meter.read(ctx)
	if err == nil {
		err = f()
	}
	if err != nil {
		return phase{}, err
	}
	return s.meter.since(ctx, from, n)
}

// drain runs a worker until n jobs ran and their outcomes are stored. The worker's start and stop count.
func (s *subject) drain(ctx context.Context, n int) (p phase, err error) {
	stop, err := s.profile()
	if err != nil {
		return p, err
	}
	if err := s.forget(ctx); err != nil {
		return p, err
	}
	p, err = s.timed(ctx, n, func() error { return s.work(ctx, n, nil) })
	if err = errors.Join(err, stop()); err != nil {
		return p, err
	}
	if err := s.statements(ctx, n); err != nil {
		return p, err
	}
	return p, s.empty(ctx)
}

// empty holds a contender to its word.
func (s *subject) empty(ctx context.Context) error {
	left, err := s.left(ctx)
	if err == nil && left != 0 {
		err = fmt.Errorf("all jobs ran, and %d are still there", left)
	}
	return err
}

// work runs a worker until n jobs ran, and stops it. meanwhile runs beside it, if there is one; it is told how
// many jobs ran.
func (s *subject) work(ctx context.Context, n int, meanwhile func(ctx context.Context, ran *atomic.Int64) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var ran atomic.Int64
	all := make(chan struct{})
	stop, err := s.start(func() {
		if ran.Add(1) == int64(n) {
			close(all)
		}
	})
	if err != nil {
		return err
	}
	if meanwhile != nil {
		err = meanwhile(ctx, &ran)
	}
	if err == nil {
		select {
		case <-all:
		case <-ctx.Done():
			err = fmt.Errorf("only %d of %d jobs ran: %w", ran.Load(), n, ctx.Err())
		}
	}
	return errors.Join(err, stop())
}

// steady enqueues and works together, n jobs in all.
func (s *subject) steady(ctx context.Context, n int) (p phase, err error) {
	p, err = s.timed(ctx, n, func() error {
		return s.work(ctx, n, func(ctx context.Context, ran *atomic.Int64) error {
			var sent atomic.Int64
			return parallel(producers, func() error {
				for {
					from := sent.Add(production)
					size := min(production, int64(n)-(from-production))
					if size <= 0 {
						return nil
					}
					if err := s.produce(ctx, from, int(size), ran); err != nil {
						return err
					}
				}
			})
		})
	})
	if err != nil {
		return p, err
	}
	return p, s.empty(ctx)
}

// produce waits until the worker is near enough, and inserts.
func (s *subject) produce(ctx context.Context, sent int64, n int, ran *atomic.Int64) error {
	for sent-ran.Load() > backlog {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return s.insert(ctx, n)
}

// parallel runs f n times at once.
func parallel(n int, f func() error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// transactions enqueues n jobs, each in a transaction of its own, while nobody works.
func (s *subject) transactions(ctx context.Context, q enqueuer, n int) (phase, error) {
	// Connections are made before the clock starts.
	if err := parallel(txConns, func() error { return q.insertTx(ctx) }); err != nil {
		return phase{}, err
	}
	var sent atomic.Int64
	return s.timed(ctx, n, func() error {
		return parallel(txConns, func() error {
			for sent.Add(1) <= int64(n) {
				if err := q.insertTx(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// pickup enqueues single jobs to a worker that has nothing to do, at moments that no poll can be in step with: first
// through the queue that works, then through another with connections of its own, as other processes have.
func (s *subject) pickup(ctx context.Context, near enqueuer) (here, there latency, err error) {
	other, err := s.open(ctx, s.dsn)
	if err != nil {
		return here, there, err
	}
	defer func() { err = errors.Join(err, other.close()) }()
	began := make(chan time.Time, pickups)
	stop, err := near.start(func() { began <- time.Now() })
	if err != nil {
		return here, there, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	n := pickups
	if s.slow {
		n /= 5
	}
	if here, err = latencies(ctx, near, began, n); err != nil {
		return here, there, err
	}
	there, err = latencies(ctx, other.(enqueuer), began, n)
	return here, there, err
}

// warming is how many pickups come before the first that counts.
const warming = 5

func latencies(ctx context.Context, from enqueuer, began <-chan time.Time, n int) (latency, error) {
	took := make([]float64, 0, n)
	for i := range warming + n {
		time.Sleep(5*time.Millisecond + rand.N(10*time.Millisecond))
		start := time.Now()
		if err := from.insertOne(ctx); err != nil {
			return latency{}, err
		}
		select {
		case at := <-began:
			if i >= warming {
				took = append(took, float64(at.Sub(start).Microseconds())/1000)
			}
		case <-ctx.Done():
			return latency{}, ctx.Err()
		case <-time.After(patience):
			return latency{}, fmt.Errorf("a job was not picked up in %v", patience)
		}
	}
	slices.Sort(took)
	return latency{took[len(took)/2], took[len(took)*99/100]}, nil
}

// profile begins a CPU profile, if one is asked for.
func (s *subject) profile() (stop func() error, err error) {
	if s.cfg.Profiles == "" {
		return func() error { return nil }, nil
	}
	out, err := os.Create(s.cfg.Profiles + "/" + fileName(s.name) + ".prof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return out.Close()
	}, nil
}
