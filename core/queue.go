package core

import (
	"fmt"
	"slices"
	"time"
)

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
	askAt   time.Time // when asking is worthwhile without a wake

	fruitless allowance // claims that may bring nothing before they are paced (Q24)
	notBefore time.Time
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
	if err == nil && q.jobs != nil && s.concurrency > 0 && takers != q.takers {
		err = &InvalidError{"Concurrency", fmt.Sprintf("queue %q runs with %d takers already, not with %d", q.name, q.takers, s.concurrency)}
	}
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
	h.queue, h.asked = q, s
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
	if i := slices.Index(h.queue.asked, h.asked); i >= 0 {
		h.queue.asked = slices.Delete(slices.Clone(h.queue.asked), i, i+1)
	}
	h.queue.names = slices.DeleteFunc(slices.Clone(h.queue.names), func(n string) bool { return n == h.name })
}
