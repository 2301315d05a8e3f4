package memstore

import (
	"math"
	"time"

	"github.com/stintmq/stint/core"
)

// queue is what the store knows of one queue. Queues and lanes are made when first named and stay.
type queue struct {
	name   string
	paused bool
	lanes  map[string]*lane
	counts [len(states)]int64
	joined int // jobs that came due and that no claim has taken or announced since (Q3)

	event   uint64 // the newest event, see wake.go
	waiters map[*waiter]struct{}
}

// lane holds the pending jobs of one name in one queue, apart from the active ones.
type lane struct {
	queue   *queue
	name    string
	fresh   bin
	stalled bin        // Stalls >= 1: a claim takes at most one of them (Q4)
	delayed heap[*job] // by RunAt, then insertion
	pos     int        // in a merge of lanes
	pending int64      // waiting, delayed and active
	pick    uint64     // the last want that took this lane in, so that a name asked for twice counts once
}

// bin holds waiting jobs by priority, then place (Q2).
type bin struct {
	heap[*job]
	stalled bool
	pos     int // in a claim's merge
}

// states gives every state its place in queue.counts.
var states = [...]core.State{
	core.StateWaiting, core.StateDelayed, core.StateActive, core.StateParked,
	core.StateCompleted, core.StateFailed, core.StateCancelled,
}

func stateIndex(st core.State) int {
	switch st {
	case core.StateWaiting:
		return 0
	case core.StateDelayed:
		return 1
	case core.StateActive:
		return 2
	case core.StateParked:
		return 3
	case core.StateCompleted:
		return 4
	case core.StateFailed:
		return 5
	default:
		return 6
	}
}

func (s *Store) queue(name string) *queue {
	q := s.queues[name]
	if q == nil {
		q = &queue{name: name, lanes: map[string]*lane{}, waiters: map[*waiter]struct{}{}}
		s.queues[name] = q
	}
	return q
}

func (q *queue) lane(name string) *lane {
	l := q.lanes[name]
	if l == nil {
		l = &lane{queue: q, name: name, stalled: bin{stalled: true}}
		q.lanes[name] = l
	}
	return l
}

// bin is where a waiting job of this lane belongs.
func (l *lane) bin(j *job) *bin {
	if j.rec.Stalls > 0 {
		return &l.stalled
	}
	return &l.fresh
}

func (l *lane) runnable() int { return l.fresh.len() + l.stalled.len() }

// move takes a job from where it stands to where its new state belongs, and is the only writer of State, of the
// heaps, histories and counts: a job is in exactly one place (Q1). The caller has set what orders it there.
func (s *Store) move(j *job, to core.State) {
	s.lift(j)
	j.rec.State = to
	s.count(j, 1)
	l := j.lane
	switch to {
	case core.StateWaiting:
		l.bin(j).push(int64(-j.rec.Priority), j.place, &j.pos, j)
	case core.StateDelayed:
		l.delayed.push(j.rec.RunAt.UnixMicro(), j.rec.Ref, &j.pos, j)
	case core.StateActive:
		s.leases.push(j.until, j.rec.Ref, &j.pos, j)
	case core.StateCompleted, core.StateFailed, core.StateCancelled:
		s.file(j)
	}
}

// lift takes a job out of the counts and of the heap or history that holds it. A job that was never placed has no state.
func (s *Store) lift(j *job) {
	l := j.lane
	switch j.rec.State {
	case "":
		return
	case core.StateWaiting:
		l.bin(j).remove(j.pos)
	case core.StateDelayed:
		l.delayed.remove(j.pos)
	case core.StateActive:
		s.leases.remove(j.pos)
	case core.StateCompleted, core.StateFailed, core.StateCancelled:
		s.unfile(j)
	}
	s.count(j, -1)
}

func (s *Store) count(j *job, n int64) {
	j.lane.queue.counts[stateIndex(j.rec.State)] += n
	if j.rec.State.Pending() {
		j.lane.pending += n
	}
}

// pend makes a job pending again: at runAt, or now if that is not later, at a new place (Q2).
func (s *Store) pend(j *job, runAt, now time.Time) {
	j.dropLease()
	j.rec.ClaimedAt = time.Time{}
	if runAt.After(now) {
		j.rec.RunAt = runAt
		s.move(j, core.StateDelayed)
		return
	}
	j.rec.RunAt = now
	s.join(j)
}

// join makes a job waiting at a new place.
func (s *Store) join(j *job) {
	s.places++
	j.place = s.places
	s.move(j, core.StateWaiting)
}

// end makes a job terminal with one entry in its ledger, run or not (Q6).
func (s *Store) end(j *job, to core.State, e entry, now time.Time) {
	e.state = to
	j.write(e, now)
	j.dropLease()
	j.rec.CancelRequested = false
	j.rec.FinishedAt = now
	s.move(j, to)
}

// joinDue lets the due jobs of some lanes join, the earliest first, but no more than limit (Q2, Q3). Each job joins
// once; those that are not due cost nothing.
func (s *Store) joinDue(lanes []*lane, now time.Time, limit int) {
	due := now.UnixMicro()
	merge := &s.dueLanes
	for _, l := range lanes {
		if l.due(due) {
			merge.push(l.delayed.top().hi, l.delayed.top().lo, &l.pos, l)
		}
	}
	for ; limit > 0 && merge.len() > 0; limit-- {
		l := merge.top().item
		l.queue.joined++
		s.join(l.delayed.top().item)
		if l.due(due) {
			merge.rekey(0, l.delayed.top().hi, l.delayed.top().lo)
		} else {
			merge.remove(0)
		}
	}
	merge.clear()
}

// due reports whether the lane's earliest delayed job is due at a time in µs.
func (l *lane) due(at int64) bool {
	return l.delayed.len() > 0 && l.delayed.top().hi <= at
}

// joinAllDue lets every due job of a queue join, or of all queues for "", so that what is read is true (Q27).
func (s *Store) joinAllDue(queue string, now time.Time) {
	s.lanes = s.lanes[:0]
	for q := range s.matching(queue) {
		for _, l := range q.lanes {
			s.lanes = append(s.lanes, l)
		}
	}
	s.joinDue(s.lanes, now, math.MaxInt)
}
