package memstore

import (
	"fmt"

	"github.com/stintmq/stint/core"
)

// CheckInvariants goes through the whole store and returns an error for the first thing that is not as it must be:
// every job in exactly one place, counts that agree, heaps in order. It is for tests: nil unless there is a bug.
func (s *Store) CheckInvariants() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := checker{store: s, counts: map[*queue]*[len(states)]int64{}, pending: map[*lane]int64{}}
	for id, j := range s.jobs {
		if err := c.job(id, j); err != nil {
			return fmt.Errorf("memstore: job %q (%s): %w", id, j.rec.State, err)
		}
	}
	if err := s.checkKeys(); err != nil {
		return fmt.Errorf("memstore: %w", err)
	}
	if err := c.structures(); err != nil {
		return fmt.Errorf("memstore: %w", err)
	}
	return nil
}

type checker struct {
	store   *Store
	counts  map[*queue]*[len(states)]int64
	pending map[*lane]int64
	placed  int // jobs that a heap must hold
	ended   int // jobs that a history must hold
}

func (c *checker) job(id string, j *job) error {
	q := c.store.queues[j.rec.Queue]
	switch {
	case j.rec.ID != id:
		return fmt.Errorf("filed under another id than its own %q", j.rec.ID)
	case q == nil || q.lanes[j.rec.Name] != j.lane:
		return fmt.Errorf("in another lane than that of %q in %q", j.rec.Name, j.rec.Queue)
	}
	if c.counts[q] == nil {
		c.counts[q] = new([len(states)]int64)
	}
	c.counts[q][stateIndex(j.rec.State)]++
	if h, hi, lo := c.home(j); h != nil {
		c.placed++
		c.pending[j.lane]++
		if j.pos >= h.len() || h.nodes[j.pos].item != j {
			return fmt.Errorf("not where it says it is")
		}
		if n := h.nodes[j.pos]; n.hi != hi || n.lo != lo {
			return fmt.Errorf("placed by (%d, %d), not by (%d, %d)", n.hi, n.lo, hi, lo)
		}
	}
	if j.rec.State.Terminal() {
		c.ended++
	}
	return c.record(j)
}

// home is the heap that must hold a job, and its keys there; nil for a finished one.
func (c *checker) home(j *job) (h *heap[*job], hi, lo int64) {
	switch j.rec.State {
	case core.StateWaiting:
		return &j.lane.bin(j).heap, int64(-j.rec.Priority), j.place
	case core.StateDelayed:
		return &j.lane.delayed, j.rec.RunAt.UnixMicro(), j.rec.Ref
	case core.StateActive:
		return &c.store.leases, j.until, j.rec.Ref
	}
	return nil, 0, 0
}

// record checks what core's table of states says of each.
func (c *checker) record(j *job) error {
	r := &j.rec
	active := r.State == core.StateActive
	switch {
	case active != (j.token != ""):
		return fmt.Errorf("token %q", j.token)
	case r.State.Terminal() == r.FinishedAt.IsZero():
		return fmt.Errorf("FinishedAt %v", r.FinishedAt)
	case !active && r.State.Pending() && !r.ClaimedAt.IsZero():
		return fmt.Errorf("ClaimedAt %v", r.ClaimedAt)
	case !active && r.CancelRequested:
		return fmt.Errorf("a cancel is pending")
	case len(j.ledger) != min(r.Runs, core.LedgerLimit):
		return fmt.Errorf("%d entries in the ledger after %d runs", len(j.ledger), r.Runs)
	case r.State.Pending() && (r.Result != nil || r.Failure != nil):
		return fmt.Errorf("has a result or a failure")
	}
	for i := range j.ledger {
		if want := r.Runs - len(j.ledger) + 1 + i; j.ledger[i].Number != want {
			return fmt.Errorf("ledger entry %d has number %d, not %d", i, j.ledger[i].Number, want)
		}
	}
	return nil
}

func (c *checker) structures() error {
	s := c.store
	held := s.leases.len()
	if err := s.leases.check(); err != nil {
		return fmt.Errorf("leases: %w", err)
	}
	for _, q := range s.queues {
		for _, l := range q.lanes {
			held += l.runnable() + l.delayed.len()
			if err := c.lane(l); err != nil {
				return fmt.Errorf("queue %q, name %q: %w", q.name, l.name, err)
			}
		}
		if n := c.counts[q]; n == nil && q.counts != [len(states)]int64{} || n != nil && *n != q.counts {
			return fmt.Errorf("queue %q counts %v, has %v", q.name, q.counts, n)
		}
	}
	if held != c.placed {
		return fmt.Errorf("heaps hold %d jobs, not %d", held, c.placed)
	}
	filed := 0
	for g, h := range s.done {
		filed += h.live
		if err := c.history(g, h); err != nil {
			return fmt.Errorf("%s jobs of %q: %w", g.state, g.name, err)
		}
	}
	if filed != c.ended {
		return fmt.Errorf("histories hold %d jobs, not %d", filed, c.ended)
	}
	return nil
}

func (c *checker) history(g group, h *history) error {
	live := 0
	var last end
	for i, e := range h.ends[h.head:] {
		switch {
		case e.job == nil && (i == 0 || h.head+i == len(h.ends)-1):
			return fmt.Errorf("begin or end with a gap")
		case e.job != nil && (e.job.rec.Name != g.name || e.job.rec.State != g.state || c.store.jobs[e.job.rec.ID] != e.job):
			return fmt.Errorf("hold job %q of %q, which is %s", e.job.rec.ID, e.job.rec.Name, e.job.rec.State)
		case e.job != nil && e != endOf(e.job):
			return fmt.Errorf("hold job %q at (%d, %d)", e.job.rec.ID, e.at, e.ref)
		case i > 0 && last.compare(e) > 0:
			return fmt.Errorf("are out of order at %d", i)
		}
		last = e
		if e.job != nil {
			live++
		}
	}
	if live != h.live || live == 0 {
		return fmt.Errorf("count %d, are %d", h.live, live)
	}
	return nil
}

func (c *checker) lane(l *lane) error {
	for _, h := range [...]*heap[*job]{&l.fresh.heap, &l.stalled.heap, &l.delayed} {
		if err := h.check(); err != nil {
			return err
		}
	}
	if l.pending != c.pending[l] {
		return fmt.Errorf("counts %d pending, has %d", l.pending, c.pending[l])
	}
	return nil
}

// check returns an error unless every node knows its position and none comes before its parent.
func (h *heap[T]) check() error {
	for i := range h.nodes {
		n := &h.nodes[i]
		if *n.at != i {
			return fmt.Errorf("heap node %d thinks it is %d", i, *n.at)
		}
		if i > 0 && n.before(h.nodes[(i-1)/4].hi, h.nodes[(i-1)/4].lo) {
			return fmt.Errorf("heap node %d comes before its parent", i)
		}
	}
	return nil
}
