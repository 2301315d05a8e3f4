package core

import (
	"context"
	"slices"
	"time"
)

// heartbeat keeps every lease in flight alive until its ack is settled, and ends runs whose lease is gone (Q21).
type heartbeat struct {
	w    *Worker
	kick chan struct{} // beat now: something may have been cancelled
	wall func() time.Time
	size batchLimit // leases per call
}

const extendBatch = 1 << 16

func newHeartbeat(w *Worker) *heartbeat {
	return &heartbeat{
		w: w, kick: make(chan struct{}, 1),
		// Round strips the monotonic reading: the wall clock also counts the time a machine was suspended.
		wall: func() time.Time { return time.Now().Round(0) },
		size: newBatchLimit(extendBatch),
	}
}

// now asks for a beat at once.
func (h *heartbeat) now() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// loop beats every Renew, every Renew/3 while something could not be renewed, and whenever it is kicked.
func (h *heartbeat) loop(ctx context.Context) {
	renew := h.w.opts.Renew
	next := time.Now().Add(renew)
	last, lastWall := time.Now(), h.wall()
	timer := time.NewTimer(renew)
	defer timer.Stop()
	for {
		// Often enough to notice soon that the machine was suspended.
		timer.Reset(min(time.Until(next), h.untilDoubt(), renew/10))
		select {
		case <-ctx.Done():
			return
		case <-h.kick:
			next = time.Now()
		case <-timer.C:
		}
		now, wall := time.Now(), h.wall()
		if jump := wall.Sub(lastWall) - now.Sub(last); jump > h.w.opts.Lease/10 {
			// The machine slept: leases ran on without us. One Extend tells which are still ours.
			h.w.log.Warn("wall clock jumped ahead, checking all leases", "by", jump)
			h.age(jump)
			h.w.plan.now() // slots were missed, perhaps
			next = now
		}
		last, lastWall = now, wall
		if !now.Before(next) {
			if h.beat(ctx) {
				next = now.Add(renew)
			} else {
				next = time.Now().Add(renew / 3)
			}
		}
		h.doubt(time.Now())
	}
}

// beat extends every lease in flight, in one call unless that proved too much; false if it should be tried again
// soon.
func (h *heartbeat) beat(ctx context.Context) bool {
	all := true
	for runs := range slices.Chunk(h.w.flights.all(), h.size.now()) {
		all = h.extend(ctx, runs) && all
	}
	return all
}

func (h *heartbeat) extend(ctx context.Context, runs []*run) bool {
	leases := make([]Lease, len(runs))
	for i, r := range runs {
		leases[i] = r.lease
	}
	sent := time.Now()
	// The answer must come before we would have to give a lease up.
	ctx, stop := context.WithTimeout(ctx, h.untilDoubt())
	defer stop()
	ext, slow, err := h.w.extend(ctx, leases)
	h.size.note(slow, err)
	if err != nil {
		h.w.log.Warn("heartbeat failed, will be repeated", "leases", len(leases), "error", err)
		return false
	}
	unchanged := keySet(slices.Concat(ext.Lost, ext.Busy))
	for _, l := range ext.Lost {
		h.lost(l)
	}
	for _, l := range ext.CancelRequested {
		if r := h.w.flights.get(l); r != nil {
			r.cancel(ErrCancelled)
		}
	}
	h.renewed(runs, unchanged, sent.Add(h.w.opts.Lease))
	return len(ext.Busy) == 0
}

func (h *heartbeat) lost(l Lease) {
	r := h.w.flights.get(l)
	if r == nil {
		return // settled while the heartbeat was under way
	}
	r.lose()
	if r.lost.Load() {
		h.w.log.Warn("lease lost, the job may run elsewhere", jobAttr(r))
		h.w.tellLost(r, "", ErrLeaseLost)
	}
}

// Deadlines are the heartbeat's alone once a run is in flight, guarded by the flights' lock.

func (h *heartbeat) renewed(runs []*run, unchanged map[claimKey]bool, deadline time.Time) {
	h.w.flights.mu.Lock()
	defer h.w.flights.mu.Unlock()
	for _, r := range runs {
		if !unchanged[r.lease.key()] {
			r.deadline = deadline
		}
	}
}

// age brings the deadlines forward, but leaves the store the time of one call to say which leases are still ours.
func (h *heartbeat) age(by time.Duration) {
	h.w.flights.mu.Lock()
	defer h.w.flights.mu.Unlock()
	soon := time.Now().Add(h.w.opts.Lease / 6)
	for _, r := range h.w.flights.runs {
		if r.deadline = r.deadline.Add(-by); r.deadline.Before(soon) {
			r.deadline = soon
		}
	}
}

// untilDoubt is the time to the first deadline of a run that may still be told: at least 1 ms.
func (h *heartbeat) untilDoubt() time.Duration {
	h.w.flights.mu.Lock()
	defer h.w.flights.mu.Unlock()
	first := h.w.opts.Lease
	for _, r := range h.w.flights.runs {
		if r.tellable() {
			first = min(first, time.Until(r.deadline))
		}
	}
	return max(first, time.Millisecond)
}

// doubt tells the runs whose deadline passed without an answer from the store.
func (h *heartbeat) doubt(now time.Time) {
	for _, r := range h.w.flights.all() {
		h.w.flights.mu.Lock()
		over := !now.Before(r.deadline)
		h.w.flights.mu.Unlock()
		if over && r.tellable() {
			h.w.log.Warn("lease doubtful: the store did not answer in time", jobAttr(r))
			r.cancel(ErrLeaseDoubtful)
		}
	}
}
