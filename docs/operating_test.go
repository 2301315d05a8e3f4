// Package docs_test runs what the pages of this folder tell people to run.
package docs_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/internal/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var fence = regexp.MustCompile("(?ms)^```sql ?([a-z-]*)\n(.*?)^```$")

// blocks are the statements of operating.md by what follows "sql" on their fence, "" for queries.
func blocks(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("operating.md")
	require.NoError(t, err)
	found := make(map[string][]string)
	for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
		found[m[1]] = append(found[m[1]], m[2])
	}
	require.Equal(t, strings.Count(string(page), "```sql"), len(found[""])+len(found["setup"])+len(found["by-hand"])+
		len(found["change"])+len(found["sqlite"]), "a fence that nothing runs")
	return found
}

// postgres is a server of the test's own, since roles are the whole server's, with some life in its schema.
func postgres(t *testing.T) *pgxpool.Pool {
	t.Helper()
	server := pgtest.Start(t)
	pool, err := pgxpool.New(t.Context(), server.DSN())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// as is a pool of another role, whose password it sets.
func as(t *testing.T, pool *pgxpool.Pool, role string) *pgxpool.Pool {
	t.Helper()
	ctx := context.Background()
	_, err := pool.Exec(ctx, "alter role "+role+" password 'secret'")
	require.NoError(t, err)
	u, err := url.Parse(pool.Config().ConnString())
	require.NoError(t, err)
	u.User = url.UserPassword(role, "secret")
	other, err := pgxpool.New(ctx, u.String())
	require.NoError(t, err)
	t.Cleanup(other.Close)
	return other
}

func open(t *testing.T, pool *pgxpool.Pool) *pgxstore.Store {
	t.Helper()
	s, err := pgxstore.New(pool, pgxstore.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// script runs statements as they are.
func script(t *testing.T, pool *pgxpool.Pool, text string) {
	t.Helper()
	err := pool.AcquireFunc(context.Background(), func(c *pgxpool.Conn) error {
		return c.Conn().PgConn().Exec(context.Background(), text).Close()
	})
	require.NoError(t, err, text)
}

// store is what every store of this module can do.
type store interface {
	core.Store
	core.Inspector
	core.Admin
	core.Scheduler
}

// live fills a store with jobs in every state, so that every query has something to show.
func live(t *testing.T, s store) {
	t.Helper()
	ctx := t.Context()
	enqueue := func(id, name string, delay time.Duration) {
		t.Helper()
		res, err := s.Enqueue(ctx, []core.EnqueueRequest{{ID: id, Queue: "mail", Name: name, Payload: []byte(`{"to":"ada"}`), Delay: delay,
			MaxAttempts: 3, Backoff: core.DefaultBackoff(), Metadata: map[string]string{"tenant": "acme"}}})
		require.NoError(t, err)
		require.NoError(t, res[0].Err)
	}
	claim := func(lease time.Duration) core.Lease {
		t.Helper()
		token := core.NewToken()
		got, err := s.Claim(ctx, core.ClaimRequest{Token: token, Lease: lease, Worker: "worker-1",
			Wants: []core.Want{{Queue: "mail", Names: []string{"send-welcome"}, Limit: 1}}})
		require.NoError(t, err)
		require.Len(t, got.Jobs, 1)
		return core.Lease{ID: got.Jobs[0].ID, Token: token, Ref: got.Jobs[0].Ref}
	}
	end := func(a core.Ack) {
		t.Helper()
		a.Lease = claim(time.Hour)
		res, err := s.Ack(ctx, []core.Ack{a})
		require.NoError(t, err)
		require.NoError(t, res[0].Err)
	}
	broken := &core.Failure{Type: "*net.OpError", Message: "connection refused"}
	enqueue("send-welcome:ada", "send-welcome", 0)
	end(core.Ack{Outcome: core.OutcomeRetry, Failure: broken, Delay: time.Hour})
	require.NoError(t, s.Promote(ctx, "send-welcome:ada"))
	end(core.Ack{Outcome: core.OutcomeComplete})
	for range 3 {
		enqueue("", "send-welcome", 0)
		end(core.Ack{Outcome: core.OutcomeComplete})
	}
	enqueue("", "send-welcome", 0)
	end(core.Ack{Outcome: core.OutcomeFail, Failure: broken})
	enqueue("", "send-welcome", 0)
	end(core.Ack{Outcome: core.OutcomeRetry, Failure: broken, Delay: time.Hour})
	enqueue("", "send-welcome", 0) // stalls
	claim(0)
	taken, err := s.RecoverStalled(ctx, core.RecoverRequest{MaxStalls: 3})
	require.NoError(t, err)
	require.Len(t, taken, 1)
	enqueue("", "send-welcome", 0) // active
	claim(time.Hour)
	enqueue("", "nobody-knows", 0) // stranded
	enqueue("", "send-welcome", 2*time.Hour)
	require.NoError(t, s.PutSchedule(ctx, core.ScheduleSpec{Key: "nightly report", Cron: "0 2 * * *", Request: core.EnqueueRequest{
		Queue: "reports", Name: "report", MaxAttempts: 3}}, time.Now().Add(-time.Hour))) // and nobody plans
}

// TestQueries: every query runs, in a transaction that only reads, and has something to show.
func TestQueries(t *testing.T) {
	pool := postgres(t)
	require.NoError(t, pgxstore.Migrate(t.Context(), pool, ""))
	live(t, open(t, pool))
	queries := blocks(t)[""]
	require.Greater(t, len(queries), 20)
	for _, query := range queries {
		rows := 0
		err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			r, err := tx.Query(t.Context(), query)
			if err != nil {
				return err
			}
			for r.Next() {
				rows++
			}
			return r.Err()
		})
		require.NoError(t, err, query)
		require.NotZero(t, rows, "shows nothing: %s", query)
	}
}

// TestDeleting: the statement leaves nothing of the jobs, and totals that are right.
func TestDeleting(t *testing.T) {
	ctx := t.Context()
	pool := postgres(t)
	require.NoError(t, pgxstore.Migrate(ctx, pool, ""))
	s := open(t, pool)
	live(t, s)
	before, err := s.Counts(ctx, "mail")
	require.NoError(t, err)
	require.EqualValues(t, 4, before[core.StateCompleted])
	change := blocks(t)["change"]
	require.Len(t, change, 1)
	remove := func() (n int) {
		t.Helper()
		require.NoError(t, pool.QueryRow(ctx, change[0]).Scan(&n))
		return n
	}
	require.Zero(t, remove(), "nothing is old enough")
	_, err = pool.Exec(ctx, "update stint.finished set finished_at = finished_at - interval '31 days'")
	require.NoError(t, err)
	require.Equal(t, 4, remove())
	require.Zero(t, remove())

	after, err := s.Counts(ctx, "mail")
	require.NoError(t, err)
	before[core.StateCompleted] = 0
	require.Equal(t, before, after)
	_, err = s.Get(ctx, "send-welcome:ada")
	require.ErrorIs(t, err, core.ErrNotFound)
	var orphans int
	require.NoError(t, pool.QueryRow(ctx, `select (select count(*) from stint.runs r where not exists (select from stint.jobs j where j.seq = r.seq))
		+ (select count(*) from stint.jobs j where not exists (select from stint.job_status v where v.id = coalesce(j.id, '#' || j.seq)))`).Scan(&orphans))
	require.Zero(t, orphans)
}

// TestPrivileges: with the grants of the page each role can do what it is for, and no more.
func TestPrivileges(t *testing.T) {
	ctx := t.Context()
	pool := postgres(t)
	require.NoError(t, pgxstore.Migrate(ctx, pool, ""))
	for _, text := range blocks(t)["setup"] {
		script(t, pool, text)
	}
	denied := func(err error) {
		t.Helper()
		refused, ok := errors.AsType[*pgconn.PgError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "42501", refused.Code, "%v", err)
	}

	workers := as(t, pool, "stint_worker")
	s := open(t, workers)
	live(t, s)
	require.NoError(t, s.Pause(ctx, "mail"))
	require.NoError(t, s.Resume(ctx, "mail"))
	task := core.NewTask[int]("count", core.JobOptions[int]{Queue: "numbers"})
	e, err := task.Enqueue(ctx, s, 1)
	require.NoError(t, err)
	w, err := core.NewWorker(s, core.WorkerOptions{})
	require.NoError(t, err)
	task.Handle(w, func(context.Context, int) error { return nil })
	ran, err := w.Drain(ctx, core.DrainOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, ran)
	removed, err := s.Remove(ctx, e.ID)
	require.NoError(t, err)
	require.True(t, removed)
	require.NoError(t, s.Migrate(ctx), "nothing is left to do")
	_, err = workers.Exec(ctx, "update stint.schema_version set version = 99")
	denied(err)

	producers := as(t, pool, "stint_producer")
	p := open(t, producers)
	request := core.EnqueueRequest{ID: "one", Queue: "new queue", Name: "count", MaxAttempts: 1}
	for _, delay := range []time.Duration{0, time.Hour} {
		request.Delay = delay
		for _, duplicate := range []bool{false, true} {
			res, err := p.Enqueue(ctx, []core.EnqueueRequest{request})
			require.NoError(t, err)
			require.Equal(t, duplicate, res[0].Duplicate)
		}
		request.ID += "+"
	}
	require.NoError(t, pgx.BeginFunc(ctx, producers, func(tx pgx.Tx) error {
		_, err := task.Enqueue(ctx, p.WithTx(tx), 2)
		return err
	}))
	_, err = p.Claim(ctx, core.ClaimRequest{Token: core.NewToken(), Lease: time.Hour, Wants: []core.Want{{Queue: "numbers", Names: []string{"count"}, Limit: 1}}})
	denied(err)
	_, err = p.Cancel(ctx, "one")
	denied(err)

	readers := as(t, pool, "stint_reader")
	var jobs int
	require.NoError(t, readers.QueryRow(ctx, "select count(*) from stint.job_status").Scan(&jobs))
	require.NotZero(t, jobs)
	require.ErrorContains(t, readers.QueryRow(ctx, "select count(payload) from stint.jobs").Scan(&jobs), "42501")
}

// TestMigrationsByHand: files that another tool ran, with the page's statements around them, make a schema that the
// store takes.
func TestMigrationsByHand(t *testing.T) {
	ctx := t.Context()
	pool := postgres(t)
	text := blocks(t)["by-hand"]
	require.Len(t, text, 1)
	by := text[0]
	require.NoError(t, fs.WalkDir(pgxstore.Migrations(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := fs.ReadFile(pgxstore.Migrations(), path)
		require.Equal(t, 1, strings.Count(by, "-- after "+path+"\n"), "the page does not know of %s", path)
		by = strings.Replace(by, "-- after "+path+"\n", string(file)+"\n", 1)
		return err
	}))
	script(t, pool, by+"; reset search_path")
	s := open(t, pool)
	live(t, s)
	require.NoError(t, s.Migrate(ctx), "fills the tables once")
	for _, table := range []string{"jobs", "ready", "delayed", "leases", "runs", "finished"} {
		var pages int
		require.NoError(t, pool.QueryRow(ctx, "select pg_relation_size('stint."+table+"') / 8192").Scan(&pages))
		require.Positive(t, pages, table)
	}
}

// TestSQLite: the statements for SQLite run on a store's file.
func TestSQLite(t *testing.T) {
	s, err := bunstore.OpenSQLite(filepath.Join(t.TempDir(), "jobs.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	live(t, s)
	_, err = s.DB().Exec("analyze")
	require.NoError(t, err)
	found := 0
	for _, block := range blocks(t)["sqlite"] {
		for statement := range strings.SplitSeq(block, ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			found++
			if strings.HasPrefix(statement, "delete") {
				_, err := s.DB().Exec(statement)
				require.NoError(t, err)
				continue
			}
			require.NotZero(t, count(t, s.DB().DB, statement), "shows nothing: %s", statement)
		}
	}
	require.Equal(t, 7, found)
}

func count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err, query)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		n++
	}
	require.NoError(t, rows.Err())
	return n
}
