package robust_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/sqlexec"
)

// counted is what a test ended with.
type counted struct {
	Jobs, Runs int // runs that handlers began
	Stalls     int // runs whose lease ran out and was taken back
	Overlaps   int // runs that went on beside a later one, their lease over
}

// verify counts every job, run and lease once all is over: jobs jobs, each completed, each once, and a second run
// only after a lease that had run out.
func (e *env) verify(s *store, jobs int) counted {
	e.t.Helper()
	ctx := context.Background()
	counts, err := s.Counts(ctx, "")
	require.NoError(e.t, err)
	want := map[core.State]int64{}
	for _, state := range core.States() {
		want[state] = 0
	}
	want[core.StateCompleted] = int64(jobs)
	require.Equal(e.t, want, counts)
	e.sound()
	for what, ref := range e.findings() {
		e.t.Errorf("%s: job %d; %s", what, ref, e.story(ref))
	}
	stalls := e.ledgers(s, jobs)
	c := counted{Jobs: jobs, Runs: e.begun(), Stalls: stalls}
	c.Overlaps = e.number(fmt.Sprintf(`select count(*) from %[1]s.runs a join %[1]s.runs b on b.ref = a.ref and b.fence > a.fence
		where a.ended > b.started`, e.notes))
	require.LessOrEqual(e.t, c.Runs, c.Jobs+c.Stalls, "runs that no stall explains")
	return c
}

// sound holds the store to its own invariants.
func (e *env) sound() {
	e.t.Helper()
	require.NoError(e.t, pgsql.NewSchema(e.schema).CheckInvariants(context.Background(), onPgx{e.pool}))
}

// broken are queries that find a job where a promise was broken.
func (e *env) broken() map[string]string {
	queries := map[string]string{
		"a job that never ran": `select j.seq from %[2]s.jobs j where not exists (select from %[1]s.runs r where r.ref = j.seq)`,
		"a job completed by a run that did not end": `select f.seq from %[2]s.finished f join %[1]s.runs r on r.ref = f.seq and r.token = f.token
			where f.state = 5 and r.ended is null`,
		"a job completed under a lease that no run had": `select f.seq from %[2]s.finished f
			where f.state = 5 and not exists (select from %[1]s.runs r where r.ref = f.seq and r.token = f.token)`,
		"two leases at once": `select ref from (
				select ref, gone, lag(gone) over (partition by ref order by at, gone) as before from %[1]s.leases) l
			where gone = coalesce(before, true)`,
		"a lease that was taken back before it had run out": `select g.ref from %[1]s.leases g where g.gone and g.until > g.at and exists (
				select from %[2]s.runs r where r.seq = g.ref and r.token = g.token and r.outcome = 'stalled')`,
		"a second run while the first had its lease": `select a.ref from %[1]s.runs a
			join %[1]s.runs b on b.ref = a.ref and b.fence > a.fence
			join %[1]s.leases g on g.gone and g.ref = a.ref and g.token = a.token
			where b.started < least(g.until, coalesce(a.ended, g.until))`,
		"a second run after a lease that did not run out": `select a.ref from %[1]s.runs a
			where exists (select from %[1]s.runs b where b.ref = a.ref and b.fence > a.fence)
				and not exists (select from %[2]s.runs r where r.seq = a.ref and r.token = a.token and r.outcome = 'stalled')`,
	}
	for what, query := range queries {
		queries[what] = fmt.Sprintf(query, e.notes, e.schema) + " limit 1"
	}
	return queries
}

// findings are the promises that were broken, each with a job.
func (e *env) findings() map[string]int64 {
	e.t.Helper()
	found := make(map[string]int64)
	for what, query := range e.broken() {
		var ref int64
		err := e.pool.QueryRow(context.Background(), query).Scan(&ref)
		if err == nil {
			found[what] = ref
			continue
		}
		require.ErrorIs(e.t, err, pgx.ErrNoRows, what)
	}
	return found
}

// ledgers reads all jobs through the store: each has an end of its own, and stalls before it. It returns how many.
func (e *env) ledgers(s *store, jobs int) (stalls int) {
	e.t.Helper()
	ctx := context.Background()
	seen := 0
	for q := (core.Query{Limit: core.MaxListLimit}); ; {
		page, err := s.List(ctx, q)
		require.NoError(e.t, err)
		for _, job := range page.Jobs {
			seen++
			require.Equal(e.t, core.StateCompleted, job.State)
			require.Equal(e.t, job.Stalls+1, job.Runs, "job %s: its ledger has its stalls and its end", job.ID)
			stalls += job.Stalls
			if job.Runs == 1 {
				continue
			}
			ledger, err := s.Attempts(ctx, job.ID)
			require.NoError(e.t, err)
			for i, entry := range ledger {
				want := core.OutcomeStalled
				if i == len(ledger)-1 {
					want = core.OutcomeComplete
				}
				require.Equal(e.t, want, entry.Outcome, "job %s, entry %d", job.ID, i+1)
			}
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			require.Equal(e.t, jobs, seen)
			return stalls
		}
	}
}

// story is what is known of a job.
func (e *env) story(ref int64) string {
	var text string
	err := e.pool.QueryRow(context.Background(), fmt.Sprintf(`select string_agg(line, E'\n' order by at) from (
		select started as at, started || ' run ' || token || ' fence ' || fence || ' pid ' || pid || ' until ' || coalesce(ended::text, '-') as line
			from %[1]s.runs where ref = $1
		union all select at, at || case when gone then ' gone ' else ' lease ' end || token || ' until ' || until from %[1]s.leases where ref = $1
		union all select finished_at, finished_at || ' ' || outcome || ' ' || coalesce(token::text, '-') from %[2]s.runs where seq = $1
		union all select finished_at, finished_at || ' ' || outcome || ' ' || coalesce(token::text, '-') from %[2]s.finished where seq = $1
		) lines`, e.notes, e.schema), ref).Scan(&text)
	if err != nil {
		return err.Error()
	}
	return "\n" + text
}

// onPgx lends the test's own connections to package pgsql.
type onPgx struct {
	q interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
}

func (x onPgx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := x.q.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (x onPgx) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	rows, err := x.q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgxRows{rows}, nil
}

type pgxRows struct{ pgx.Rows }

func (r pgxRows) Close() error {
	r.Rows.Close()
	return r.Err()
}
