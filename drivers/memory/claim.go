package memstore

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// Claim implements core.Store (Q2, Q3, Q4). Payload past core.MaxClaimBytes stays for the next call, and with it
// everything that the rest of the Wants would have got.
func (s *Store) Claim(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
	if err := req.Validate(); err != nil {
		return core.Claimed{}, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return core.Claimed{}, err
	}
	defer s.mu.Unlock()
	if !slices.ContainsFunc(req.Wants, func(w core.Want) bool { return w.Limit > 0 }) {
		return core.Claimed{Jobs: s.held(req.Token), Wake: s.token()}, nil
	}
	p := &pick{store: s, req: &req, now: now, until: core.Micros(now.Add(req.Lease)).UnixMicro()}
	for _, w := range req.Wants {
		if !p.serve(w) {
			break
		}
	}
	next := s.nextIn(req.Wants, now)
	s.announce(req.Wants)
	// Nothing happened between the pick and this reading of the token: both are under the lock.
	return core.Claimed{Jobs: p.jobs, NextIn: next, Wake: s.token()}, nil
}

// pick is one Claim at work.
type pick struct {
	store *Store
	req   *core.ClaimRequest
	now   time.Time
	until int64 // end of the leases
	jobs  []core.Record
	bytes int
}

// joinLimit is how many due jobs may join per want; a want for more gets more (Q3).
const joinLimit = 1000

// serve hands out what one want gets, the best of its lanes each time. It reports false when the call is full.
func (p *pick) serve(w core.Want) bool {
	lanes := p.store.wanted(w)
	p.store.joinDue(lanes, p.now, max(joinLimit, w.Limit))
	merge := p.store.gather(lanes)
	p.jobs = slices.Grow(p.jobs, min(w.Limit, runnable(merge)))
	poisoned := false
	for n := 0; n < w.Limit && merge.len() > 0; {
		b := merge.top().item
		if b.stalled && poisoned {
			merge.remove(0)
			continue
		}
		j := b.top().item
		if len(p.jobs) > 0 && p.bytes+len(j.rec.Payload) > core.MaxClaimBytes {
			return false
		}
		p.take(j)
		n++
		poisoned = poisoned || b.stalled
		if b.len() == 0 {
			merge.remove(0)
		} else {
			merge.rekey(0, b.top().hi, b.top().lo)
		}
	}
	return true
}

// wanted lists the lanes that a want may draw from, each once.
func (s *Store) wanted(w core.Want) []*lane {
	s.lanes = s.lanes[:0]
	q := s.queues[w.Queue]
	if q == nil || q.paused || w.Limit == 0 {
		return nil
	}
	s.picks++
	for _, name := range w.Names {
		if l := q.lanes[name]; l != nil && l.pick != s.picks {
			l.pick = s.picks
			s.lanes = append(s.lanes, l)
		}
	}
	return s.lanes
}

// gather merges the bins of some lanes, each under its first job.
func (s *Store) gather(lanes []*lane) *heap[*bin] {
	s.bins.clear()
	for _, l := range lanes {
		for _, b := range [...]*bin{&l.fresh, &l.stalled} {
			if b.len() > 0 {
				s.bins.push(b.top().hi, b.top().lo, &b.pos, b)
			}
		}
	}
	return &s.bins
}

// runnable is how many jobs the gathered bins hold.
func runnable(merge *heap[*bin]) int {
	n := 0
	for i := range merge.nodes {
		n += merge.nodes[i].item.len()
	}
	return n
}

// take leases a job to the caller.
func (p *pick) take(j *job) {
	j.token, j.worker, j.until = p.req.Token, p.req.Worker, p.until
	j.rec.ClaimedAt = p.now
	j.rec.Fence++
	p.store.move(j, core.StateActive)
	p.bytes += len(j.rec.Payload)
	p.jobs = append(p.jobs, j.rec)
	detach(&p.jobs[len(p.jobs)-1])
	if q := j.lane.queue; q.joined > 0 {
		q.joined--
	}
}

// nextIn answers Claimed.NextIn, after every want was served.
func (s *Store) nextIn(wants []core.Want, now time.Time) time.Duration {
	earliest, any := int64(math.MaxInt64), false
	for _, w := range wants {
		q := s.queues[w.Queue]
		if w.Limit == 0 || q == nil || q.paused {
			continue
		}
		for _, name := range w.Names {
			l := q.lanes[name]
			switch {
			case l == nil:
			case l.runnable() > 0 || l.due(now.UnixMicro()):
				return 1
			case l.delayed.len() > 0:
				earliest, any = min(earliest, l.delayed.top().hi), true
			}
		}
	}
	if !any {
		return 0
	}
	return until(earliest, now)
}

// until is the time from now to at, in µs. Centuries away it answers as much as a Duration holds.
func until(at int64, now time.Time) time.Duration {
	d := at - now.UnixMicro()
	if d > math.MaxInt64/int64(time.Microsecond) {
		return math.MaxInt64
	}
	return time.Duration(d) * time.Microsecond
}

// announce wakes the queues in which more jobs came due than were handed out: those who wait may handle what this
// caller does not (Q3).
func (s *Store) announce(wants []core.Want) {
	for _, w := range wants {
		if q := s.queues[w.Queue]; q != nil && q.joined > 0 {
			q.joined = 0
			s.ring(q)
		}
	}
}

// held lists what a token holds, in the order of a claim. It goes through all the active jobs: the question is only
// asked when the reply to a claim was lost.
func (s *Store) held(token string) []core.Record {
	var jobs []*job
	for _, n := range s.leases.nodes {
		if n.item.token == token {
			jobs = append(jobs, n.item)
		}
	}
	slices.SortFunc(jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(b.rec.Priority, a.rec.Priority), cmp.Compare(a.place, b.place))
	})
	return copyAll(jobs)
}

func copyAll(jobs []*job) []core.Record {
	records := make([]core.Record, len(jobs))
	for i, j := range jobs {
		records[i] = j.copyOut()
	}
	return records
}
