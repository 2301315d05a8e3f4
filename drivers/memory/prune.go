package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// group says which finished jobs are kept by one rule (Q28).
type group struct {
	name  string
	state core.State
}

// history holds the finished jobs of a group in the order of their ends, then of insertion. Most come in that order
// and leave from the front, so it is a slice with gaps: an end whose job is nil. The first and the last are none.
type history struct {
	ends []end
	head int // the first
	live int // those that are no gaps
}

type end struct {
	at, ref int64 // µs; the order
	job     *job
}

func (e end) compare(other end) int {
	if c := cmp.Compare(e.at, other.at); c != 0 {
		return c
	}
	return cmp.Compare(e.ref, other.ref)
}

func endOf(j *job) end { return end{j.rec.FinishedAt.UnixMicro(), j.rec.Ref, j} }

// add takes in a job that ended.
func (h *history) add(j *job) {
	e := endOf(j)
	at := len(h.ends)
	if at > h.head && e.compare(h.ends[at-1]) < 0 {
		at = h.find(e)
	}
	h.ends = slices.Insert(h.ends, at, e)
	h.live++
}

// remove takes out a job, which is there.
func (h *history) remove(j *job) {
	at := h.find(endOf(j))
	for h.ends[at].job != j { // a gap that it left when it was there before
		at++
	}
	h.ends[at].job = nil
	h.live--
	for h.head < len(h.ends) && h.ends[h.head].job == nil {
		h.head++
	}
	for len(h.ends) > h.head && h.ends[len(h.ends)-1].job == nil {
		h.ends = h.ends[:len(h.ends)-1]
	}
	if len(h.ends) > 2*h.live+16 {
		h.ends = slices.DeleteFunc(slices.Clone(h.ends[h.head:]), func(e end) bool { return e.job == nil })
		h.head = 0
	}
}

// find is where an end is, or belongs.
func (h *history) find(e end) int {
	at, _ := slices.BinarySearchFunc(h.ends[h.head:], e, end.compare)
	return h.head + at
}

// oldest and newest panic when there is none.
func (h *history) oldest() *job { return h.ends[h.head].job }
func (h *history) newest() *job { return h.ends[len(h.ends)-1].job }

// expired is how the oldest job stands: past what a rule keeps, or not.
func (h *history) expired(rule core.KeepRule, now time.Time) bool {
	switch {
	case h.live == 0 || rule.Forever:
		return false
	case rule.None, rule.Count > 0 && h.live > rule.Count:
		return true
	}
	return rule.Age > 0 && !h.oldest().rec.FinishedAt.After(now.Add(-rule.Age))
}

// Prune implements core.Retainer (Q28). It costs a step per job that it deletes, one per group of finished jobs, and
// some for a look at dedupe keys, bounded by the limit.
func (s *Store) Prune(ctx context.Context, req core.PruneRequest) (int, error) {
	if err := req.Validate(); err != nil {
		return 0, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	limit := req.Limit
	if limit == 0 {
		limit = core.DefaultPruneLimit
	}
	n := 0
	for g, h := range s.done {
		rule := req.Rule(g.state, h.newest().rec.Keep)
		for n < limit && h.expired(rule, now) {
			j := h.oldest()
			if j.rec.State == core.StateCancelled {
				s.free(j) // else it would keep its window once nobody knows how it ended (Q12)
			}
			s.forget(j)
			n++
		}
	}
	s.sweepKeys(now, max(limit, 2*limit)) // which an int may not hold
	return n, nil
}

// forget deletes a job that is not active, with its ledger.
func (s *Store) forget(j *job) {
	s.lift(j)
	delete(s.jobs, j.rec.ID)
}

// file takes a job that ended into its group's history.
func (s *Store) file(j *job) {
	g := group{j.rec.Name, j.rec.State}
	h := s.done[g]
	if h == nil {
		h = &history{}
		s.done[g] = h
	}
	h.add(j)
}

// unfile takes it out again.
func (s *Store) unfile(j *job) {
	g := group{j.rec.Name, j.rec.State}
	h := s.done[g]
	h.remove(j)
	if h.live == 0 {
		delete(s.done, g)
	}
}
