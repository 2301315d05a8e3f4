package litesql

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	sqlDue = `select seq, run_at from stint_work
		where lane = ? and state = 2 and run_at <= ? order by run_at, seq limit ?`

	sqlJoin = updateEach + `
		on conflict (seq) do update set state = 1, place = ? + excluded.place`

	sqlNextDue = `select run_at from stint_work where lane = ? and state = 2 order by run_at limit 1`

	sqlHead = `select seq, rank, place from stint_work
		where lane = ? and state = 1 and (stalls > 0) = ? and (rank, place) > (?, ?)
		order by rank, place limit ?`
)

// maxJoin is how many due jobs a claim lets join per want (Q3): enough for the order to be that of their times,
// few enough to be quick.
const maxJoin = 1000

// picker chooses the jobs of one claim, want by want, by merging the heads of lanes.
type picker struct {
	s      *Session
	taken  map[int64]bool // two wants may name the same lane
	picked []int64
	wants  []*wanted

	left bool  // something runnable stays behind
	due  int64 // the earliest delayed job of the wanted lanes; 0: none
}

// wanted is a want as it is served.
type wanted struct {
	core.Want
	lanes  []lane
	lines  []*line
	joined int // delayed jobs that came due
	end    int // where the want's jobs end in picked
}

// pick serves the wants in order, each up to its limit, and then looks at what stays behind.
func (p *picker) pick(ctx context.Context, wants []core.Want, lanes [][]lane) error {
	for i, want := range wants {
		if want.Limit == 0 {
			continue
		}
		w := &wanted{Want: want, lanes: lanes[i]}
		p.wants = append(p.wants, w)
		if err := p.join(ctx, w); err != nil {
			return err
		}
		w.lines = linesOf(w.lanes, want.Limit)
		if err := p.merge(ctx, w); err != nil {
			return err
		}
		w.end = len(p.picked)
	}
	for _, w := range p.wants {
		if err := p.remains(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// remains finds out what a want leaves to the next claim.
func (p *picker) remains(ctx context.Context, w *wanted) error {
	left := false
	for _, l := range w.lines {
		_, ok, err := l.front(ctx, p)
		if err != nil {
			return err
		}
		left = left || ok
	}
	for _, l := range w.lanes {
		switch {
		case l.due <= p.s.now:
			left = true // more were due than may join at once
		case l.due != never && (p.due == 0 || l.due < p.due):
			p.due = l.due
		}
	}
	if left && w.joined > 0 {
		p.s.wake(w.Queue) // more became runnable than this claim takes (Q3)
	}
	p.left = p.left || left
	return nil
}

// cut says that of the picked jobs only the first kept are handed out: the others are over MaxClaimBytes.
func (p *picker) cut(kept int) {
	p.left = true
	for _, w := range p.wants {
		if w.end > kept && w.joined > 0 {
			p.s.wake(w.Queue) // as in remains (Q3)
		}
	}
}

// nextIn is Claimed.NextIn.
func (p *picker) nextIn() time.Duration {
	switch {
	case p.left:
		return 1
	case p.due == 0:
		return 0
	default:
		wait := p.due - p.s.now
		if wait > int64(1<<63-1)/int64(time.Microsecond) {
			return 1<<63 - 1
		}
		return time.Duration(wait) * time.Microsecond
	}
}

// join lets the delayed jobs that are due wait in line, the earliest first, each at a new place (Q2).
func (p *picker) join(ctx context.Context, w *wanted) error {
	type dueJob struct{ seq, runAt int64 }
	var jobs []dueJob
	for _, l := range w.lanes {
		if l.due > p.s.now {
			continue
		}
		err := sqlexec.Each(ctx, p.s.x, func(r sqlexec.Rows) error {
			var d dueJob
			err := r.Scan(&d.seq, &d.runAt)
			jobs = append(jobs, d)
			return err
		}, sqlDue, l.id, p.s.now, maxJoin)
		if err != nil {
			return err
		}
	}
	slices.SortFunc(jobs, func(a, b dueJob) int {
		return cmp.Or(cmp.Compare(a.runAt, b.runAt), cmp.Compare(a.seq, b.seq))
	})
	jobs = jobs[:min(len(jobs), maxJoin)]
	if len(jobs) > 0 {
		place, err := p.s.take(ctx, len(jobs))
		if err != nil {
			return err
		}
		seqs := make([]int64, len(jobs))
		for i, d := range jobs {
			seqs[i] = d.seq
		}
		if _, err := p.s.x.Exec(ctx, sqlJoin, numbers(seqs), place); err != nil {
			return err
		}
	}
	for i := range w.lanes {
		if w.lanes[i].due > p.s.now {
			continue
		}
		w.lanes[i].fresh, w.lanes[i].stalled, w.lanes[i].due = true, true, never
		if _, err := sqlexec.One(ctx, p.s.x, []any{&w.lanes[i].due}, sqlNextDue, w.lanes[i].id); err != nil {
			return err
		}
	}
	w.joined = len(jobs)
	return nil
}

// head is a job at the front of its lane.
type head struct{ seq, rank, place int64 }

func (h head) compare(o head) int {
	return cmp.Or(cmp.Compare(h.rank, o.rank), cmp.Compare(h.place, o.place))
}

// line is a lane's waiting jobs in order, read a few at a time; those that stalled before are a line of their own.
type line struct {
	lane    int64
	stalled bool
	size    int // how many to read at once
	read    []head
	last    head
	end     bool // nothing is left to read
}

// front returns the first job of the line that no other want took, or false at its end.
func (l *line) front(ctx context.Context, p *picker) (head, bool, error) {
	for {
		for len(l.read) > 0 && p.taken[l.read[0].seq] {
			l.read = l.read[1:]
		}
		if len(l.read) > 0 {
			return l.read[0], true, nil
		}
		if l.end {
			return head{}, false, nil
		}
		err := sqlexec.Each(ctx, p.s.x, func(r sqlexec.Rows) error {
			err := r.Scan(&l.last.seq, &l.last.rank, &l.last.place)
			l.read = append(l.read, l.last)
			return err
		}, sqlHead, l.lane, l.stalled, l.last.rank, l.last.place, l.size)
		if err != nil {
			return head{}, false, err
		}
		l.end = len(l.read) < l.size
	}
}

// merge picks a want's jobs in order. At most one of them stalled before: it may stall its neighbours (Q4).
func (p *picker) merge(ctx context.Context, w *wanted) error {
	poisoned := false
	for range w.Limit {
		var best *line
		var first head
		for _, l := range w.lines {
			if l.stalled && poisoned {
				continue
			}
			h, ok, err := l.front(ctx, p)
			if err != nil {
				return err
			}
			if ok && (best == nil || h.compare(first) < 0) {
				best, first = l, h
			}
		}
		if best == nil {
			return nil
		}
		poisoned = poisoned || best.stalled
		p.taken[first.seq] = true
		p.picked = append(p.picked, first.seq)
	}
	return nil
}

// linesOf makes the lines of a want's lanes. Each reads its share of the limit at first, and more if its jobs
// come before the others'.
func linesOf(lanes []lane, limit int) []*line {
	busy := 0
	for _, l := range lanes {
		if l.fresh {
			busy++
		}
	}
	lines := make([]*line, 0, 2*len(lanes))
	for _, l := range lanes {
		before := head{rank: -1 << 20}
		if l.fresh { // one more than the limit tells whether something stays behind
			size := min(limit/busy+1, 1000) + 1
			lines = append(lines, &line{lane: l.id, size: size, last: before})
		}
		if l.stalled {
			lines = append(lines, &line{lane: l.id, size: 2, stalled: true, last: before})
		}
	}
	return lines
}
