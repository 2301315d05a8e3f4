package robust_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgtest"
)

// env is a schema with a store's tables, and what the test knows beside it: the marks of runs and the comings and
// goings of leases, in a schema of their own.
type env struct {
	t      *testing.T
	d      driver
	at     target // straight to the server
	schema string
	notes  string // schema of the two tables
	pool   *pgxpool.Pool
}

// runsTable has a row for each run that a handler began.
func (e *env) runsTable() string { return e.notes + ".runs" }

// newEnv makes one on a server, at the address and with the user that the stores use.
func newEnv(t *testing.T, d driver, at target) *env {
	t.Helper()
	ctx := context.Background()
	// Compiling the queries that look for broken promises takes longer than running them.
	pool, err := pgxpool.New(ctx, at.with(map[string]string{"jit": "off"}).dsn())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	e := &env{t: t, d: d, at: at, pool: pool}
	drop := func(ctx context.Context, sql string) error {
		_, err := pool.Exec(ctx, sql)
		return err
	}
	e.schema, e.notes = pgtest.Schema(t, drop), pgtest.Schema(t, drop)
	require.NoError(t, d.migrate(ctx, at, e.schema))
	_, err = pool.Exec(ctx, fmt.Sprintf(noteTables, e.notes, e.schema), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	return e
}

// sharedEnv makes one on the database that all tests share.
func sharedEnv(t *testing.T, d driver) *env {
	t.Helper()
	return newEnv(t, d, targetOf(t, pgtest.DSN(t)))
}

// emptied is the same schemas for another test, without a row.
func (e *env) emptied(t *testing.T) *env {
	t.Helper()
	again := *e
	again.t = t
	var tables string
	again.scan([]any{&tables}, `select string_agg(format('delete from %I.%I', schemaname, tablename), ';') from pg_tables
		where schemaname = any($1) and tablename <> 'schema_version'`, []string{e.schema, e.notes})
	_, err := e.pool.Exec(context.Background(), tables, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	return &again
}

// noteTables are tables without any setting that a test changes: %[1]s, and triggers on the store's schema %[2]s.
const noteTables = `
	create schema %[1]s;
	create table %[1]s.runs (ref bigint, token uuid, job text, fence bigint, n bigint, pid int, started timestamptz, ended timestamptz,
		primary key (ref, token));
	create table %[1]s.leases (ref bigint, token uuid, until timestamptz, at timestamptz default clock_timestamp(), gone boolean);
	create function %[1]s.note() returns trigger language plpgsql as $$
		begin
			if tg_op = 'INSERT' then
				insert into %[1]s.leases (ref, token, until, gone) values (new.seq, new.token, new.until, false);
			else
				insert into %[1]s.leases (ref, token, until, gone) values (old.seq, old.token, old.until, true);
			end if;
			return null;
		end $$;
	create trigger stint_test_note after insert or delete on %[2]s.leases for each row execute function %[1]s.note();`

// open returns a store that closes with the test.
func (e *env) open(at target) *store {
	e.t.Helper()
	return e.openWith(openOptions{at: at})
}

func (e *env) openWith(o openOptions) *store {
	e.t.Helper()
	o.schema = e.schema
	s, err := e.d.open(context.Background(), o)
	require.NoError(e.t, err)
	e.t.Cleanup(func() { require.NoError(e.t, s.close()) })
	return s
}

// requests are n jobs of a queue with ids of their own, numbered from first.
func requests(t *testing.T, queue string, first, n int, opts ...core.EnqueueOption) []core.EnqueueRequest {
	t.Helper()
	reqs := make([]core.EnqueueRequest, n)
	for i := range reqs {
		p := payload{N: first + i}
		req, err := kind(queue).Request(context.Background(), p, append(opts, core.ID(jobID(p.N)))...)
		require.NoError(t, err)
		reqs[i] = req
	}
	return reqs
}

func jobID(n int) string { return fmt.Sprintf("job-%d", n) }

// enqueue stores requests in batches of 500.
func enqueue(t *testing.T, s core.Enqueuer, reqs []core.EnqueueRequest) {
	t.Helper()
	for len(reqs) > 0 {
		n := min(500, len(reqs))
		res, err := s.Enqueue(context.Background(), reqs[:n])
		require.NoError(t, err)
		for _, r := range res {
			require.NoError(t, r.Err)
		}
		reqs = reqs[n:]
	}
}

// scan reads one row of a query of the test's own.
func (e *env) scan(dest []any, sql string, args ...any) {
	e.t.Helper()
	require.NoError(e.t, e.pool.QueryRow(context.Background(), sql, args...).Scan(dest...), sql)
}

// number is the one number that a query answers.
func (e *env) number(sql string, args ...any) int {
	e.t.Helper()
	var n int
	e.scan([]any{&n}, sql, args...)
	return n
}

// soon waits until a condition holds.
func (e *env) soon(what string, within time.Duration, holds func() bool) {
	e.t.Helper()
	require.Eventually(e.t, holds, within, 10*time.Millisecond, what)
}

// begun is how many runs have begun.
func (e *env) begun() int { return e.number("select count(*) from " + e.runsTable()) }

// completed is how many jobs are, or -1 while the server can't say.
func (e *env) completed() int {
	var n int
	err := e.pool.QueryRow(context.Background(), "select count(*) from "+e.schema+".finished where state = 5").Scan(&n)
	if err != nil {
		return -1
	}
	return n
}

// finish waits until n jobs are completed.
func (e *env) finish(n int, within time.Duration) {
	e.t.Helper()
	end := time.Now().Add(within)
	for done := -1; done != n; {
		if time.Now().After(end) {
			e.t.Fatalf("%d of %d jobs completed within %v; %s", done, n, within, e.standing())
		}
		pause(20 * time.Millisecond)
		done = e.completed()
	}
}

// standing says where the jobs are that did not finish.
func (e *env) standing() string {
	var ready, delayed, leases, ended int
	err := e.pool.QueryRow(context.Background(), fmt.Sprintf(`select (select count(*) from %[1]s.ready), (select count(*) from %[1]s.delayed),
		(select count(*) from %[1]s.leases), (select count(*) from %[1]s.leases where until < clock_timestamp())`, e.schema)).
		Scan(&ready, &delayed, &leases, &ended)
	return fmt.Sprintf("ready %d, delayed %d, leased %d (%d of these ended), error %v", ready, delayed, leases, ended, err)
}
