package pgsql

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// sqlClaim leases jobs of one want. Lane by lane, the highest priority first, it locks the first rows until it has
// enough, and no more: nothing sorts above the locks. It takes none while the queue is paused ($2), or, unless told
// to ($5), while a delayed job is due: that one has to join first, since its priority may be higher. Of the jobs that
// stalled before only the first counts; the others are stepped over (Q4).
//
// The row without a job says what else there is to know: the moment, when the next delayed job is due, how many
// jobs match up to one more than the limit, how many of them stalled up to two, whether more was locked than
// fits $6 bytes, and what the marks need: the priorities, the newest number drawn, the oldest transaction that the
// statement did not see the end of, and its own, if it took a job.
const sqlClaim = `with ` + moment + `,
	next as materialized (
		select min(d.run_at) as run_at from unnest($3::text[]) n (name) cross join lateral (
			select run_at from {}.delayed where queue = $2::text and name = n.name and run_at >= ` + dueMark + ` order by run_at limit 1) d
		where not exists (select from {}.paused where queue = $2::text)),
	lane as materialized (
		select priority, coalesce(($11::bigint[])[array_position($10::smallint[], priority)], 0) as mark
		from {}.lanes where queue = $2::text and not exists (select from {}.paused where queue = $2::text) order by priority desc),
	go as materialized (
		select 1 where not exists (select from {}.paused where queue = $2::text)
			and ($5::boolean or not exists (select from next, t where next.run_at <= t.now))),
	p as materialized (
		select tid, row_number() over w as n, sum(bytes) over w as total
		from (
			select r.tid, r.bytes
			from (select * from lane where exists (select from go)) l
			cross join lateral (
				select r.ctid as tid, r.bytes from {}.ready r
				where r.queue = $2::text and r.priority = l.priority and r.place >= l.mark and r.name = any($3::text[])
					and (r.stalls = 0 or r.seq = (select seq from {}.ready where queue = $2::text and stalls > 0
						and name = any($3::text[]) order by priority desc, place limit 1))
				order by r.place limit $4::bigint for update skip locked) r
			limit $4::bigint) r
		window w as (rows unbounded preceding)),
	c as (delete from {}.ready where ctid = any(array(select tid from p where total <= $6::bigint or n = 1 and $13::boolean)) returning *),
	l as (
		insert into {}.leases (seq, place, run_at, fence, until, claimed_at, token, bytes, attempts, stalls, snoozes, runs,
			priority, queue, name, worker)
		select seq, place, run_at, fence + 1, ` + claimUntil + `, (select now from t), $8::uuid,
			bytes, attempts, stalls, snoozes, runs, priority, queue, name, $9::text from c)
	select (select now from t), (select run_at from next),
		(select count(*) from (
			select from lane l cross join lateral (
				select from {}.ready r where r.queue = $2::text and r.priority = l.priority and r.place >= l.mark and r.name = any($3::text[])
				order by r.place limit $4::bigint + 1) r
			limit $4::bigint + 1) found),
		(select count(*) from (select from {}.ready where queue = $2::text and stalls > 0 and name = any($3::text[]) limit 2) found),
		exists (select from p where total > $6::bigint and (n > 1 or not $13::boolean)), (select array_agg(priority) from lane), (select last_value from {}.numbers),
		pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
		coalesce((select pg_current_xact_id_if_assigned()::text::bigint from c limit 1), 0), 0::bigint, ` + noBody + `, now(), 0, 0, 0, 0, 0::bigint
	union all
	select null, null, 0, 0, false, null, 0, 0, 0, w.place, ` + bodyColumns + `, ` + standColumns + `
	from c w cross join lateral (select * from {}.jobs where seq = w.seq limit 1) j`

const dueMark = `coalesce($12::timestamptz, '-infinity')`

const claimUntil = `(select now from t) + ($7::bigint / 1000000) * interval '1 second' + ($7::bigint % 1000000) * interval '1 microsecond'`

// sqlJoin lets delayed jobs that are due wait in line, the earliest first, each at a new place (Q2, Q3).
const sqlJoin = `with
	d as (delete from {}.delayed where ctid = any(array(
		select d.tid from unnest($3::text[]) n (name) cross join lateral (
			select ctid as tid, run_at, seq from {}.delayed
			where queue = $2::text and name = n.name and run_at <= ` + since + ` and run_at >= coalesce($5::timestamptz, '-infinity')
			order by run_at, seq limit $4::bigint for update skip locked) d
		order by d.run_at, d.seq limit $4::bigint)) returning *),
	w as (
		insert into {}.ready (seq, place, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
		select seq, nextval({numbers}), run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name
		from (select * from d order by run_at, seq) d returning place)
	select count(*), coalesce(min(place), 0) from w`

const sqlUnderToken = `select w.cancel, w.claimed_at, ` + bodyColumns + `, ` + standColumns + `
	from {}.leases w cross join lateral (select * from {}.jobs where seq = w.seq limit 1) j
	where w.token = $1::uuid`

// sqlSweep asks for the turn to look without marks; others of this queue and names had it lately, or nobody.
const sqlSweep = `insert into {}.sweeps as s (queue, names, at) values ($2::text, $3::bigint, coalesce($1::timestamptz, clock_timestamp()))
	on conflict (queue, names) do update set at = excluded.at where s.at <= excluded.at - interval '5 seconds' or s.at > excluded.at
	returning true`

// maxJoin is how many due jobs a claim lets join per want (Q3): enough for the order to be that of their times,
// few enough to be quick.
const maxJoin = 1000

// skippedNext is how soon to ask again when jobs were skipped because others had them locked (Q4): who has them
// is done within a moment, and most likely took them.
const skippedNext = 20 * time.Millisecond

// Claim implements core.Store (Q2 to Q4), but for Claimed.Wake, which the caller read before. Each want is served
// by statements of its own: when the server refuses a later one, what the earlier ones got is the answer.
func (s *Session) Claim(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
	if err := req.Validate(); err != nil {
		return core.Claimed{}, err
	}
	if !wanting(req.Wants) {
		jobs, err := s.underToken(ctx, req.Token)
		return core.Claimed{Jobs: jobs}, err
	}
	c := claiming{s: s, req: req, room: core.MaxClaimBytes}
	for i := range req.Wants {
		if err := c.serve(ctx, i); err != nil {
			if len(c.jobs) == 0 {
				return core.Claimed{}, err
			}
			if SQLState(err) == "" || Spent(err) {
				// The statement may have been carried out: only who is told so asks what the token holds.
				return core.Claimed{}, s.partly(err)
			}
			c.left = true
			break
		}
		if c.capped {
			break
		}
	}
	if err := c.lookAgain(ctx); err != nil {
		c.left = true // asking again is never wrong
	}
	return core.Claimed{Jobs: c.jobs, NextIn: c.nextIn()}, nil
}

func wanting(wants []core.Want) bool {
	return slices.ContainsFunc(wants, func(w core.Want) bool { return w.Limit > 0 })
}

// claiming is one call of Claim.
type claiming struct {
	s    *Session
	req  core.ClaimRequest
	jobs []core.Record
	room int64 // bytes of payload that may still be handed out

	look    []int // wants to look at again
	capped  bool
	left    bool          // something runnable stays behind
	skipped bool          // something may come back that others have locked
	next    time.Duration // until the earliest delayed job; 0: none
}

// serve claims for one want.
func (c *claiming) serve(ctx context.Context, i int) error {
	want := c.req.Wants[i]
	names := saneOnly(want.Names)
	if want.Limit == 0 || len(names) == 0 || !sane(want.Queue) {
		return nil
	}
	marks := c.s.marks.look(want.Queue, names)
	var swept view // what was looked past, before
	if marks.sweep {
		var won bool
		if _, err := sqlexec.One(ctx, c.s.x, []any{&won}, sqlSweep, c.s.now, want.Queue, marks.key.names); err != nil {
			return err
		}
		if won {
			swept, marks = marks, marks.bare()
		}
	}
	got, err := c.pick(ctx, want, names, want.Limit, false, marks)
	if err != nil {
		return err
	}
	if got.due() {
		var joined int64
		news := News{Queue: want.Queue}
		_, err := sqlexec.One(ctx, c.s.x, []any{&joined, &news.Place}, sqlJoin, c.s.now, want.Queue, names, int64(maxJoin), marks.due)
		if err != nil {
			return err
		}
		if joined > 0 {
			marks = marks.bare() // places were drawn
		}
		if got, err = c.pick(ctx, want, names, want.Limit, true, marks); err != nil {
			return err
		}
		if joined > 0 && (got.left() || got.due()) {
			c.s.wake(news) // more became runnable than this claim takes (Q3)
		}
	}
	if stray := swept.strayed(got); stray != 0 {
		c.s.marks.Lower(News{Queue: want.Queue, Place: stray}) // there may be more
	}
	if got.capped {
		// Others stepped over what this one locked and does not take: it is behind what it took.
		place := int64(1)
		if len(got.places) > 0 {
			place = slices.Min(got.places)
		}
		c.s.wake(News{Queue: want.Queue, Place: place})
	}
	c.raise(marks, got)
	c.jobs = append(c.jobs, got.jobs...)
	c.capped = got.capped
	if !got.capped && got.left() && c.laterOf(i) {
		c.look = append(c.look, i) // what is left may be taken yet
		return nil
	}
	c.remains(got)
	return nil
}

// laterOf reports whether a later want is of the same queue.
func (c *claiming) laterOf(i int) bool {
	return slices.ContainsFunc(c.req.Wants[i+1:], func(w core.Want) bool {
		return w.Limit > 0 && w.Queue == c.req.Wants[i].Queue
	})
}

// lookAgain asks what is left now to wants that left something to later ones.
func (c *claiming) lookAgain(ctx context.Context) error {
	for _, i := range c.look {
		got, err := c.pick(ctx, c.req.Wants[i], saneOnly(c.req.Wants[i].Names), 0, true, view{}.bare())
		if err != nil {
			return err
		}
		c.remains(got)
	}
	return nil
}

// picked is what one run of sqlClaim found.
type picked struct {
	limit          int
	jobs           []core.Record
	now            time.Time
	next           *time.Time
	there, stalled int
	capped         bool
	lanes          []int16
	drawn          int64   // the newest number
	oldest, own    int64   // transactions: see horizon.go
	places         []int64 // of jobs
}

// due reports whether a delayed job was due.
func (p *picked) due() bool { return p.next != nil && !p.next.After(p.now) }

// left reports whether jobs that match were not taken.
func (p *picked) left() bool { return p.there > len(p.jobs) || p.capped }

func (c *claiming) pick(ctx context.Context, want core.Want, names []string, limit int, force bool, marks view) (*picked, error) {
	p := &picked{limit: limit}
	if limit > 0 {
		p.jobs = make([]core.Record, 0, min(limit, 128))
	}
	var b body
	var rec core.Record
	var now, next *time.Time
	var there, stalled int
	var capped bool
	var lanes []int16
	var drawn, oldest, own, place int64
	into := append([]any{&now, &next, &there, &stalled, &capped, &lanes, &drawn, &oldest, &own, &place}, b.columns(&rec)...)
	room := c.room
	err := sqlexec.Each(ctx, c.s.x, func(r sqlexec.Rows) error {
		rec = core.Record{}
		if err := r.Scan(into...); err != nil {
			return err
		}
		if now != nil {
			p.now, p.next, p.there, p.stalled, p.capped = *now, next, there, stalled, capped
			p.lanes, p.drawn, p.oldest, p.own = lanes, drawn, oldest, own
			return nil
		}
		c.room -= int64(len(rec.Payload))
		b.finish(&rec)
		p.jobs, p.places = append(p.jobs, rec), append(p.places, place)
		return nil
	}, sqlClaim, c.s.now, want.Queue, names, int64(min(limit, math.MaxInt32)), force, room, int64(c.req.Lease/time.Microsecond), c.req.Token, c.req.Worker,
		marks.priorities, marks.places, marks.due, len(c.jobs) == 0)
	if err != nil {
		return nil, err
	}
	for i := range p.jobs {
		p.jobs[i].State, p.jobs[i].ClaimedAt = core.StateActive, p.now.UTC()
		p.jobs[i].Fence++
	}
	sortByPlace(p.jobs, p.places)
	return p, nil
}

// sortByPlace puts jobs in line: statements promise no order. places go along.
func sortByPlace(jobs []core.Record, places []int64) {
	place := make(map[int64]int64, len(jobs))
	for i := range jobs {
		place[jobs[i].Ref] = places[i]
	}
	slices.SortFunc(jobs, func(a, b core.Record) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(place[a.Ref], place[b.Ref]))
	})
	for i := range jobs {
		places[i] = place[jobs[i].Ref]
	}
}

// raise tells the marks what the claim saw: every lane before that of its last job to the end, that one up to the job.
func (c *claiming) raise(marks view, p *picked) {
	if !marks.on {
		return
	}
	c.s.marks.note(marks, point{p.drawn, p.now}, p.own)
	if p.paused() {
		return
	}
	if p.stalled > 0 {
		c.s.marks.drop(marks) // others that stalled may be stepped over, at any place
		c.left = c.left || marks.skips() && p.stalled > p.poisoned()
		return
	}
	full := p.capped || len(p.jobs) >= p.limit
	last := int16(core.MinPriority - 1)
	up := make(map[int16]int64, len(p.lanes))
	for i := range p.jobs {
		lane := int16(p.jobs[i].Priority)
		up[lane] = max(up[lane], p.places[i]+1)
		if last < core.MinPriority || lane < last {
			last = lane
		}
	}
	for _, lane := range p.lanes {
		if !full || lane > last {
			up[lane] = p.drawn + 1
		}
	}
	due := p.now
	if p.next != nil {
		due = *p.next
	}
	c.s.marks.raise(marks, up, due, p.oldest)
}

// poisoned is how many of the jobs stalled before.
func (p *picked) poisoned() int {
	n := 0
	for i := range p.jobs {
		if p.jobs[i].Stalls > 0 {
			n++
		}
	}
	return n
}

// paused reports whether the claim found no lane that it may take from.
func (p *picked) paused() bool { return len(p.lanes) == 0 }

// remains finds out what a want leaves to the next claim.
func (c *claiming) remains(p *picked) {
	stalled := p.poisoned()
	switch {
	case p.due(), p.capped, p.stalled > max(stalled, 1), p.left() && (len(p.jobs) >= p.limit || stalled > 0 && p.stalled > stalled):
		c.left = true // beyond the limit, or a second one that stalled
	case p.left():
		c.skipped = true
	}
	if p.next != nil && p.next.After(p.now) {
		if wait := p.next.Sub(p.now); c.next == 0 || wait < c.next {
			c.next = wait
		}
	}
}

// nextIn is Claimed.NextIn.
func (c *claiming) nextIn() time.Duration {
	switch {
	case c.left:
		return 1
	case c.skipped && (c.next == 0 || c.next > skippedNext):
		return skippedNext
	default:
		return min(c.next, math.MaxInt64)
	}
}

// underToken returns what a token still holds: how a worker finds out about a claim whose reply was lost.
func (s *Session) underToken(ctx context.Context, token string) ([]core.Record, error) {
	var jobs []core.Record
	var b body
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var rec core.Record
		var claimedAt time.Time
		err := r.Scan(append([]any{&rec.CancelRequested, &claimedAt}, b.columns(&rec)...)...)
		if err != nil {
			return err
		}
		rec.State, rec.ClaimedAt = core.StateActive, claimedAt.UTC()
		b.finish(&rec)
		jobs = append(jobs, rec)
		return nil
	}, sqlUnderToken, token)
	return jobs, err
}
