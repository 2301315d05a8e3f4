package pgsql

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
	"github.com/stintmq/stint/internal/sqlexec"
)

// sqlInsert inserts jobs, and has each wait or be delayed, by what time it is now. Numbers are drawn in the order of
// the request and ids are inserted in theirs, which is the same for all: so batches that overlap wait for each
// other and never in a circle. A transaction that inserts the same id is waited for, for as long as $18 says.
//
// The transaction has its own number before it takes the time, and the time before it draws numbers: marks count on it.
//
// What is marked is for jobs with dedupe keys: they are inserted if they get their key, see takeKeys. Keys are taken before
// ids. Where all keys are taken already nothing is written.
const insertText = `with t as materialized (
		select case when pg_current_xact_id() is not null then coalesce($1::timestamptz, clock_timestamp()) end as now«
		where exists (
			select from unnest((select $3::text[]), (select $20::text[]), (select $22::bigint[])) as u (name, key, was)
			where u.key = '' or u.was <> 0 or (
				select seq from {}.dedupe where name = coalesce(u.name, ($3::text[])[1]) and key = u.key) is null)»),
	input as materialized (
		select coalesce(u.seq, nextval({numbers})) as seq, u.id, u.payload, «u.key, u.ttl, u.was, »` + common + `, ` + greatestRunAt + ` as due
		from unnest((select $2::text[]), (select $3::text[]), (select $4::text[]), (select $5::smallint[]), (select $6::bytea[]),
			(select $7::text[]), (select $8::integer[]), (select $9::integer[]), (select $10::bigint[]), (select $11::text[]),
			(select $12::text[]), (select $13::text[]), (select $14::bigint[]), (select $15::timestamptz[]), (select $19::bigint[])«,
			(select $20::text[]), (select $21::bigint[]), (select $22::bigint[])»)
			as u (id, name, queue, priority, payload, metadata, max_attempts, max_stalls, timeout, backoff, keep, trace, delay, run_at, seq«, key, ttl, was»)
		where (select now from t) is not null
			and ($18::text is null or (select set_config('lock_timeout', $18::text, true)) is not null)),
	«k as (` + takeKeys + ` returning seq),
	»ins as (
		insert into {}.jobs (seq, enqueued_at, run_at, timeout, max_attempts, max_stalls, priority, id, queue, name, backoff,
			payload, metadata, keep, trace«, dedupe_key»)
		select seq, (select now from t), due, nullif(timeout, 0), max_attempts, max_stalls, priority, nullif(id, ''), queue, name,
			nullif(backoff, ''), payload, nullif(metadata, '')::jsonb, nullif(keep, '')::jsonb, nullif(trace, '')::jsonb«, nullif(key, '')»
		from input «where key = '' or was = -1 or seq in (select seq from k) »order by id collate "C", seq
		on conflict (id) where id is not null do nothing
		returning seq, id, queue, name, priority, run_at, coalesce(octet_length(payload), 0) as bytes«, dedupe_key»),
	w as (
		insert into {}.ready (seq, place, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
		select seq, seq, run_at, 0, bytes, 0, 0, 0, 0, priority, queue, name from ins where run_at <= (select now from t)),
	y as (
		insert into {}.delayed (seq, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
		select seq, run_at, 0, bytes, 0, 0, 0, 0, priority, queue, name from ins where run_at > (select now from t)),
	n as materialized (
		select pg_notify($16::text, $17::text || ' ' || place || ' ' || due || ' ' || queue)
		from (
			select queue, min(seq) as place, coalesce((extract(epoch from min(run_at)) * 1000000)::bigint, 0) as due from ins group by queue) q
		where $16::text is not null)
	select ins.seq, coalesce(ins.id, ''), ins.queue, ins.run_at, told.n, lost.n«, ins.name, coalesce(ins.dedupe_key, '')»
	from ins cross join (select count(*) as n from n) told cross join (
		select count(*) as n from (select distinct queue, priority from ins) q
		where not exists (select from {}.lanes l where l.queue = q.queue and l.priority = q.priority)) lost`

// The insert of jobs without keys costs nothing for them.
var (
	sqlInsert      = marked.ReplaceAllString(insertText, "")
	sqlInsertKeyed = strings.NewReplacer("«", "", "»", "").Replace(insertText)
)

var marked = regexp.MustCompile(`(?s)«.*?»`)

// What all jobs of a batch have in common comes as an array of one, which unnest fills up with nulls.
const (
	common = `coalesce(u.name, ($3::text[])[1]) as name, coalesce(u.queue, ($4::text[])[1]) as queue,
			coalesce(u.priority, ($5::smallint[])[1]) as priority, coalesce(u.metadata, ($7::text[])[1]) as metadata,
			coalesce(u.max_attempts, ($8::integer[])[1]) as max_attempts, coalesce(u.max_stalls, ($9::integer[])[1]) as max_stalls,
			coalesce(u.timeout, ($10::bigint[])[1]) as timeout, coalesce(u.backoff, ($11::text[])[1]) as backoff,
			coalesce(u.keep, ($12::text[])[1]) as keep, coalesce(u.trace, ($13::text[])[1]) as trace`

	greatestRunAt = `greatest((select now from t), coalesce(u.run_at, ($15::timestamptz[])[1]))
			+ (coalesce(u.delay, ($14::bigint[])[1]) / 1000000) * interval '1 second'
			+ (coalesce(u.delay, ($14::bigint[])[1]) % 1000000) * interval '1 microsecond'`
)

// sqlNumbers draws numbers for a batch of several parts, whose ids are inserted in their order over all of them: in an
// order of their own, parts of two batches that overlap would wait in a circle.
const sqlNumbers = `with x as materialized (select pg_current_xact_id() as own)
	select nextval({numbers}) from generate_series(1, $1::integer) where (select own from x) is not null`

// A batch is inserted in parts of this size, in rows and in bytes of payload.
const (
	partRows  = 2000
	partBytes = 8 << 20
)

// Notify says on which channel an insert notifies, and whose news they are: see package pgwake. No channel: it does not.
type Notify struct{ Channel, Origin string }

func (n Notify) channel() any {
	if n.Channel == "" {
		return nil
	}
	return n.Channel
}

// Parts is how many statements an Enqueue of reqs takes; of more than one all or none must land.
func Parts(reqs []core.EnqueueRequest) int {
	parts := 0
	for at := 0; at < len(reqs); parts++ {
		at += partOf(len(reqs)-at, func(i int) *core.EnqueueRequest { return &reqs[at+i] })
	}
	return parts
}

// partOf is how many of n requests the next part takes: one at least.
func partOf(n int, req func(i int) *core.EnqueueRequest) int {
	bytes := 0
	for i := range min(n, partRows) {
		if bytes += len(req(i).Payload); bytes > partBytes && i > 0 {
			return i
		}
	}
	return min(n, partRows)
}

// tries bounds what is tried again because others changed it in between.
const tries = 100

// errMoving is what is left after so many tries.
var errMoving = fmt.Errorf("%w: the job was changed by others again and again", core.ErrUnavailable)

// Enqueue implements core.Enqueuer (Q10, Q11).
func (s *Session) Enqueue(ctx context.Context, reqs []core.EnqueueRequest, notify Notify) ([]core.EnqueueResult, error) {
	e := enqueueing{s: s, reqs: reqs, results: make([]core.EnqueueResult, len(reqs)), notify: notify, first: map[string]int{}}
	if !s.tx {
		e.patient = "1s"
	}
	return e.run(ctx)
}

func (e *enqueueing) run(ctx context.Context) ([]core.EnqueueResult, error) {
	e.s.told = e.notify.Channel != ""
	reqs := e.reqs
	if slices.ContainsFunc(reqs, func(r core.EnqueueRequest) bool { return r.Dedupe != nil }) {
		if err := e.keyed(ctx, e.valid()); err != nil {
			return nil, e.failed(err)
		}
		return e.results, nil
	}
	left := e.admit()
	if partOf(len(left), func(i int) *core.EnqueueRequest { return &reqs[left[i]] }) < len(left) {
		if err := e.draw(ctx, left); err != nil {
			return nil, err
		}
	}
	for try := 0; len(left) > 0; try++ {
		if try == tries {
			return nil, errMoving
		}
		var refused []int
		for at := 0; at < len(left); {
			n := partOf(len(left)-at, func(i int) *core.EnqueueRequest { return &reqs[left[at+i]] })
			err := e.each(ctx, left[at:at+n], func(at []int) error {
				again, err := e.insert(ctx, at)
				refused = append(refused, again...)
				return err
			}, func(i int) { e.results[i].Err = errContended })
			if err != nil {
				return nil, e.failed(err)
			}
			at += n
		}
		var err error
		if left, err = e.held(ctx, refused); err != nil {
			return nil, e.failed(err)
		}
	}
	e.repeats()
	return e.results, nil
}

// draw gives the items their numbers, in the order of the request, and then orders them by id.
func (e *enqueueing) draw(ctx context.Context, left []int) error {
	e.numbers = make([]int64, len(e.reqs))
	drawn := make([]int64, 0, len(left))
	err := sqlexec.Each(ctx, e.s.x, func(r sqlexec.Rows) error {
		var n int64
		err := r.Scan(&n)
		drawn = append(drawn, n)
		return err
	}, sqlNumbers, int32(len(left)))
	if err != nil {
		return err
	}
	slices.Sort(drawn)
	for n, i := range left {
		e.numbers[i] = drawn[n]
	}
	slices.SortStableFunc(left, func(a, b int) int { return strings.Compare(e.reqs[a].ResolvedID(), e.reqs[b].ResolvedID()) })
	return nil
}

// failed is the call's error: with jobs that landed already nobody may take it for a call that was not done.
func (e *enqueueing) failed(err error) error {
	if len(e.s.woken) > 0 {
		return e.s.partly(err)
	}
	return err
}

type enqueueing struct {
	s       *Session
	reqs    []core.EnqueueRequest
	results []core.EnqueueResult
	notify  Notify
	first   map[string]int // an id -> the item that asks for it first
	patient string         // how long to wait for who inserts the same id; "": as long as the caller's transaction does
	slots   bool           // of schedules: validated before, under ids that users cannot have
	apart   bool           // each contended item gets an error of its own
	waits   int            // for contended items
	numbers []int64        // by item; nil: each is drawn when it is inserted
}

// valid answers the items that are refused, and returns the others.
func (e *enqueueing) valid() []int {
	at := make([]int, 0, len(e.reqs))
	for i := range e.reqs {
		if err := e.validate(&e.reqs[i]); err != nil {
			e.results[i].Err = err
			continue
		}
		at = append(at, i)
	}
	return at
}

// admit answers what needs no database, and returns the items to insert.
func (e *enqueueing) admit() []int {
	valid := e.valid()
	left := valid[:0]
	for _, i := range valid {
		if id := e.reqs[i].ResolvedID(); id != "" {
			if _, repeat := e.first[id]; repeat {
				continue // answered by what becomes of the first
			}
			e.first[id] = i
		}
		left = append(left, i)
	}
	return left
}

func (e *enqueueing) validate(req *core.EnqueueRequest) error {
	if e.slots {
		return nil
	}
	return req.Validate(e.s.limits)
}

// insert inserts the items at these positions and returns those whose id is held by another job.
func (e *enqueueing) insert(ctx context.Context, at []int) (refused []int, err error) {
	reqs, ids := make([]*core.EnqueueRequest, len(at)), make([]string, len(at))
	var numbers []int64
	for k, i := range at {
		reqs[k], ids[k] = &e.reqs[i], e.reqs[i].ResolvedID()
		if e.numbers != nil {
			numbers = append(numbers, e.numbers[i])
		}
	}
	args, err := e.arguments(reqs, numbers, e.patience(ids))
	if err != nil {
		return nil, err
	}
	rows, err := e.insertRows(ctx, false, args)
	if err != nil {
		return nil, err
	}
	var own []int64
	landed := make(map[string]bool)
	for _, r := range rows {
		if r.own {
			own = append(own, r.seq)
		} else {
			landed[r.id] = true
		}
	}
	slices.Sort(own) // numbers were drawn in the order of the request
	for _, i := range at {
		id := e.reqs[i].ResolvedID()
		switch {
		case id == "" && len(own) == 0:
			return nil, errors.New("stint: the database inserted fewer jobs than it was given")
		case id == "":
			e.results[i].ID, own = ownID(own[0]), own[1:]
		case landed[id]:
			e.results[i].ID = id
		default:
			refused = append(refused, i)
		}
	}
	return refused, nil
}

// insertedRow is a job that was inserted.
type insertedRow struct {
	seq int64
	id  string
	own bool // the id is the store's
	key keyplan.Key
}

func (e *enqueueing) insertRows(ctx context.Context, keyed bool, args []any) (rows []insertedRow, err error) {
	text := sqlInsert
	if keyed {
		text = sqlInsertKeyed
	}
	err = sqlexec.Each(ctx, e.s.x, func(r sqlexec.Rows) error {
		var row insertedRow
		var told, lost int64
		var queue string
		var due time.Time
		into := []any{&row.seq, &row.id, &queue, &due, &told, &lost}
		if keyed {
			into = append(into, &row.key.Name, &row.key.Key)
		}
		if err := r.Scan(into...); err != nil {
			return err
		}
		e.s.laneless = e.s.laneless || lost > 0
		e.s.wake(News{Queue: queue, Place: row.seq, Due: due})
		if row.id == "" {
			row.id, row.own = ownID(row.seq), true
		}
		rows = append(rows, row)
		return nil
	}, text, args...)
	return rows, err
}

// held answers the items whose id is held by another job, which a later statement sees for sure. It returns those
// for which there is none any more.
func (e *enqueueing) held(ctx context.Context, refused []int) (gone []int, err error) {
	ids := make([]string, len(refused))
	for n, i := range refused {
		ids[n] = e.reqs[i].ResolvedID()
	}
	holders, err := e.s.holders(ctx, ids)
	if err != nil {
		return nil, err
	}
	for n, i := range refused {
		if h, ok := holders[ids[n]]; ok {
			e.results[i] = taken(ids[n], h.name, e.reqs[i].Name)
		} else {
			gone = append(gone, i)
		}
	}
	return gone, nil
}

func taken(id, holder, name string) core.EnqueueResult {
	if holder != name {
		return core.EnqueueResult{Err: &core.ConflictError{Name: holder, ID: id}}
	}
	return core.EnqueueResult{ID: id, Duplicate: true}
}

// repeats answers the items that repeat an id of the same call.
func (e *enqueueing) repeats() {
	for i := range e.reqs {
		id := e.reqs[i].ResolvedID()
		first, ok := e.first[id]
		if e.results[i] != (core.EnqueueResult{}) || !ok || first == i {
			continue
		}
		holder := e.reqs[first].Name
		if conflict, ok := errors.AsType[*core.ConflictError](e.results[first].Err); ok {
			holder = conflict.Name
		}
		if e.results[i] = taken(id, holder, e.reqs[i].Name); errors.Is(e.results[first].Err, core.ErrUnavailable) {
			e.results[i] = core.EnqueueResult{Err: errContended}
		}
	}
}

// arguments are those of sqlInsert. numbers nil: they are drawn.
func (e *enqueueing) arguments(reqs []*core.EnqueueRequest, numbers []int64, patience any) ([]any, error) {
	n := len(reqs)
	ids, names, queues := make([]string, n), make([]string, n), make([]string, n)
	for k, req := range reqs {
		ids[k], names[k], queues[k] = req.ResolvedID(), req.Name, req.Queue
	}
	c, err := contentOf(reqs)
	if err != nil {
		return nil, err
	}
	return []any{e.s.now, shared(ids), shared(names), shared(queues), shared(c.priority), c.payload, shared(c.metadata),
		shared(c.maxAttempts), shared(c.maxStalls), shared(c.timeout), shared(c.backoff), shared(c.keep), shared(c.trace),
		shared(c.delay), shared(c.runAt), e.notify.channel(), e.notify.Origin, patience, numbers}, nil
}

// content is what a replace changes of jobs, as arguments.
type content struct {
	metadata, backoff, keep, trace []string
	priority                       []int16
	payload                        [][]byte
	maxAttempts, maxStalls         []int32
	timeout, delay                 []int64
	runAt                          []time.Time
}

func contentOf(reqs []*core.EnqueueRequest) (*content, error) {
	n := len(reqs)
	c := &content{
		metadata: make([]string, n), backoff: make([]string, n), keep: make([]string, n), trace: make([]string, n),
		priority: make([]int16, n), payload: make([][]byte, n), maxAttempts: make([]int32, n), maxStalls: make([]int32, n),
		timeout: make([]int64, n), delay: make([]int64, n), runAt: make([]time.Time, n),
	}
	var last core.Backoff
	var lastText string
	for k, req := range reqs {
		c.priority[k], c.payload[k] = int16(req.Priority), req.Payload
		c.maxAttempts[k], c.maxStalls[k] = int32(req.MaxAttempts), int32(req.MaxStalls)
		c.timeout[k], c.delay[k], c.runAt[k] = int64(req.Timeout), micros(req.Delay), core.Micros(req.RunAt)
		if req.Backoff != last {
			last, lastText = req.Backoff, backoffText(req.Backoff)
		}
		c.backoff[k] = lastText
		var err1, err2, err3 error
		c.metadata[k], err1 = doc(req.Metadata, len(req.Metadata) == 0)
		c.keep[k], err2 = doc(req.Keep, req.Keep == core.Keep{})
		c.trace[k], err3 = doc(req.Trace, req.Trace == nil)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// shared is the list, or its first element where all are alike.
func shared[T comparable](list []T) []T {
	for _, v := range list {
		if v != list[0] {
			return list
		}
	}
	return list[:1]
}
