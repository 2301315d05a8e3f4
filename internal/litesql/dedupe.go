package litesql

import (
	"context"
	"errors"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
	"github.com/stintmq/stint/internal/sqlexec"
)

// Dedupe keys (Q12). Whoever looks at one holds the write lock, so what was read holds until it is acted upon.

const (
	entryColumns = `d.seq, d.id, d.until, w.state, w.run_at, f.state`
	entryFrom    = `stint_dedupe d left join stint_work w on w.seq = d.seq left join stint_finished f on f.seq = d.seq`

	sqlEntries = `select e.key, ` + entryColumns + ` from json_each(?) e cross join ` + entryFrom + `
		where d.name = e.value ->> 0 and d.key = e.value ->> 1`
	sqlEntryOf = `select ` + entryColumns + ` from ` + entryFrom + ` where d.name = ? and d.key = ?`

	sqlMoveWindow = `update stint_dedupe set until = ? where name = ? and key = ?`
	sqlNewBody    = `update stint_jobs set priority = ?, payload = ?, metadata = ?, max_attempts = ?, max_stalls = ?, timeout = ?,
			backoff_kind = ?, backoff_base = ?, backoff_max = ?, backoff_factor = ?, backoff_exact = ?, keep = ?, trace = ?
		where seq = ?`
	sqlNewStand = `update stint_work set rank = ?, state = ?, place = ?, run_at = ? where seq = ? returning lane`

	sqlKeyOf = `select l.name, j.dedupe_key from stint_jobs j cross join stint_lanes l on l.lane = j.lane
		where j.seq = ? and j.dedupe_key is not null`
	sqlFreeKeys = `delete from stint_dedupe where (name, key) in (
			select l.name, j.dedupe_key from json_each(?1) e cross join stint_jobs j on j.seq = e.value
			cross join stint_lanes l on l.lane = j.lane where j.dedupe_key is not null)
		and seq in (select value from json_each(?1))`

	sqlKeysAfter = `select d.name, d.key, ` + entryColumns + ` from ` + entryFrom + `
		where (d.name, d.key) > (?, ?) order by d.name, d.key limit ?`
	sqlFreeKey = `delete from stint_dedupe where name = ? and key = ?`
)

// newKeys takes keys, those that are free.
var newKeys = into("stint_dedupe", "name", "key", "seq", "until", "id").
	then(" on conflict (name, key) do update set seq = excluded.seq, until = excluded.until, id = excluded.id")

// scanEntry reads what comes before entryColumns, and these.
func (s *Session) scanEntry(r sqlexec.Rows, before ...any) (e keyplan.Entry, err error) {
	var id *string
	var until, pending, runAt, ended *int64
	if err := r.Scan(append(before, &e.Seq, &id, &until, &pending, &runAt, &ended)...); err != nil {
		return e, err
	}
	if e.ID = ownID(e.Seq); id != nil {
		e.ID = *id
	}
	e.End = moment(until)
	switch {
	case pending != nil && *pending == delayed && *runAt <= s.now:
		e.State = core.StateWaiting
	case pending != nil:
		e.State = stateName(*pending)
	case ended != nil:
		e.State = stateName(*ended)
	}
	return e, nil
}

func (s *Session) moment() time.Time { return time.UnixMicro(s.now).UTC() }

// entries returns those of the keys of requests that are taken.
func (s *Session) entries(ctx context.Context, reqs []core.EnqueueRequest, at []int) (map[keyplan.Key]keyplan.Entry, error) {
	var keys []keyplan.Key
	var asked [][2]string
	seen := make(map[keyplan.Key]bool)
	for _, i := range at {
		if d := reqs[i].Dedupe; d != nil {
			if k := (keyplan.Key{Name: reqs[i].Name, Key: d.Key}); !seen[k] {
				seen[k] = true
				keys, asked = append(keys, k), append(asked, [2]string{k.Name, k.Key})
			}
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	list, err := texts(asked)
	if err != nil {
		return nil, err
	}
	found := make(map[keyplan.Key]keyplan.Entry, len(keys))
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var n int
		e, err := s.scanEntry(r, &n)
		if err == nil {
			found[keys[n]] = e
		}
		return err
	}, sqlEntries, list)
	return found, err
}

// entry returns who took a key.
func (s *Session) entry(ctx context.Context, name, key string) (e keyplan.Entry, taken bool, err error) {
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) (err error) {
		e, err = s.scanEntry(r)
		taken = err == nil
		return err
	}, sqlEntryOf, name, key)
	return e, taken, err
}

// touch moves a window, or gives a delayed job the content of a request.
func (s *Session) touch(ctx context.Context, t *keyplan.Touch, reqs []core.EnqueueRequest) error {
	if t.TTL > 0 {
		if _, err := s.x.Exec(ctx, sqlMoveWindow, s.windowEnd(t.TTL), t.Key.Name, t.Key.Key); err != nil {
			return err
		}
	}
	if t.Content < 0 {
		return nil
	}
	req := &reqs[t.Content]
	c, err := contentOf(req)
	if err != nil {
		return err
	}
	if _, err := s.x.Exec(ctx, sqlNewBody, append(c, t.Entry.Seq)...); err != nil {
		return err
	}
	place, err := s.take(ctx, 1)
	if err != nil {
		return err
	}
	state, runAt := s.due(req)
	var lane int64
	found, err := sqlexec.One(ctx, s.x, []any{&lane}, sqlNewStand, -req.Priority, state, place, runAt, t.Entry.Seq)
	if err == nil && !found {
		err = errors.New("stint: a delayed job has no row that says so")
	}
	if err != nil {
		return err
	}
	return s.wakeLane(ctx, lane)
}

// windowEnd is null without a TTL.
func (s *Session) windowEnd(ttl time.Duration) any {
	if ttl == 0 {
		return nil
	}
	return core.Dedupe{TTL: ttl}.WindowEnd(s.moment()).UnixMicro()
}

// retake gives a job that is revived its key again, unless another job holds it (Q8).
func (s *Session) retake(ctx context.Context, seq int64, id string) error {
	var name, key string
	keyed, err := sqlexec.One(ctx, s.x, []any{&name, &key}, sqlKeyOf, seq)
	if err != nil || !keyed {
		return err
	}
	e, taken, err := s.entry(ctx, name, key)
	switch {
	case err != nil:
		return err
	case taken && e.Seq == seq:
		if s.moment().Before(e.End) {
			return nil
		}
	case taken && e.Holds(s.moment()):
		return &core.ConflictError{Name: name, Key: key, ID: e.ID}
	}
	own := text(id)
	if id == ownID(seq) {
		own = nil
	}
	_, err = s.x.Exec(ctx, newKeys.one, name, key, seq, nil, own)
	return err
}

// CancelByKey implements core.Admin (Q12).
func (s *Session) CancelByKey(ctx context.Context, name, key string) (bool, error) {
	if !sane(name) || !sane(key) {
		return false, nil
	}
	e, taken, err := s.entry(ctx, name, key)
	if err != nil || !taken || !e.State.Pending() {
		return false, err
	}
	_, err = s.Cancel(ctx, e.ID)
	return err == nil, err
}

// FreeKeys frees the keys that jobs hold which are removed. Pruned jobs keep theirs, but for cancelled ones.
func (s *Session) FreeKeys(ctx context.Context, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	_, err := s.x.Exec(ctx, sqlFreeKeys, numbers(seqs))
	return err
}

// SweepKeys deletes what is dead of the entries after a key, at most limit of which it looks at, and returns the last of
// these, from where to go on; the zero Key when it came to the end.
func (s *Session) SweepKeys(ctx context.Context, after keyplan.Key, limit int) (last keyplan.Key, err error) {
	var dead []keyplan.Key
	looked := 0
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		e, err := s.scanEntry(r, &last.Name, &last.Key)
		if err == nil && e.Dead(s.moment()) {
			dead = append(dead, last)
		}
		looked++
		return err
	}, sqlKeysAfter, after.Name, after.Key, limit)
	for _, k := range dead {
		if err == nil {
			_, err = s.x.Exec(ctx, sqlFreeKey, k.Name, k.Key)
		}
	}
	if err != nil || looked < limit {
		return keyplan.Key{}, err
	}
	return last, nil
}
