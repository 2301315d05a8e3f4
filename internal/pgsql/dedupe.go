package pgsql

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
	"github.com/stintmq/stint/internal/sqlexec"
)

// Dedupe keys (Q12). An enqueue looks, decides, and acts on the very version of the entry that it saw: each has a turn,
// and where that is another by then it looks again. What it decides on holds as long as the turn does: of a job that has
// ended nobody makes a pending one without writing its entry, and a window that ended stays so. So nothing is locked
// while it decides, and who finds a plain duplicate locks and writes nothing.
const (
	// State 0: there is no such job any more. By ctid also because an index has all that is asked for, but not in its order.
	holderState = `coalesce((select s.state from (
			select 1 as state from {}.ready where seq = e.seq
			union all select case when run_at <= ` + since + ` then 1 else 2 end from {}.delayed where ctid = (
				select ctid from {}.delayed where seq between e.seq and e.seq order by seq limit 1)
			union all select 3 from {}.leases where seq = e.seq
			union all select state from {}.finished where ctid = (
				select ctid from {}.finished where seq between e.seq and e.seq order by seq limit 1)
			limit 1) s), 0)`

	// The row 0 is the moment.
	sqlEntries = `select 0::bigint, 0::bigint, 0::bigint, null::text, (select ` + since + `), 0
		union all
		select u.n, e.seq, e.turn, e.id, e.until, ` + holderState + `
		from unnest((select $2::text[]), (select $3::text[])) with ordinality as u (name, key, n)
		cross join lateral (select seq, turn, id, until from {}.dedupe where name = u.name and key = u.key limit 1) e`

	// Entries of a version are locked in the order of their keys. Arrays are in the order of the jobs' numbers.
	ofTurns = `h as materialized (
			select e.tid, e.seq
			from (
				select * from unnest((select $2::bigint[]), (select $3::text[]), (select $4::text[]), (select $5::bigint[]))
				as u (seq, name, key, turn) order by name, key) u
			cross join lateral (
				select ctid as tid, seq from {}.dedupe where name = u.name and key = u.key and turn = u.turn limit 1 for update) e
			where $7::text is null or (select set_config('lock_timeout', $7::text, true)) is not null)`

	windowMoves = `until = case when ($6::bigint[])[width_bucket(seq, $2::bigint[])] > 0 then (select now from t)
				+ (($6::bigint[])[width_bucket(seq, $2::bigint[])] / 1000000) * interval '1 second'
				+ (($6::bigint[])[width_bucket(seq, $2::bigint[])] % 1000000) * interval '1 microsecond' else until end,
			was = turn, turn = nextval({numbers})`

	sqlMoveWindows = `with ` + moment + `,
		` + ofTurns + `
		update {}.dedupe set ` + windowMoves + ` where ctid = any(array(select tid from h)) returning seq`
)

// windowLength is a TTL in microseconds, 0 for none.
func windowLength(ttl time.Duration) int64 { return micros(ttl) }

// entries returns those of the keys that are taken, and the moment of that.
func (s *Session) entries(ctx context.Context, keys []keyplan.Key) (map[keyplan.Key]keyplan.Entry, time.Time, error) {
	names, texts := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		names[i], texts[i] = k.Name, k.Key
	}
	found := make(map[keyplan.Key]keyplan.Entry, len(keys))
	var now time.Time
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var n, state int64
		var e keyplan.Entry
		var id *string
		var until *time.Time
		if err := r.Scan(&n, &e.Seq, &e.Turn, &id, &until, &state); err != nil {
			return err
		}
		if n == 0 {
			now = utc(until)
			return nil
		}
		if e.ID = ownID(e.Seq); id != nil {
			e.ID = *id
		}
		e.State, e.End = stateName(state), utc(until)
		found[keys[n-1]] = e
		return nil
	}, sqlEntries, s.now, names, texts)
	return found, now, err
}

// entry returns who took a key.
func (s *Session) entry(ctx context.Context, name, key string) (e keyplan.Entry, taken bool, now time.Time, err error) {
	k := keyplan.Key{Name: name, Key: key}
	found, now, err := s.entries(ctx, []keyplan.Key{k})
	e, taken = found[k]
	return e, taken, now, err
}

// keysOf are the keys that items ask for, each once.
func keysOf(reqs []core.EnqueueRequest, at []int) []keyplan.Key {
	var keys []keyplan.Key
	seen := make(map[keyplan.Key]bool)
	for _, i := range at {
		if d := reqs[i].Dedupe; d != nil {
			if k := (keyplan.Key{Name: reqs[i].Name, Key: d.Key}); !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// byJob are positions of touches in the order of their jobs' numbers, as the statements want their arrays.
func byJob(touches []keyplan.Touch, at []int) []int {
	at = slices.Clone(at)
	slices.SortFunc(at, func(a, b int) int { return int(min(1, max(-1, touches[a].Entry.Seq-touches[b].Entry.Seq))) })
	return at
}

// turns are the arguments that touches have in common, behind the moment.
func turns(touches []keyplan.Touch, at []int, patience any) []any {
	n := len(at)
	seqs, names, keys, turn, ttl := make([]int64, n), make([]string, n), make([]string, n), make([]int64, n), make([]int64, n)
	for k, i := range at {
		t := &touches[i]
		seqs[k], names[k], keys[k], turn[k], ttl[k] = t.Entry.Seq, t.Key.Name, t.Key.Key, t.Entry.Turn, windowLength(t.TTL)
	}
	return []any{seqs, names, keys, turn, ttl, patience}
}

// moveWindows moves the windows of entries that are still what they were, and returns the numbers of their jobs.
func (s *Session) moveWindows(ctx context.Context, touches []keyplan.Touch, at []int, patience any) (map[int64]bool, error) {
	done := make(map[int64]bool, len(at))
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var seq int64
		err := r.Scan(&seq)
		done[seq] = true
		return err
	}, sqlMoveWindows, append([]any{s.now}, turns(touches, byJob(touches, at), patience)...)...)
	return done, err
}

// CancelByKey implements core.Admin (Q12).
func (s *Session) CancelByKey(ctx context.Context, name, key string) (bool, error) {
	if !sane(name) || !sane(key) {
		return false, nil
	}
	for range tries {
		e, taken, _, err := s.entry(ctx, name, key)
		if err != nil || !taken || !e.State.Pending() {
			return false, err
		}
		_, err = s.cancel(ctx, e.ID, e.Seq)
		var ended *core.StateError
		switch {
		case err == nil:
			return true, nil
		case errors.As(err, &ended), errors.Is(err, core.ErrNotFound):
			// It ended since it was looked at: another may have the key.
		default:
			return false, err
		}
	}
	return false, errMoving
}

// retake is what Retry needs to know of the key of a job: the turn of the entry that it takes over, 0 for none, and
// whether that is the job's own with its window open. It is a *core.ConflictError while another job holds the key (Q8).
func (s *Session) retake(ctx context.Context, st *standing) (turn int64, asItWas bool, err error) {
	e, taken, now, err := s.entry(ctx, st.name, *st.key)
	switch {
	case err != nil || !taken:
		return 0, false, err
	case e.Seq == st.seq:
		return e.Turn, now.Before(e.End), nil
	case e.Holds(now):
		return 0, false, &core.ConflictError{Name: st.name, Key: *st.key, ID: e.ID}
	}
	return e.Turn, false, nil
}

const (
	// deadEntry is core.KeyHolder.Dead.
	deadEntry = holderState + ` in (0, 5, 6, 7) and (until is null or until <= ` + since + `)`

	// What is locked is left for another time. A turn that is the same says that what was seen to be dead is.
	sqlSweepKeys = `with p as materialized (
			select name, key, turn, ` + deadEntry + ` as dead from {}.dedupe e
			where (name, key) > ($2::text, $3::text) order by name, key limit $4::bigint),
		x as (delete from {}.dedupe where ctid = any(array(
			select d.tid from p cross join lateral (
				select ctid as tid from {}.dedupe where name = p.name and key = p.key and turn = p.turn limit 1 for update skip locked) d
			where p.dead)))
		select name, key, (select count(*) from p) from p order by name desc, key desc limit 1`
)

// SweepKeys deletes what is dead of the entries after a key, at most limit of which it looks at, and returns the last of
// these, from where to go on; the zero Key when it came to the end.
func (s *Session) SweepKeys(ctx context.Context, after keyplan.Key, limit int) (last keyplan.Key, err error) {
	var looked int
	found, err := sqlexec.One(ctx, s.x, []any{&last.Name, &last.Key, &looked}, sqlSweepKeys, s.now, after.Name, after.Key, int64(limit))
	if err != nil || !found || looked < limit {
		return keyplan.Key{}, err
	}
	return last, nil
}

// lessKey is the order in which keys are locked.
func lessKey(a, b keyplan.Key) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}
