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

// Drain claims and runs what is due now, round by round, until no queue has any more or Limit is reached, and returns the
// number of jobs claimed. It has no loop but the heartbeat: no waiting, no sweep, so it does not bring back jobs of workers
// that died, no pruning, and no slots of schedules. A round runs as many jobs at once as there are takers. Once ctx ends
// nothing more is claimed; running jobs finish. Without handlers it returns 0 without a store call. The error is that of a
// claim that failed, or a *ShutdownError (Q25).
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
	w.settle, w.failures, w.audience = newSettler(w), newOnFailure(w, base), newAudience(w, base)
	w.settle.start(service, flushers)
	defer context.AfterFunc(ctx, w.settle.unbound)()
	services.Go(func() { w.beat.loop(service) })

	total, failure := w.drainRounds(ctx, base, opts.Limit)

	w.windUp(time.Now().Add(w.opts.Lease), stopService)
	services.Wait()
	if left := w.leftOver(w.orphans.left()); failure == nil {
		failure = left
	}
	return total, failure
}

func (w *Worker) drainRounds(ctx, base context.Context, limit int) (total int, err error) {
	dry := make(map[string]bool) // queues that had nothing when last asked
	for ctx.Err() == nil && (limit == 0 || total < limit) {
		wants, err := w.disp.drainWants(limit-total, dry)
		if err != nil || len(wants) == 0 {
			return total, err
		}
		claimed, token, sent, _, err := w.claim(wants)
		if err != nil {
			return total, err
		}
		if len(claimed.Jobs) == 0 {
			for _, want := range wants {
				dry[want.Queue] = true
			}
			continue // with the queues that there was no room to ask
		}
		total += len(claimed.Jobs)
		clear(dry) // what runs may make more due anywhere
		runs := w.disp.flying(base, claimed.Jobs, token, sent)
		var round sync.WaitGroup
		for i := range runs {
			round.Go(func() { w.drainOne(&runs[i]) })
		}
		round.Wait()
		waitFor(w.settle.idle, w.opts.Lease) // a retry due at once belongs to the next round
	}
	return total, nil
}

func (w *Worker) drainOne(r *run) {
	if r.handler == nil { // unregistered since the claim was planned
		w.finish(r, Ack{Lease: r.lease, Outcome: OutcomeRelease}, nil)
		return
	}
	w.begin(r)
	r.process(w.finish)
}

// drainWants asks the queues that are not dry for as many jobs as may run at once, at most left if that is more
// than 0.
func (d *dispatcher) drainWants(left int, dry map[string]bool) ([]Want, error) {
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
		if len(q.names) == 0 || limit == 0 || dry[q.name] {
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
