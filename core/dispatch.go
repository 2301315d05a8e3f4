package core

import (
	"context"
	"fmt"
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
	live     bool            // takers are started as queues come
	base     context.Context //nolint:containedctx // of the runs to come; set by start
	takers   *sync.WaitGroup

	askAt     time.Time // when every queue is worth asking again without a wake
	notBefore time.Time // pace: after claims that brought nothing, or failed
	fruitless allowance // claims that may bring nothing before they are paced
	outage    *pause
}

// queue is one queue's takers and what the dispatcher knows of it. Guarded by dispatcher.mu.
type queue struct {
	name    string
	names   []string // of its handlers, sorted
	takers  int
	asked   []handleSettings // what its handlers asked for
	jobs    chan *run        // never full: no more are claimed than takers are idle
	idle    int
	since   time.Time // when the first taker fell idle
	hungry  bool      // asking may bring something
	askedAt time.Time
}

const (
	fillWait   = 2 * time.Millisecond  // how long an idle taker waits for others before a claim
	claimLimit = 512                   // jobs per want and claim
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
		outage: newPause(outageMin, outageMax),
	}
}

func (d *dispatcher) signal() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// add registers a handler (Q17).
func (d *dispatcher) add(h *handler, s handleSettings) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if other, twice := d.handlers[h.name]; twice {
		return fmt.Errorf("stint: %q is handled twice: at %s and at %s", h.name, other.place, h.place)
	}
	q := d.queues[s.queue]
	if q == nil {
		q = &queue{name: s.queue}
	}
	asked := append(slices.Clone(q.asked), s)
	takers, err := d.w.takers(q.name, asked)
	if err != nil && d.live {
		return err // before Run, Run reports it
	}
	if d.queues[q.name] == nil {
		d.queues[q.name] = q
		d.order = append(d.order, q)
	}
	q.asked = asked
	q.names = append(slices.Clone(q.names), h.name)
	slices.Sort(q.names)
	q.hungry = true
	h.queue = q
	d.handlers[h.name] = h
	if d.live && q.jobs == nil {
		d.startTakers(q, takers)
	}
	d.signal()
	return nil
}

// remove unregisters a handler; its queue's takers stay for others to come.
func (d *dispatcher) remove(h *handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handlers[h.name] != h {
		return
	}
	delete(d.handlers, h.name)
	h.queue.names = slices.DeleteFunc(slices.Clone(h.queue.names), func(n string) bool { return n == h.name })
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
	d.askAt, d.notBefore, d.fruitless = time.Time{}, time.Time{}, newAllowance(idleBurst)
	d.outage.reset()
	for _, q := range d.order {
		takers, _ := d.w.takers(q.name, q.asked)
		d.startTakers(q, takers)
	}
	return nil
}

func (d *dispatcher) startTakers(q *queue, n int) {
	q.takers, q.idle, q.since, q.hungry = n, n, time.Now(), true
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
	exited := false
	replace := func() { exited = true }
	defer func() {
		if exited {
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
		r.process(finish, replace)
	}
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
	// The dispatcher cares for the first one, for the quarter, and for room under MaxConcurrent.
	if q.hungry && (q.idle == 1 || 4*(q.idle-1) < q.takers && 4*q.idle >= q.takers) || d.w.opts.MaxConcurrent > 0 {
		d.signal()
	}
}

// wake marks queues as worth asking, and reports whether a claim will follow: some taker of theirs is idle.
func (d *dispatcher) wake(names []string) (useful bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	room := d.room()
	for _, n := range names {
		if q := d.queues[n]; q != nil {
			q.hungry = true
			useful = useful || q.idle > 0 && room > 0
		}
	}
	d.signal()
	return useful
}

// loop claims until ctx ends.
func (d *dispatcher) loop(ctx context.Context) {
	for ctx.Err() == nil {
		wants, wait := d.plan(time.Now())
		if len(wants) == 0 {
			sleepOr(ctx, wait, d.kick)
			continue
		}
		d.claim(ctx, wants)
	}
}

// plan says what to ask for now, or how long to wait before planning again.
func (d *dispatcher) plan(now time.Time) (wants []Want, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.askAt.IsZero() || !now.Before(d.askAt) {
		for _, q := range d.order {
			q.hungry = true
		}
		d.askAt = now.Add(jitter(d.w.opts.Poll))
	}
	wait = d.askAt.Sub(now)
	if p := d.notBefore.Sub(now); p > 0 {
		return nil, p
	}
	room := d.room()
	urgent := false
	for _, q := range d.order {
		idle := min(q.idle, room)
		if !q.hungry || len(q.names) == 0 || idle == 0 {
			continue
		}
		if left := fillWait - now.Sub(q.since); 4*idle >= q.takers || left <= 0 || idle == room {
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

// room is how many more jobs may run under MaxConcurrent.
func (d *dispatcher) room() int {
	if d.w.opts.MaxConcurrent == 0 {
		return claimLimit * max(1, len(d.order))
	}
	return d.w.opts.MaxConcurrent - d.running
}

// wants asks for every queue with idle takers: the hungry ones first, each in turn, then those not asked of late.
func (d *dispatcher) wants(now time.Time, room int) []Want {
	d.turn++
	var wants []Want
	for _, hungry := range []bool{true, false} {
		for i := range d.order {
			q := d.order[(d.turn+i)%len(d.order)]
			limit := min(q.idle, room, claimLimit)
			if q.hungry != hungry || len(q.names) == 0 || limit <= 0 || !hungry && now.Sub(q.askedAt) < askAlong {
				continue
			}
			room -= limit
			q.askedAt = now
			wants = append(wants, Want{Queue: q.name, Names: q.names, Limit: limit})
		}
	}
	return wants
}

// claim makes one store call and hands out what it brings.
func (d *dispatcher) claim(ctx context.Context, wants []Want) {
	claimed, token, sent, err := d.w.claim(wants)
	if err != nil {
		d.w.log.Warn("claim failed, will be repeated", "error", err)
		d.mu.Lock()
		d.notBefore = time.Now().Add(d.outage.step())
		d.mu.Unlock()
		return
	}
	idle := d.learn(wants, claimed)
	d.w.wake.expect(idle)
	d.hand(ctx, claimed.Jobs, token, sent)
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
	d.notBefore = time.Time{}
	if len(claimed.Jobs) > 0 {
		d.fruitless = newAllowance(idleBurst)
	} else if !d.fruitless.take(now) {
		d.notBefore = now.Add(idlePace)
	}
	filled := false
	for _, want := range wants {
		q := d.queues[want.Queue]
		q.hungry = got[want.Queue] >= want.Limit
		filled = filled || q.hungry
	}
	switch next := claimed.NextIn; {
	case next > time.Nanosecond:
		if at := now.Add(next); at.Before(d.askAt) {
			d.askAt = at
		}
	case next == time.Nanosecond && filled:
		// Left over, most likely of a want that was filled: its takers will ask. If of another, ask soon.
		if at := now.Add(askAlong); at.Before(d.askAt) {
			d.askAt = at
		}
	case next == time.Nanosecond:
		for _, want := range wants {
			d.queues[want.Queue].hungry = true
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
