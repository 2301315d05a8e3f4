package litesql

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/internal/stdsql"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// database is a migrated file.
func database(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.Join(t.TempDir(), "jobs.db")}).EscapedPath()+
		"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=foreign_keys(1)&_pragma=synchronous(off)")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	ctx := context.Background()
	within(t, db, func(x sqlexec.Executor) { require.NoError(t, Migrate(ctx, x)) })
	return db
}

// within runs f in a transaction and commits it.
func within(t testing.TB, db *sql.DB, f func(sqlexec.Executor)) {
	t.Helper()
	tx, err := db.Begin()
	require.NoError(t, err)
	f(stdsql.In(tx))
	require.NoError(t, tx.Commit())
}

func request(id, name string) core.EnqueueRequest {
	return core.EnqueueRequest{ID: id, Name: name, Queue: "q", Payload: []byte("p"), MaxAttempts: 3, Backoff: core.DefaultBackoff()}
}

func nightly(key string) core.ScheduleSpec {
	return core.ScheduleSpec{Key: key, Cron: "0 2 * * *", Overlap: core.OverlapSkip, Request: request("", "a")}
}

func wants(limit int, names ...string) []core.Want {
	return []core.Want{{Queue: "q", Names: names, Limit: limit}}
}

// recorder remembers the texts that it passes on.
type recorder struct {
	sqlexec.Executor
	seen map[string]int
}

func (r recorder) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	r.seen[text]++
	return r.Executor.Exec(ctx, text, args...)
}

func (r recorder) Query(ctx context.Context, text string, args ...any) (sqlexec.Rows, error) {
	r.seen[text]++
	return r.Executor.Query(ctx, text, args...)
}

// everything goes through every path that workers and producers take, some of them twice.
func everything(t *testing.T, db *sql.DB, wrap func(sqlexec.Executor) sqlexec.Executor) {
	t.Helper()
	ctx := context.Background()
	now := noon
	step := func(f func(s *Session)) {
		t.Helper()
		within(t, db, func(x sqlexec.Executor) { f(NewSession(wrap(x), now, core.Limits{})) })
	}
	claim := func(limit int) (jobs []core.Record, token string) {
		t.Helper()
		token = core.NewToken()
		step(func(s *Session) {
			c, err := s.Claim(ctx, core.ClaimRequest{Wants: wants(limit, "a", "b", "nobody"), Token: token, Lease: time.Minute, Worker: "w"})
			require.NoError(t, err)
			jobs = c.Jobs
		})
		return jobs, token
	}
	ack := func(token string, outcome core.Outcome, jobs ...core.Record) {
		t.Helper()
		acks := make([]core.Ack, len(jobs))
		for i, j := range jobs {
			acks[i] = core.Ack{Lease: core.Lease{ID: j.ID, Token: token}, Outcome: outcome, Delay: time.Second}
		}
		step(func(s *Session) {
			res, err := s.Ack(ctx, acks)
			require.NoError(t, err)
			for _, r := range res {
				require.NoError(t, r.Err)
			}
		})
	}
	step(func(s *Session) {
		reqs := make([]core.EnqueueRequest, 3*bulkRows+1)
		for i := range reqs {
			reqs[i] = request("", "a")
		}
		late := request("late", "b")
		late.Delay = time.Second
		res, err := s.Enqueue(ctx, append(reqs, request("named", "b"), request("named", "b"), late))
		require.NoError(t, err)
		require.True(t, res[len(res)-2].Duplicate)
	})
	jobs, token := claim(2 * bulkRows)
	ack(token, core.OutcomeComplete, jobs[:bulkRows+1]...)
	ack(token, core.OutcomeComplete, jobs[0])
	ack(token, core.OutcomeRetry, jobs[bulkRows+1:2*bulkRows-3]...)
	ack(token, core.OutcomeRelease, jobs[2*bulkRows-1])
	ack(token, core.OutcomeFail, jobs[2*bulkRows-2])
	step(func(s *Session) {
		_, err := s.Extend(ctx, []core.Lease{{ID: jobs[2*bulkRows-3].ID, Token: token}}, time.Minute)
		require.NoError(t, err)
		_, err = s.Cancel(ctx, jobs[2*bulkRows-3].ID)
		require.NoError(t, err)
		require.NoError(t, s.Retry(ctx, jobs[2*bulkRows-2].ID))
		_, err = s.Claim(ctx, core.ClaimRequest{Token: token})
		require.NoError(t, err)
	})
	now = now.Add(5 * time.Second)
	claim(2 * bulkRows)
	now = now.Add(time.Hour)
	step(func(s *Session) {
		got, err := s.RecoverStalled(ctx, core.RecoverRequest{MaxStalls: 3})
		require.NoError(t, err)
		require.NotEmpty(t, got)
	})
	within(t, db, func(x sqlexec.Executor) { // an operator's, as are the other verbs about schedules
		require.NoError(t, NewSession(x, now, core.Limits{}).PutSchedule(ctx, nightly("k"), now))
	})
	step(func(s *Session) {
		ticked, err := s.TickSchedule(ctx, core.Tick{Key: "k", Expect: now, Err: "why"})
		require.NoError(t, err)
		require.True(t, ticked)
		for _, at := range []time.Time{now, now.Add(time.Hour)} {
			ticked, err = s.TickSchedule(ctx, core.Tick{Key: "k", Expect: at, Slots: []time.Time{at}, Passed: at, Next: at.Add(time.Hour)})
			require.NoError(t, err)
			require.True(t, ticked)
		}
	})
	now = now.Add(time.Hour)
	claim(3)
	step(func(s *Session) {
		completed := core.KeepRule{Age: time.Minute, Count: bulkRows}
		expired, err := s.Expired(ctx, core.PruneRequest{Default: core.Keep{Completed: completed}})
		require.NoError(t, err)
		require.Len(t, expired, 1)
		n, err := s.Prune(ctx, expired[0], 2)
		require.NoError(t, err)
		require.Equal(t, 2, n)
	})
	step(func(s *Session) {
		_, _, err := s.News(ctx, 0)
		require.NoError(t, err)
		require.NoError(t, CheckInvariants(ctx, s.x))
	})
}
