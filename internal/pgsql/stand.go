package pgsql

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// Moving a job is one statement, so every statement sees it in exactly one place. One that finds it gone from there
// must look again, with a new statement, and never says that it is not found.

// In delayed and finished a number is looked up as a range of one, in order: of the indexes only the one that begins with
// it can answer that without a sort. Where it is asked for as equal, statistics of a day on which a table was empty make
// another, in which it comes last, look as good, and that would be read from end to end. Several numbers are looked up one by one: a search for an array counts
// as one per element, which a walk does not.
const (
	atDelayed  = `ctid = (select ctid from {}.delayed where seq between $2::bigint and $2::bigint order by seq limit 1)`
	atFinished = `ctid = (select ctid from {}.finished where seq between $2::bigint and $2::bigint order by seq limit 1)`
)

// zones is every place in which a job can be, one row in all per job, beside j. A delayed job that is due reads as
// waiting (Q27).
const zones = `cross join lateral (
		select 1 as state, false as cancel, place, run_at, attempts, stalls, snoozes, runs, fence, null::timestamptz as claimed_at,
			null::timestamptz as until, null::text as worker, null::timestamptz as finished_at, null::bytea as result, null::jsonb as failure
			from {}.ready where seq = j.seq
		union all
		(select case when run_at <= ` + since + ` then 1 else 2 end, false, null, run_at, attempts, stalls, snoozes, runs, fence, null,
			null, null, null, null, null from {}.delayed where seq between j.seq and j.seq order by seq limit 1)
		union all
		select 3, cancel, place, run_at, attempts, stalls, snoozes, runs, fence, claimed_at,
			until, worker, null, null, null from {}.leases where seq = j.seq
		union all
		(select state, false, null, run_at, attempts, stalls, snoozes, runs, fence, started_at,
			null, worker, finished_at, result, failure from {}.finished where seq between j.seq and j.seq order by seq limit 1)
		limit 1) w`

// Which zone a look found. Due jobs wait, and are still among the delayed.
const sqlLook = `select w.state, w.place is null and w.state < 3, w.place, w.run_at, w.until, w.worker, j.queue, j.name, j.dedupe_key, j.priority, (select ` + since + `)
	from {}.jobs j ` + zones + ` where j.seq = $2::bigint`

// standing is where a job stands.
type standing struct {
	seq       int64
	state     int64 // as the outside sees it
	inDelayed bool
	place     *int64
	runAt     time.Time
	until     *time.Time
	worker    *string
	queue     string
	name      string
	key       *string // its dedupe key
	priority  int64
	now       time.Time
}

// look returns how a job stands, or core.ErrNotFound.
func (s *Session) look(ctx context.Context, id string) (*standing, error) {
	seq, found, err := s.find(ctx, id)
	if err == nil && found {
		st := &standing{seq: seq}
		found, err = sqlexec.One(ctx, s.x, []any{&st.state, &st.inDelayed, &st.place, &st.runAt, &st.until, &st.worker,
			&st.queue, &st.name, &st.key, &st.priority, &st.now}, sqlLook, s.now, seq)
		if err == nil && found {
			return st, nil
		}
	}
	if err == nil {
		err = core.ErrNotFound
	}
	return nil, err
}

// change looks where a job stands and lets try act on that, until try says that it did: a job that moves in between
// is followed (Q8).
func (s *Session) change(ctx context.Context, id string, try func(*standing) (done bool, err error)) error {
	for range tries {
		st, err := s.look(ctx, id)
		if err != nil {
			return err
		}
		if done, err := try(st); err != nil || done {
			return err
		}
	}
	return errMoving
}
