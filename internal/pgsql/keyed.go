package pgsql

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
	"github.com/stintmq/stint/internal/sqlexec"
)

// Whole reports whether an Enqueue of reqs takes several statements of which all or none must land.
func Whole(reqs []core.EnqueueRequest) bool {
	keyed := slices.ContainsFunc(reqs, func(r core.EnqueueRequest) bool { return r.Dedupe != nil })
	return Parts(reqs) > 1 || keyed && (len(reqs) > 1 || reqs[0].ResolvedID() != "")
}

// independent reports whether no two items have an id or a key in common, none has both, and none may have another job wait,
// in a call of one statement.
func (e *enqueueing) independent(at []int) bool {
	if partOf(len(at), func(i int) *core.EnqueueRequest { return &e.reqs[at[i]] }) < len(at) {
		return false
	}
	ids, keys := make(map[string]bool), make(map[keyplan.Key]bool)
	for _, i := range at {
		id, d := e.reqs[i].ResolvedID(), e.reqs[i].Dedupe
		if len(at) > 1 && keyplan.MayMakeDue(&e.reqs[i]) {
			return false
		}
		switch {
		case id != "" && (d != nil || ids[id]):
			return false
		case id != "":
			ids[id] = true
		case d != nil:
			k := keyplan.Key{Name: e.reqs[i].Name, Key: d.Key}
			if keys[k] {
				return false
			}
			keys[k] = true
		}
	}
	return true
}

// round carries out a plan and returns the items that are left.
func (e *enqueueing) round(ctx context.Context, left []int, plan *keyplan.Plan) (again []int, err error) {
	touched, err := e.touch(ctx, plan)
	if err != nil {
		return nil, err
	}
	inserted, err := e.insertPlanned(ctx, plan)
	if err != nil {
		return nil, err
	}
	for _, i := range left {
		item := plan.Items[i]
		of, id := landed, ""
		if item.Touch > 0 {
			of = touched[item.Touch-1]
		}
		if item.Insert > 0 && of == landed {
			of, id = inserted[item.Insert-1].landing, inserted[item.Insert-1].id
		}
		switch of {
		case refused:
			again = append(again, i)
		case contended:
			e.results[i].Err = errContended
		case landed:
			if e.results[i] = item.Result; id != "" && item.Result.Err == nil {
				e.results[i].ID = id
			}
		}
	}
	return again, nil
}

// names are those of the jobs that have the ids of items.
func (e *enqueueing) names(ctx context.Context, at []int) (map[string]string, error) {
	var ids []string
	for _, i := range at {
		if id := e.reqs[i].ResolvedID(); id != "" {
			ids = append(ids, id)
		}
	}
	held, err := e.s.holders(ctx, ids)
	names := make(map[string]string, len(held))
	for id, h := range held {
		names[id] = h.name
	}
	return names, err
}

// landing is what became of a touch or an insert.
type landing int

const (
	landed landing = iota
	refused
	contended
)

// touch moves windows and replaces content, in the order of the keys over all of a call's statements.
func (e *enqueueing) touch(ctx context.Context, plan *keyplan.Plan) ([]landing, error) {
	out := make([]landing, len(plan.Touches))
	at := make([]int, len(plan.Touches))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(a, b int) int { return lessKey(plan.Touches[a].Key, plan.Touches[b].Key) })
	for len(at) > 0 {
		replaces := plan.Touches[at[0]].Content >= 0
		n, bytes := 0, 0
		for ; n < min(len(at), partRows) && (plan.Touches[at[n]].Content >= 0) == replaces; n++ {
			if replaces {
				if bytes += len(e.reqs[plan.Touches[at[n]].Content].Payload); bytes > partBytes && n > 0 {
					break
				}
			}
		}
		err := e.each(ctx, at[:n], func(at []int) error {
			act := func() (map[int64]bool, error) { return e.s.moveWindows(ctx, plan.Touches, at, e.waiting()) }
			if replaces {
				act = func() (map[int64]bool, error) { return e.replace(ctx, plan.Touches, at, e.waiting()) }
			}
			done, err := act()
			for _, i := range at {
				if out[i] = landed; !done[plan.Touches[i].Entry.Seq] {
					out[i] = refused
				}
			}
			return err
		}, func(i int) { out[i] = contended })
		if err != nil {
			return nil, err
		}
		at = at[n:]
	}
	return out, nil
}

// planned is what became of an insert.
type planned struct {
	landing
	id string
}

const (
	// In transactions of several inserts the keys come first, all of them, in their order.
	sqlTakeKeys = `with t as materialized (
			select case when pg_current_xact_id() is not null then coalesce($1::timestamptz, clock_timestamp()) end as now),
		input as materialized (
			select * from unnest((select $2::text[]), (select $3::text[]), (select $4::bigint[]), (select $5::bigint[]), (select $6::bigint[]),
				(select $7::text[])) as u (name, key, seq, ttl, was, id)
			where $8::text is null or (select set_config('lock_timeout', $8::text, true)) is not null)
		` + takeKeys + ` returning seq`

	// takeKeys takes keys that are free: that nobody took, or of which an entry was seen to be dead that is the same still.
	// Whoever is about to take one is waited for. A subselect, not a join, looks up key by key.
	takeKeys = `insert into {}.dedupe as e (name, key, seq, turn, was, until, id)
			select name, key, seq, seq, was, case when ttl > 0 then (select now from t)
				+ (ttl / 1000000) * interval '1 second' + (ttl % 1000000) * interval '1 microsecond' end, nullif(id, '')
			from input i where key <> '' and (was <> 0 or (select turn from {}.dedupe where name = i.name and key = i.key) is null)
			order by name collate "C", key collate "C"
			on conflict (name, key) do update set seq = excluded.seq, turn = excluded.turn, was = excluded.was, until = excluded.until,
				id = excluded.id
			where e.turn = excluded.was`

	sqlTakenInVain = `select count(*) from unnest((select $1::text[]), (select $2::text[]), (select $3::bigint[])) as u (name, key, seq)
		cross join lateral (select from {}.dedupe where name = u.name and key = u.key and seq = u.seq limit 1) e`
)

// insertPlanned inserts the jobs of a plan whose ids and keys are free still.
func (e *enqueueing) insertPlanned(ctx context.Context, plan *keyplan.Plan) ([]planned, error) {
	out := make([]planned, len(plan.Inserts))
	if len(out) == 0 {
		return out, nil
	}
	w := &wanted{e: e, plan: plan, out: out, reqs: make([]*core.EnqueueRequest, len(out))}
	at := make([]int, len(out))
	both := false
	for n, in := range plan.Inserts {
		at[n], w.reqs[n] = n, &e.reqs[in.At]
		if in.Content != in.At {
			merged := plan.Request(e.reqs, in)
			w.reqs[n] = &merged
		}
		both = both || in.Key != (keyplan.Key{}) && w.reqs[n].ResolvedID() != ""
	}
	if both || partOf(len(at), func(i int) *core.EnqueueRequest { return w.reqs[i] }) < len(at) {
		if err := w.draw(ctx); err != nil {
			return nil, err
		}
	}
	if !both {
		return out, w.insertAll(ctx, at)
	}
	// An id that is taken just now refuses a job whose key was taken before. Then nothing of it was.
	if _, err := e.s.x.Exec(ctx, "savepoint stint_keys"); err != nil {
		return nil, err
	}
	if err := w.insertAll(ctx, at); err != nil {
		return nil, err
	}
	vain, err := w.inVain(ctx)
	if err != nil {
		return nil, err
	}
	if vain {
		for n := range out {
			out[n] = planned{landing: refused}
		}
		if _, err := e.s.x.Exec(ctx, "rollback to savepoint stint_keys"); err != nil {
			return nil, err
		}
	}
	_, err = e.s.x.Exec(ctx, "release savepoint stint_keys")
	return out, err
}

// wanted are the inserts of a plan.
type wanted struct {
	e       *enqueueing
	plan    *keyplan.Plan
	out     []planned
	reqs    []*core.EnqueueRequest
	numbers []int64 // nil: they are drawn as jobs are inserted
	taken   bool    // the keys of those that are not refused
}

func (w *wanted) draw(ctx context.Context) error {
	w.numbers = make([]int64, 0, len(w.reqs))
	err := sqlexec.Each(ctx, w.e.s.x, func(r sqlexec.Rows) error {
		var n int64
		err := r.Scan(&n)
		w.numbers = append(w.numbers, n)
		return err
	}, sqlNumbers, int32(len(w.reqs)))
	slices.Sort(w.numbers)
	return err
}

func (w *wanted) insertAll(ctx context.Context, at []int) error {
	size := func(at []int) int { return partOf(len(at), func(i int) *core.EnqueueRequest { return w.reqs[at[i]] }) }
	if size(at) < len(at) {
		if !w.e.apart { // who is apart waits too short to wait in a circle
			if err := w.take(ctx, at); err != nil {
				return err
			}
		}
		slices.SortStableFunc(at, func(a, b int) int { return strings.Compare(w.reqs[a].ResolvedID(), w.reqs[b].ResolvedID()) })
	}
	if w.taken {
		at = slices.DeleteFunc(at, func(n int) bool { return w.out[n].landing != landed })
	}
	for len(at) > 0 {
		n := size(at)
		if err := w.e.each(ctx, at[:n], func(at []int) error { return w.insert(ctx, at) }, func(n int) { w.out[n] = planned{landing: contended} }); err != nil {
			return err
		}
		at = at[n:]
	}
	return nil
}

// take takes the keys of all inserts, and refuses those whose key is taken.
func (w *wanted) take(ctx context.Context, at []int) error {
	var names, keys, ids []string
	var seqs, ttls, was []int64
	for _, n := range at {
		in := w.plan.Inserts[n]
		names, keys, ids = append(names, in.Key.Name), append(keys, in.Key.Key), append(ids, w.reqs[n].ResolvedID())
		seqs, ttls, was = append(seqs, w.numbers[n]), append(ttls, windowLength(in.TTL)), append(was, in.Was)
		if in.Key != (keyplan.Key{}) {
			w.out[n].landing = refused
		}
	}
	w.taken = true
	return sqlexec.Each(ctx, w.e.s.x, func(r sqlexec.Rows) error {
		var seq int64
		if err := r.Scan(&seq); err != nil {
			return err
		}
		n, _ := slices.BinarySearch(w.numbers, seq)
		w.out[n].landing = landed
		return nil
	}, sqlTakeKeys, w.e.s.now, names, keys, seqs, ttls, was, ids, w.e.waiting())
}

// keysTaken says to sqlInsertKeyed that a job has its key.
const keysTaken = -1

func (w *wanted) insert(ctx context.Context, at []int) error {
	reqs := make([]*core.EnqueueRequest, len(at))
	var numbers []int64
	keys, ttls, was := make([]string, len(at)), make([]int64, len(at)), make([]int64, len(at))
	waits := false
	for k, n := range at {
		in := w.plan.Inserts[n]
		reqs[k], keys[k], ttls[k], was[k] = w.reqs[n], in.Key.Key, windowLength(in.TTL), in.Was
		if w.taken {
			was[k] = keysTaken
		}
		waits = waits || keys[k] != "" || reqs[k].ResolvedID() != ""
		if w.numbers != nil {
			numbers = append(numbers, w.numbers[n])
		}
		w.out[n] = planned{landing: refused}
	}
	var patience any
	if waits {
		patience = w.e.waiting()
	}
	args, err := w.e.arguments(reqs, numbers, patience)
	if err != nil {
		return err
	}
	rows, err := w.e.insertRows(ctx, true, append(args, keys, ttls, was))
	if err != nil {
		return err
	}
	w.land(at, rows)
	return nil
}

// land finds out which jobs were inserted: by their keys or ids; those without either are all there, in their order.
func (w *wanted) land(at []int, rows []insertedRow) {
	byKey, byID := make(map[keyplan.Key]int), make(map[string]int)
	var plain []int
	for _, n := range at {
		switch id, k := w.reqs[n].ResolvedID(), w.plan.Inserts[n].Key; {
		case k != keyplan.Key{}:
			byKey[k] = n
		case id != "":
			byID[id] = n
		default:
			plain = append(plain, n)
		}
	}
	slices.SortFunc(rows, func(a, b insertedRow) int { return cmp.Compare(a.seq, b.seq) })
	for _, row := range rows {
		n, ok := byKey[row.key]
		if row.key.Key == "" {
			if n, ok = byID[row.id]; !ok && len(plain) > 0 {
				n, plain, ok = plain[0], plain[1:], true
			}
		}
		if ok {
			w.out[n] = planned{id: row.id}
		}
	}
}

// inVain reports whether a job that was refused has a key all the same.
func (w *wanted) inVain(ctx context.Context) (bool, error) {
	var names, keys []string
	var seqs []int64
	for n, in := range w.plan.Inserts {
		if w.out[n].landing != landed && in.Key != (keyplan.Key{}) && w.reqs[n].ResolvedID() != "" {
			names, keys, seqs = append(names, in.Key.Name), append(keys, in.Key.Key), append(seqs, w.numbers[n])
		}
	}
	if len(seqs) == 0 {
		return false, nil
	}
	var n int
	_, err := sqlexec.One(ctx, w.e.s.x, []any{&n}, sqlTakenInVain, names, keys, seqs)
	return n > 0, err
}
