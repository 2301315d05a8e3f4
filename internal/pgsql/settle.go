package pgsql

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// What ends leases: the arrays are parallel to $2, in which the jobs' numbers ascend and none occurs twice: so a row
// finds its place by halving (a search from the start would make a batch of 500 cost twice as much per job). Rows are
// locked in the order of seq first, so that two statements never wait in a circle, and then found by seq again, not
// by ctid: one that a heartbeat renewed meanwhile is where the statement's snapshot sees nothing. Rows that somebody
// holds are left out, and so are leases that are not current: what is not returned is asked for anew (answers.go). So
// are those of a job that has another id than the last parameter says.
//
// sqlComplete is for the one outcome that matters for speed; sqlSettle does all of them.
const (
	sqlHold = `h as materialized (
			select seq from {}.leases l
			where seq = any((select $2::bigint[])::bigint[]) and token = ($3::uuid[])[width_bucket(seq, $2::bigint[])]
				and ` + hasID + `($5::text[])[width_bucket(seq, $2::bigint[])]
			order by seq for update skip locked)`

	// A subselect, not a join: it looks up job by job however large the tables are said to be.
	hasID = `(select coalesce(j.id, '#' || j.seq) from {}.jobs j where j.seq = l.seq) = `

	sqlComplete = `with ` + moment + `,
		` + sqlHold + `,
		d as (delete from {}.leases where seq = any(array(select seq from h)) returning *),
		f as (
			insert into {}.finished (seq, finished_at, run_at, started_at, fence, token, attempts, stalls, snoozes, runs, state,
				queue, name, outcome, asked, worker, result)
			select seq, (select now from t), run_at, claimed_at, fence, token, attempts + 1, stalls, snoozes, runs + 1, 5,
				queue, name, 'complete', 'complete', worker, ($4::bytea[])[width_bucket(seq, $2::bigint[])]
			from d returning seq, queue, name, runs),
		k as (
			insert into {}.tallies (queue, name, completed, failed, cancelled)
			select queue, name, count(*), 0, 0 from f group by queue, name)
		select seq, queue, 5, runs, 0::bigint, null::timestamptz from f`

	// outcome is what the ledger says, asked what an ack asked for. What yields ends as cancelled while a cancel is
	// pending. state 0: back to its place. $12: only leases that ended, and were suspect for so long: a sweep's.
	sqlSettle = `with ` + moment + `,
		h as materialized (
			select seq from {}.leases l
			where seq = any((select $2::bigint[])::bigint[]) and token = ($3::uuid[])[width_bucket(seq, $2::bigint[])]
				and ` + hasID + `($13::text[])[width_bucket(seq, $2::bigint[])]
				and ($12::bigint is null or until <= ` + since + ` and suspect_at <= ` + since + `
					- ($12::bigint / 1000000) * interval '1 second' - ($12::bigint % 1000000) * interval '1 microsecond')
			order by seq for update skip locked),
		d as (delete from {}.leases where seq = any(array(select seq from h)) returning *, width_bucket(seq, $2::bigint[]) as pos),
		e as materialized (
			select d.*, (select now from t) as now,
				yields and cancel as gone,
				case when yields and cancel then 7 else ($4::smallint[])[pos] end as state,
				case when yields and cancel then 'cancel' else ($5::text[])[pos] end as outcome,
				nullif(($6::text[])[pos], '') as asked,
				case when yields and cancel then null else ($7::bytea[])[pos] end as result,
				case when yields and cancel then null else nullif(($8::text[])[pos], '')::jsonb end as failure,
				case when yields and cancel then 0 else ($9::bigint[])[pos] end as delay,
				case when yields and cancel then '' else ($10::text[])[pos] end as counts
			from (select *, ($11::boolean[])[pos] as yields, ($14::integer[])[pos] as turn from d) d),
		f as (
			insert into {}.finished (seq, finished_at, run_at, started_at, fence, token, attempts, stalls, snoozes, runs, state,
				queue, name, outcome, asked, worker, result, failure)
			select seq, now, run_at, claimed_at, fence, token, attempts + (counts = 'attempt')::int, stalls + (counts = 'stall')::int,
				snoozes, runs + 1, state, queue, name, outcome, asked, worker, result, failure
			from e where state >= 5),
		k as (
			insert into {}.tallies (queue, name, completed, failed, cancelled)
			select queue, name, count(*) filter (where state = 5), count(*) filter (where state = 6), count(*) filter (where state = 7)
			from e where state >= 5 group by queue, name),
		r as (
			insert into {}.runs (seq, finished_at, started_at, token, number, answered, outcome, asked, worker, failure)
			select seq, now, claimed_at, token, runs + 1, state, outcome, asked, worker, failure
			from e where state < 5 and counts in ('attempt', 'stall')),
		w as (
			insert into {}.ready (seq, place, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
			select seq, case state when 0 then place else nextval({numbers}) end, case state when 0 then run_at else now end, fence, bytes,
				attempts + (counts = 'attempt')::int, stalls, snoozes + (counts = 'snooze')::int,
				runs + (counts = 'attempt')::int, priority, queue, name
			from (select * from e order by turn) e where state < 2 returning place),
		y as (
			insert into {}.delayed (seq, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
			select seq, now + (delay / 1000000) * interval '1 second' + (delay % 1000000) * interval '1 microsecond', fence, bytes,
				attempts + (counts = 'attempt')::int, stalls + (counts = 'stall')::int, snoozes + (counts = 'snooze')::int,
				runs + (counts in ('attempt', 'stall'))::int, priority, queue, name
			from e where state = 2 returning run_at)
		select seq, queue, greatest(state, 1), runs + (state >= 5 or counts in ('attempt', 'stall'))::int,
			coalesce((select min(place) from w), 0), (select min(run_at) from y) from e`

	sqlTrim = `delete from {}.runs where seq = $1::bigint and number <= $2::integer`
)

// In the caller's transaction a row that is locked is waited for.
var (
	sqlCompleteTx = strings.Replace(sqlComplete, " skip locked", "", 1)
	sqlSettleTx   = strings.Replace(sqlSettle, " skip locked", "", 1)
)

// What a run counts for.
const (
	countsNothing = ""
	countsAttempt = "attempt"
	countsStall   = "stall"
	countsSnooze  = "snooze"
)

// back is the state of a job that goes back to its place.
const back = 0

// settlement is how one lease is to end.
type settlement struct {
	seq            int64
	turn           int32 // among those of the call: places are drawn in this order
	id, token      string
	state          int16
	outcome, asked core.Outcome
	result         []byte
	failure        *core.Failure
	delay          int64 // microseconds
	counts         string
	yields         bool // to a pending cancel
}

// settled is where a job stands after its lease ended.
type settled struct {
	queue string
	state int64
	place int64     // no smaller one was taken by the same statement
	due   time.Time // nothing is due earlier of what it delayed
}

// settle ends the leases of jobs, each of which occurs once, and returns those that ended. suspect, unless nil, is
// for how many microseconds they must have been suspect.
func (s *Session) settle(ctx context.Context, ends []settlement, suspect any) (map[int64]settled, error) {
	for i := range ends {
		ends[i].turn = int32(i)
	}
	slices.SortFunc(ends, func(a, b settlement) int { return cmp.Compare(a.seq, b.seq) })
	done := make(map[int64]settled, len(ends))
	var long [][2]int64
	var seq, runs int64
	var e settled
	var due *time.Time
	into := []any{&seq, &e.queue, &e.state, &runs, &e.place, &due}
	scan := func(r sqlexec.Rows) error {
		if err := r.Scan(into...); err != nil {
			return err
		}
		e.due = utc(due)
		done[seq] = e
		if runs > core.LedgerLimit {
			long = append(long, [2]int64{seq, runs - core.LedgerLimit})
		}
		return nil
	}
	text, args, err := s.settling(ends, suspect)
	if err != nil {
		return nil, err
	}
	if err := sqlexec.Each(ctx, s.x, scan, text, args...); err != nil {
		return nil, err
	}
	for _, e := range done {
		if e.state < completed {
			s.wake(News{Queue: e.queue, Place: e.place, Due: e.due})
		}
	}
	for _, l := range long {
		// What this forgets is no part of the answer: a ledger that is too long is trimmed by its next entry.
		if _, err := s.x.Exec(ctx, sqlTrim, l[0], l[1]); err != nil && s.tx {
			return nil, err
		}
	}
	return done, nil
}

// settling chooses the statement.
func (s *Session) settling(ends []settlement, suspect any) (text string, args []any, err error) {
	n := len(ends)
	seqs, ids, tokens, results := make([]int64, n), make([]string, n), make([]string, n), make([][]byte, n)
	plain := suspect == nil
	for i := range ends {
		seqs[i], ids[i], tokens[i], results[i] = ends[i].seq, ends[i].id, ends[i].token, ends[i].result
		plain = plain && ends[i].outcome == core.OutcomeComplete
	}
	if plain {
		text = sqlComplete
		if s.tx {
			text = sqlCompleteTx
		}
		return text, []any{s.now, seqs, tokens, results, ids}, nil
	}
	states, outcomes, asked := make([]int16, n), make([]string, n), make([]string, n)
	failures, delays, counts, yields := make([]string, n), make([]int64, n), make([]string, n), make([]bool, n)
	turns := make([]int32, n)
	for i := range ends {
		e := &ends[i]
		states[i], outcomes[i], asked[i] = e.state, string(e.outcome), string(e.asked)
		delays[i], counts[i], yields[i], turns[i] = e.delay, e.counts, e.yields, e.turn
		if e.failure != nil {
			b, err := json.Marshal(e.failure)
			if err != nil {
				return "", nil, err
			}
			failures[i] = string(b)
		}
	}
	text = sqlSettle
	if s.tx {
		text = sqlSettleTx
	}
	return text, []any{s.now, seqs, tokens, states, outcomes, asked, results, failures, delays, counts, yields, suspect, ids, turns}, nil
}
