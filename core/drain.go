package core

import (
	"context"
	"sync"
	"time"
)

// DrainOptions bound a Drain.
type DrainOptions struct {
	Limit int // jobs to claim at most; 0: no limit
}

// Drain claims and runs what is due now, round by round, until a claim brings nothing or Limit is reached, and
// returns the number of jobs claimed. It has no loop but the heartbeat: no waiting, no sweep. A round runs as
// many jobs at once as there are takers. Once ctx ends nothing more is claimed; running jobs finish. Without
// handlers it returns 0 without a store call. The error is that of a claim that failed, or a *ShutdownError
// (Q25).
func (w *Worker) Drain(ctx context.Context, opts DrainOptions) (int, error) {
	if opts.Limit < 0 {
		return 0, &InvalidError{"Limit", "must not be negative"}
	}
	if err := w.occupy(); err != nil {
		return 0, err
	}
	defer w.busy.Store(false)

	base := context.WithoutCancel(ctx)
	service, stopService := context.WithCancel(base)
	defer stopService()
	var services sync.WaitGroup
	w.settle = newSettler(w)
	w.settle.start(service, flushers)
	services.Go(func() { w.beat.loop(service) })

	total := 0
	var failure error
	for ctx.Err() == nil {
		wants, err := w.disp.drainWants(opts.Limit - total)
		if failure = err; err != nil || len(wants) == 0 {
			break
		}
		claimed, token, sent, err := w.claim(wants)
		if failure = err; err != nil || len(claimed.Jobs) == 0 {
			break
		}
		total += len(claimed.Jobs)
		runs := w.disp.flying(base, claimed.Jobs, token, sent)
		var round sync.WaitGroup
		for i := range runs {
			round.Go(func() { w.drainOne(&runs[i]) })
		}
		round.Wait()
		waitFor(w.settle.idle, w.opts.Lease) // a retry due at once belongs to the next round
		if opts.Limit > 0 && total >= opts.Limit {
			break
		}
	}
	w.settle.close()
	waitFor(w.settle.flusher.Wait, w.opts.Lease)
	stopService()
	services.Wait()
	w.settle.flusher.Wait()
	w.hooks.Wait()
	if failure == nil {
		failure = w.leftOver()
	}
	return total, failure
}

func (w *Worker) drainOne(r *run) {
	if r.handler == nil { // unregistered since the claim was planned
		w.finish(r, Ack{Lease: r.lease, Outcome: OutcomeRelease}, nil)
		return
	}
	r.process(w.finish, func() {})
}

// drainWants asks for as many jobs as may run at once, at most left if that is more than 0.
func (d *dispatcher) drainWants(left int) ([]Want, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	room := left
	if most := d.w.opts.MaxConcurrent; most > 0 && (room <= 0 || most < room) {
		room = most
	}
	bounded := room > 0
	var wants []Want
	for _, q := range d.order {
		limit, err := d.w.takers(q.name, q.asked)
		if err != nil {
			return nil, err
		}
		if bounded {
			limit = min(limit, room)
		}
		if len(q.names) == 0 || limit == 0 {
			continue
		}
		room -= limit
		wants = append(wants, Want{Queue: q.name, Names: q.names, Limit: limit})
	}
	return wants, nil
}

// flying puts claimed jobs in flight for a Drain, which has no takers.
func (d *dispatcher) flying(base context.Context, jobs []Record, token string, sent time.Time) []run {
	d.mu.Lock()
	defer d.mu.Unlock()
	runs := newRuns(base, jobs, token, sent.Add(d.w.opts.Lease), d.handlers)
	d.w.flights.add(runs)
	return runs
}
