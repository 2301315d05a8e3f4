package memstore

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stintmq/stint/core"
)

// List implements core.Inspector (Q27). It serves every order with every filter. Pages are read by position, not by
// count: jobs that come and go between two pages neither repeat nor hide others.
func (s *Store) List(ctx context.Context, q core.Query) (core.Page, error) {
	if err := q.Validate(); err != nil {
		return core.Page{}, err
	}
	if q.OrderBy == "" {
		q.OrderBy = core.OrderEnqueued
	}
	after, err := readCursor(q)
	if err != nil {
		return core.Page{}, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return core.Page{}, err
	}
	defer s.mu.Unlock()
	s.joinAllDue(q.Queue, now)

	size := q.PageSize()
	first := s.first(q, after, size+1)
	n := fit(first[:min(len(first), size)])
	if n == len(first) {
		return core.Page{Jobs: copyAll(first)}, nil
	}
	return core.Page{Jobs: copyAll(first[:n]), Cursor: writeCursor(q, keyOf(q, first[n-1]))}, nil
}

// fit is how many of the jobs make a page: as many as fit into core.MaxPageBytes, but one at least.
func fit(jobs []*job) int {
	total := 0
	for i, j := range jobs {
		if total += len(j.rec.Payload) + len(j.rec.Result); total > core.MaxPageBytes && i > 0 {
			return i
		}
	}
	return len(jobs)
}

// key is a job's position in a List: smaller comes first, whichever the direction.
type key struct{ time, ref int64 }

func (k key) before(o key) bool { return k.time < o.time || k.time == o.time && k.ref < o.ref }

func keyOf(q core.Query, j *job) key {
	t := j.rec.EnqueuedAt
	switch q.OrderBy {
	case core.OrderRun:
		t = j.rec.RunAt
	case core.OrderFinished:
		t = j.rec.FinishedAt
	}
	k := key{t.UnixMicro(), j.rec.Ref}
	if !q.Ascending {
		k = key{-k.time, -k.ref}
	}
	return k
}

// first selects the n first jobs behind a position, in order, holding no more than n at a time.
func (s *Store) first(q core.Query, after key, n int) []*job {
	var worst heap[*job] // by the reverse of the order: the last of those kept is on top
	var nowhere int
	for j := range s.candidates(q) {
		k := keyOf(q, j)
		if !after.before(k) || worst.len() == n && !worst.top().before(-k.time, -k.ref) || !matches(q, j) {
			continue
		}
		worst.push(-k.time, -k.ref, &nowhere, j)
		if worst.len() > n {
			worst.remove(0)
		}
	}
	jobs := make([]*job, worst.len())
	for i := len(jobs) - 1; i >= 0; i-- {
		jobs[i] = worst.top().item
		worst.remove(0)
	}
	return jobs
}

// candidates are the jobs that a query might be about: all, or the pending ones if it asks for no others.
func (s *Store) candidates(q core.Query) iter.Seq[*job] {
	if q.States == nil || slices.ContainsFunc(q.States, core.State.Terminal) {
		return func(yield func(*job) bool) {
			for _, j := range s.jobs {
				if !yield(j) {
					return
				}
			}
		}
	}
	return func(yield func(*job) bool) {
		for queue := range s.matching(q.Queue) {
			for _, l := range queue.lanes {
				if !l.fresh.each(yield) || !l.stalled.each(yield) || !l.delayed.each(yield) {
					return
				}
			}
		}
		s.leases.each(yield)
	}
}

// matching yields the queue of that name, if there is one, or all of them for "".
func (s *Store) matching(name string) iter.Seq[*queue] {
	return func(yield func(*queue) bool) {
		if name != "" {
			if q := s.queues[name]; q != nil {
				yield(q)
			}
			return
		}
		for _, q := range s.queues {
			if !yield(q) {
				return
			}
		}
	}
}

func matches(q core.Query, j *job) bool {
	r := &j.rec
	if q.Queue != "" && q.Queue != r.Queue || q.Name != "" && q.Name != r.Name {
		return false
	}
	if q.States != nil && !slices.Contains(q.States, r.State) {
		return false
	}
	if q.OrderBy == core.OrderFinished && !r.State.Terminal() {
		return false
	}
	for k, v := range q.Metadata {
		if have, ok := r.Metadata[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// A cursor is version, order, direction and position: enough to refuse one of another query's.

func writeCursor(q core.Query, k key) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s.%d.%d", cursorHead(q), k.time, k.ref))
}

func cursorHead(q core.Query) string {
	direction := "desc"
	if q.Ascending {
		direction = "asc"
	}
	return "1." + string(q.OrderBy) + "." + direction
}

// readCursor is the position behind which a page begins.
func readCursor(q core.Query) (key, error) {
	if q.Cursor == "" {
		return key{math.MinInt64, math.MinInt64}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	rest, ok := strings.CutPrefix(string(raw), cursorHead(q)+".")
	at, ref, cut := strings.Cut(rest, ".")
	t, errTime := strconv.ParseInt(at, 10, 64)
	n, errRef := strconv.ParseInt(ref, 10, 64)
	if err != nil || !ok || !cut || errTime != nil || errRef != nil {
		return key{}, &core.InvalidError{Field: "Cursor", Reason: "is not one of this query's"}
	}
	return key{t, n}, nil
}
