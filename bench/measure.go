package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// sample is what one process measured.
type sample struct {
	Jobs   int
	Insert float64 // jobs/s, many at a time
	Single float64 // jobs/s, one at a time
	Drain  float64 // jobs/s
	CPU    float64 // µs per drained job
	P50    float64 // ms from the call of an enqueue to the handler's first line
	P99    float64
}

const (
	pickups  = 300
	patience = 2 * time.Minute // for one drain
)

// measure runs the phases on one database: insert, drain, insert singly, drain again, wait for single jobs.
func measure(ctx context.Context, c contender, cfg config, profile string) (s sample, err error) {
	q, err := c.open(cfg.dir)
	if err != nil {
		return s, fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, q.close()) }()

	s.Jobs = c.jobs(cfg.jobs)
	start := time.Now()
	if err := q.insert(ctx, s.Jobs); err != nil {
		return s, fmt.Errorf("insert: %w", err)
	}
	s.Insert = rate(s.Jobs, start)

	runtime.GC() // the garbage of the inserts is not the worker's
	if s.Drain, s.CPU, err = profiled(profile, func() (float64, float64, error) { return drain(ctx, q, s.Jobs) }); err != nil {
		return s, fmt.Errorf("drain: %w", err)
	}

	singles := min(s.Jobs, cfg.jobs/30)
	start = time.Now()
	for range singles {
		if err := q.insertOne(ctx); err != nil {
			return s, fmt.Errorf("insert one: %w", err)
		}
	}
	s.Single = rate(singles, start)
	if _, _, err := drain(ctx, q, singles); err != nil {
		return s, fmt.Errorf("drain: %w", err)
	}

	if s.P50, s.P99, err = pickup(ctx, q); err != nil {
		return s, fmt.Errorf("pickup: %w", err)
	}
	return s, nil
}

func rate(n int, since time.Time) float64 { return float64(n) / time.Since(since).Seconds() }

// profiled runs f, with a CPU profile in the file if it has a name.
func profiled(file string, f func() (float64, float64, error)) (_, _ float64, err error) {
	if file == "" {
		return f()
	}
	out, err := os.Create(file)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := pprof.StartCPUProfile(out); err != nil {
		return 0, 0, err
	}
	defer pprof.StopCPUProfile()
	return f()
}

// drain runs a worker until n jobs ran and their outcomes are stored. The worker's start and stop count.
func drain(ctx context.Context, q queue, n int) (perSecond, cpuPerJob float64, err error) {
	var ran atomic.Int64
	all := make(chan struct{})
	start, used := time.Now(), cpu()
	stop, err := q.start(func() {
		if ran.Add(1) == int64(n) {
			close(all)
		}
	})
	if err != nil {
		return 0, 0, err
	}
	select {
	case <-all:
	case <-ctx.Done():
	case <-time.After(patience):
		err = fmt.Errorf("only %d of %d jobs ran in %v", ran.Load(), n, patience)
	}
	if err := errors.Join(err, stop(), ctx.Err()); err != nil {
		return 0, 0, err
	}
	perSecond = rate(n, start)
	cpuPerJob = float64((cpu() - used).Nanoseconds()) / 1000 / float64(n)
	left, err := q.left(ctx)
	if err == nil && left != 0 {
		err = fmt.Errorf("%d jobs ran and %d are still there", ran.Load(), left)
	}
	return perSecond, cpuPerJob, err
}

// pickup enqueues single jobs to a worker that has nothing to do, at moments that no poll can be in step with.
func pickup(ctx context.Context, q queue) (p50, p99 float64, err error) {
	began := make(chan time.Time, pickups)
	stop, err := q.start(func() { began <- time.Now() })
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	took := make([]float64, 0, pickups)
	for range pickups {
		time.Sleep(5*time.Millisecond + rand.N(10*time.Millisecond))
		start := time.Now()
		if err := q.insertOne(ctx); err != nil {
			return 0, 0, err
		}
		select {
		case at := <-began:
			took = append(took, float64(at.Sub(start).Microseconds())/1000)
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		case <-time.After(patience):
			return 0, 0, fmt.Errorf("a job was not picked up in %v", patience)
		}
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], nil
}

// cpu is the process's user and system time so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
