package core

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

// dispatcher claims for all queues of a worker and feeds their takers. It never claims more than idle takers
// can start at once (Q18).
type dispatcher struct {
	w    *Worker
	kick chan struct{} // something changed that plan looks at

	mu       sync.Mutex
	handlers map[string]*handler
	queues   map[string]*queue
	order    []*queue        // in order of registration
	turn     int             // whose Want comes first, so that a scarce MaxConcurrent goes round
	running  int             // jobs with takers, over all queues
	roomy    time.Time       // since when there is room under MaxConcurrent
	live     bool            // takers are started as queues come
	base     context.Context //nolint:containedctx // of the runs to come; set by start
	takers   *sync.WaitGroup

	notBefore time.Time // after claims that failed
	outage    *pause
	most      batchLimit // jobs per want and claim
}

const (
	fillWait   = 2 * time.Millisecond  // how long an idle taker waits for others before a claim
	claimLimit = 512                   // jobs per want and claim at most
	askAlong   = 50 * time.Millisecond // queues that seem empty are asked along with others, but no more often
	idleBurst  = 4                     // fruitless claims in a row that are not paced
	idlePace   = 105 * time.Millisecond
	outageMin  = 100 * time.Millisecond
	outageMax  = 5 * time.Second
)

func newDispatcher(w *Worker) *dispatcher {
	return &dispatcher{
		w: w, kick: make(chan struct{}, 1),
		handlers: make(map[string]*handler), queues: make(map[string]*queue),
		outage: newPause(outageMin, outageMax), most: newBatchLimit(claimLimit),
	}
}

func (d *dispatcher) signal() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// start begins to run takers, for the queues there are and those to come.
func (d *dispatcher) start(base context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.order {
		if _, err := d.w.takers(q.name, q.asked); err != nil {
			return err
		}
	}
	d.live, d.base, d.takers = true, base, new(sync.WaitGroup)
	d.notBefore, d.running = time.Time{}, 0
	d.outage.reset()
	for _, q := range d.order {
		takers, _ := d.w.takers(q.name, q.asked)
		d.startTakers(q, takers)
	}
	return nil
}

func (d *dispatcher) startTakers(q *queue, n int) {
	q.takers, q.idle, q.since, q.hungry = n, n, time.Now(), true
	q.askAt, q.notBefore, q.fruitless = time.Time{}, time.Time{}, newAllowance(idleBurst)
	q.jobs = make(chan *run, n)
	for range n {
		d.takers.Add(1)
		go d.take(q, q.jobs)
	}
}

// counts is how many takers each queue has.
func (d *dispatcher) counts() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := make(map[string]int, len(d.order))
	for _, q := range d.order {
		n[q.name] = q.takers
	}
	return n
}

// stop ends the takers once they have emptied their channels.
func (d *dispatcher) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live = false
	for _, q := range d.order {
		if q.jobs != nil {
			close(q.jobs)
			q.jobs = nil
		}
	}
}

// take is one taker: one job after another.
func (d *dispatcher) take(q *queue, jobs <-chan *run) {
	finish := func(r *run, ack Ack, err error) {
		d.w.finish(r, ack, err)
		d.freed(q)
	}
	// A handler that calls runtime.Goexit takes this goroutine along; another takes its place.
	over := false
	defer func() {
		if !over {
			go d.take(q, jobs)
			return
		}
		d.takers.Done()
	}()
	for r := range jobs {
		if d.w.stopping.Load() {
			finish(r, Ack{Lease: r.lease, Outcome: OutcomeRelease}, nil) // claimed, not started (Q23)
			continue
		}
		d.w.begin(r)
		r.process(finish)
	}
	over = true
}

// freed counts a taker as idle again.
func (d *dispatcher) freed(q *queue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	q.idle++
	if q.idle == 1 {
		q.since = time.Now()
	}
	if most := d.w.opts.MaxConcurrent; most > 0 {
		if d.running == most-1 {
			d.roomy = time.Now()
		}
		if notable(most-d.running, most) {
			d.signal()
		}
	}
	if q.hungry && notable(q.idle, q.takers) {
		d.signal()
	}
}

// notable reports whether the n-th idle one of all is one that the dispatcher waits for: the first, or the one
// that makes a quarter.
func notable(n, all int) bool { return n == 1 || 4*(n-1) < all && 4*n >= all }

// wake marks queues as worth asking, and reports whether a claim will follow: some taker of theirs is idle.
func (d *dispatcher) wake(names []string) (useful bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	room, _ := d.room()
	for _, n := range names {
		if q := d.queues[n]; q != nil {
			q.hungry = true
			useful = useful || q.idle > 0 && room > 0
		}
	}
	d.signal()
	return useful
}

// loop claims until ctx ends, or the store was closed: then it says so.
func (d *dispatcher) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		wants, wait := d.plan(time.Now())
		if len(wants) == 0 {
			sleepOr(ctx, wait, d.kick)
			continue
		}
		if err := d.claim(ctx, wants); errors.Is(err, ErrClosed) {
			return err
		}
	}
	return nil
}

// plan says what to ask for now, or how long to wait before planning again.
func (d *dispatcher) plan(now time.Time) (wants []Want, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.notBefore.Sub(now); p > 0 {
		return nil, p
	}
	wait = d.w.opts.Poll
	room, most := d.room()
	urgent := false
	for _, q := range d.order {
		if len(q.names) == 0 {
			continue
		}
		if left := q.askAt.Sub(now); left <= 0 {
			q.hungry = true
		} else if !q.hungry {
			wait = min(wait, left)
		}
		idle := min(q.idle, room)
		if !q.hungry || idle == 0 {
			continue
		}
		if left := q.notBefore.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		since := q.since
		if d.roomy.After(since) {
			since = d.roomy
		}
		if left := fillWait - now.Sub(since); 4*idle >= min(q.takers, most) || left <= 0 {
			urgent = true
		} else {
			wait = min(wait, left)
		}
	}
	if !urgent {
		return nil, wait
	}
	return d.wants(now, room), 0
}

// room is how many more jobs may run under MaxConcurrent, and how many in all.
func (d *dispatcher) room() (room, most int) {
	if most = d.w.opts.MaxConcurrent; most == 0 {
		return math.MaxInt, math.MaxInt
	}
	return most - d.running, most
}

// wants asks for every queue with idle takers: the hungry ones first, each in turn, then those not asked of late.
func (d *dispatcher) wants(now time.Time, room int) []Want {
	var wants []Want
	start, next := d.turn, d.turn+1
	for _, hungry := range []bool{true, false} {
		for i := range d.order {
			at := (start + i) % len(d.order)
			q := d.order[at]
			limit := min(q.idle, room, d.most.now())
			if q.hungry != hungry || len(q.names) == 0 || limit <= 0 || q.notBefore.After(now) ||
				!hungry && now.Sub(q.askedAt) < askAlong {
				continue
			}
			room -= limit
			q.askedAt = now
			wants = append(wants, Want{Queue: q.name, Names: q.names, Limit: limit})
			if hungry {
				next = at + 1 // whoever comes after the last one served is first the next time
			}
		}
	}
	d.turn = next % len(d.order)
	return wants
}

// claim makes one store call and hands out what it brings.
func (d *dispatcher) claim(ctx context.Context, wants []Want) error {
	claimed, token, sent, slow, err := d.w.claim(wants)
	d.most.note(slow, err)
	if errors.Is(err, ErrClosed) {
		return err
	}
	if err != nil {
		d.w.log.Warn("claim failed, will be repeated", "error", err)
		d.mu.Lock()
		d.notBefore = time.Now().Add(d.outage.step())
		d.mu.Unlock()
		return err
	}
	empty := d.learn(wants, claimed)
	d.w.wake.expect(empty)
	d.hand(ctx, claimed.Jobs, token, sent)
	return nil
}

// learn updates what is known of the queues, and returns those with nothing to hand out.
func (d *dispatcher) learn(wants []Want, claimed Claimed) (empty []string) {
	got := make(map[string]int, len(wants))
	for i := range claimed.Jobs {
		got[claimed.Jobs[i].Queue]++
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.outage.reset()
	anyFilled := false
	for _, want := range wants {
		anyFilled = anyFilled || got[want.Queue] >= want.Limit
	}
	for _, want := range wants {
		q, n := d.queues[want.Queue], got[want.Queue]
		q.hungry = n >= want.Limit
		q.askAt = now.Add(jitter(d.w.opts.Poll))
		switch next := claimed.NextIn; {
		case q.hungry || next <= 0:
		case next == time.Nanosecond && !anyFilled:
			q.hungry = true // something was held back
		case next == time.Nanosecond:
			// Left over, most likely of a want that was filled. If of this one, it is asked again soon.
			next = askAlong
			fallthrough
		default:
			if at := now.Add(next); at.Before(q.askAt) {
				q.askAt = at
			}
		}
		if n > 0 {
			q.fruitless, q.notBefore = newAllowance(idleBurst), time.Time{}
		} else if !q.fruitless.take(now) {
			q.notBefore = now.Add(idlePace)
		}
	}
	for _, q := range d.order {
		if !q.hungry && len(q.names) > 0 {
			empty = append(empty, q.name)
		}
	}
	slices.Sort(empty)
	return empty
}

// hand gives claimed jobs to takers. What no taker can have is released.
func (d *dispatcher) hand(ctx context.Context, jobs []Record, token string, sent time.Time) {
	if len(jobs) == 0 {
		return
	}
	var spare []*run
	d.mu.Lock()
	runs := newRuns(d.base, jobs, token, sent.Add(d.w.opts.Lease), d.handlers)
	d.w.flights.add(runs) // before any of them can end
	for i := range runs {
		r := &runs[i]
		// The queue is where the job was claimed from, which is what its handler was registered for.
		q := d.queues[r.rec.Queue]
		if r.handler == nil || q == nil || q.jobs == nil || q.idle == 0 || ctx.Err() != nil {
			spare = append(spare, r)
			continue
		}
		q.idle--
		d.running++
		q.jobs <- r
	}
	d.mu.Unlock()
	for _, r := range spare {
		d.w.finish(r, Ack{Lease: r.lease, Outcome: OutcomeRelease}, nil)
	}
}
