package pgxstore_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/internal/longlog"
	"github.com/stintmq/stint/internal/pgstore/pgstoretest"
	"github.com/stintmq/stint/internal/pgtest"
	"github.com/stintmq/stint/journal"
)

// TestPageIsJudgedByWhatWasKnown: while a page is on its way somebody else may learn that all below a seq is there.
// The page does not know of it: its snapshot is older (J9).
func TestPageIsJudgedByWhatWasKnown(t *testing.T) {
	kit, backend := brokenKit(t)
	l := kit.Log(t)
	ctx := t.Context()
	start := l.Add("a")
	require.Equal(t, []int64{start}, l.Read(0))
	open := l.Begin()
	late := l.Append(open, "b")
	next := l.Add("c")
	require.Empty(t, l.Read(start)) // the barrier

	// The page has its snapshot, and waits for a lock before it returns.
	gate := l.Begin()
	l.Exec(gate, "select pg_advisory_xact_lock(4711)")
	slow := pgstoretest.Fault{In: "pg_postmaster_start_time(), pg_is_in_recovery()", Edits: edits{
		{"from {}.events where seq > $1::bigint", "from {}.events where seq > $1::bigint and (select pg_advisory_xact_lock_shared(4711) is not null)"}}}
	backend.Rewrite = slow.Rewrite
	reader := l.Begin()
	answer := make(chan []int64, 1)
	go func() {
		seqs, err := l.ReadIn(ctx, reader, start)
		if err != nil {
			t.Error(err)
		}
		answer <- seqs
	}()
	require.Eventually(t, func() bool {
		return kit.Numbers(t, "select count(*) from pg_locks where locktype = 'advisory' and not granted")[0] == 1
	}, 5*time.Second, time.Millisecond)
	backend.Rewrite = nil
	require.NoError(t, open.Commit())
	l.Soon(start, late, next) // somebody else learns it
	require.NoError(t, gate.Commit())
	if got := <-answer; len(got) > 0 { // it may have looked again
		require.Equal(t, []int64{late, next}, got, "it has not seen %d", late)
	}
	slow.Check(t)
}

// TestWithoutPgLocks: a database in which nobody may look at locks. Readers wait for more than they need to, and miss
// nothing.
func TestWithoutPgLocks(t *testing.T) {
	kit, backend := brokenKit(t)
	closed := pgstoretest.Fault{In: "has_table_privilege('pg_catalog.pg_locks'", Edits: edits{{"select has_table", "select false and has_table"}}}
	backend.Rewrite = closed.Rewrite
	for _, name := range []string{"JournalLockedFirst", "JournalOwnEvents", "JournalUnderLoad"} {
		t.Run(name, func(t *testing.T) { kit.Case(t, name) })
	}
	closed.Check(t)
}

// onServer is a kit on a server of the test's own.
func onServer(t *testing.T, server *pgtest.Server) (*pgstoretest.Kit, func(sql string) error) {
	kit := pgstoretest.ForTest(t, func(testing.TB) (*pgstoretest.DB, error) {
		return connectTo(server.DSN(), pgx.QueryExecModeCacheStatement, pgxstore.Options{})
	})
	return kit, func(sql string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, server.DSN())
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }() // the statement's error says it
		_, err = conn.Exec(ctx, sql)
		return err
	}
}

// TestJournalOnServer is what needs a server of its own: prepared transactions, a user without rights, and a crash.
func TestJournalOnServer(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_prepared_transactions": "5"}})
	kit, exec := onServer(t, server)
	l := kit.Log(t)
	start := l.Add("a")

	t.Run("prepared", func(t *testing.T) {
		tx := l.Begin()
		late := l.Append(tx, "b")
		next := l.Add("c")
		require.Empty(t, l.Read(start), "before it is prepared")
		l.Exec(tx, "prepare transaction 'stint'")
		_ = tx.Rollback() // it is nobody's any more
		require.Empty(t, l.Read(start))
		other := kit.LogOf(t, kit.OpenAt(t, l.Schema(), nil))
		require.Empty(t, other.Read(start), "who saw it only afterwards")
		require.Positive(t, oldest(t, other))
		require.NoError(t, server.Stop(pgtest.Immediate))
		require.NoError(t, server.Restart())
		awake(t, l)
		require.Empty(t, l.Read(start), "it outlives the server")
		require.Positive(t, oldest(t, l))
		require.NoError(t, exec("commit prepared 'stint'"))
		l.Soon(start, late, next)
		start = next
	})

	t.Run("closed to the user", func(t *testing.T) {
		schema := l.Schema()
		require.NoError(t, exec(`revoke select on pg_locks from public; create role app login password 'app';
			grant usage on schema "`+schema+`" to app; grant all on all tables in schema "`+schema+`" to app;
			grant all on all sequences in schema "`+schema+`" to app`))
		cfg, err := pgxpool.ParseConfig(server.DSN())
		require.NoError(t, err)
		cfg.ConnConfig.User, cfg.ConnConfig.Password = "app", "app"
		pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
		require.NoError(t, err)
		defer pool.Close()
		s, err := pgxstore.New(pool, pgxstore.Options{Schema: schema, PollOnly: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		app := kit.LogOf(t, s)
		tx := l.Begin()
		late := l.Append(tx, "b")
		dead := l.Begin()
		l.Append(dead, "d")
		require.NoError(t, dead.Rollback())
		next := l.Add("c")
		require.Empty(t, app.Read(start))
		require.Empty(t, app.Read(start))
		require.Zero(t, oldest(t, app), "which nobody may know")
		require.NoError(t, tx.Commit())
		app.Soon(start, late, next)
		start = next
	})

	t.Run("crashes under load", func(t *testing.T) { crashUnderLoad(t, server, kit.Log(t), exec) })
}

func oldest(t *testing.T, l *pgstoretest.Log) time.Duration {
	head, err := l.Store.Head(t.Context())
	require.NoError(t, err)
	return head.OldestAppender
}

// awake waits until a log can be read again.
func awake(t *testing.T, l *pgstoretest.Log) {
	require.Eventually(t, func() bool { _, err := l.TryRead(0); return err == nil }, 20*time.Second, 10*time.Millisecond)
}

// crashUnderLoad: the server crashes while writers record and a projection reads: each event that is there is applied,
// none twice, and all that were recorded for sure are there (J7).
func crashUnderLoad(t *testing.T, server *pgtest.Server, l *pgstoretest.Log, exec func(string) error) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	applied := `"` + l.Schema() + `".applied`
	require.NoError(t, exec("create table "+applied+" (seq bigint, n bigint generated always as identity)"))
	p := journal.NewProjection[*pgstoretest.Tx]("applied")
	journal.Apply(p, pgstoretest.Deposited, func(ctx context.Context, tx *pgstoretest.Tx, e journal.Event[int]) error {
		_, err := tx.X.Exec(ctx, "insert into "+applied+" (seq) values ($1::bigint)", e.Seq)
		return err
	})
	require.NoError(t, l.J.Project(p))
	w, err := l.J.Worker(journal.WorkerOptions{Poll: 10 * time.Millisecond})
	require.NoError(t, err)
	running, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { _ = w.Run(running) })
	var mu sync.Mutex
	sure := map[int64]bool{}
	for n := range 4 {
		all.Go(func() {
			for running.Err() == nil {
				var rec journal.Recorded
				err := l.J.InTx(running, func(ctx context.Context, tx *pgstoretest.Tx) (err error) {
					rec, err = l.J.Record(ctx, tx, pgstoretest.Accounts.Key(strconv.Itoa(n)), journal.AnyVersion, pgstoretest.Deposited.New(1))
					return err
				})
				mu.Lock()
				if err == nil {
					sure[rec.Last()] = true
				} else if !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrUnknown) && running.Err() == nil {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	recorded := func() int { mu.Lock(); defer mu.Unlock(); return len(sure) }
	for range 2 {
		enough := recorded() + 100
		require.Eventually(t, func() bool { return recorded() >= enough }, 20*time.Second, time.Millisecond)
		require.NoError(t, server.Stop(pgtest.Immediate))
		require.NoError(t, server.Restart())
	}
	enough := recorded() + 100
	require.Eventually(t, func() bool { return recorded() >= enough }, 20*time.Second, time.Millisecond)
	stop()
	all.Wait()
	// The server may take a moment to see that the worker's batch is over: its cursor is busy for so long.
	for lag := int64(1); lag > 0; {
		_, err := l.J.CatchUp(ctx)
		require.NoError(t, ctx.Err())
		if err != nil {
			continue
		}
		at, _, err := l.J.Cursors(ctx)
		require.NoError(t, err)
		lag = at[0].Lag
	}
	conn, err := pgx.Connect(ctx, server.DSN())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	rows, err := conn.Query(ctx, `select e.seq, count(a.seq) from "`+l.Schema()+`".events e left join `+applied+` a using (seq) group by e.seq`)
	require.NoError(t, err)
	var seq, times int64
	there := 0
	_, err = pgx.ForEachRow(rows, []any{&seq, &times}, func() error {
		require.Equal(t, int64(1), times, "seq %d", seq)
		there++
		delete(sure, seq)
		return nil
	})
	require.NoError(t, err)
	require.Empty(t, sure, "were recorded, and are gone")
	var more int
	require.NoError(t, conn.QueryRow(ctx, "select count(*) from "+applied).Scan(&more))
	require.Equal(t, there, more)
	require.NoError(t, conn.QueryRow(ctx, "select count(*) from (select seq < lag(seq) over (order by n) as back from "+applied+") a where back").Scan(&more))
	require.Zero(t, more, "in the order of seqs")
	t.Logf("%d events", there)
}

// TestStandbyTakesOver: a standby can't be read; when it takes over without the last events, cursors in the database are
// where its log is, and who remembers more is told so rather than pass over what is recorded now (J9).
// STINT_TEST_JOURNAL=full; the short form of what matters is the case JournalSequence.
func TestStandbyTakesOver(t *testing.T) {
	if os.Getenv("STINT_TEST_JOURNAL") != "full" {
		kit.Case(t, "JournalSequence")
		return
	}
	server := pgtest.Start(t)
	kit, exec := onServer(t, server)
	l := kit.Log(t)
	first := l.Add("a")
	require.Equal(t, []int64{first}, l.Read(0))
	standby := server.Standby(t)
	awake(t, l)
	second := l.Add("a")
	other, execThere := onServer(t, standby)
	db := other.DB(t)
	var there *pgstoretest.Log
	require.Eventually(t, func() bool { // it follows
		return execThere(`do $$ begin assert (select count(*) = 2 from "`+l.Schema()+`".events); end $$`) == nil
	}, 10*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		s, err := db.On(l.Schema(), nil)
		if err != nil {
			return false
		}
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		there = other.LogOf(t, s)
		return true
	}, 10*time.Second, 10*time.Millisecond)
	_, err := there.TryRead(0)
	require.ErrorIs(t, err, errors.ErrUnsupported)

	require.NoError(t, execThere("alter system set primary_conninfo = ''"))
	require.NoError(t, execThere("select pg_reload_conf()"))
	require.Eventually(t, func() bool {
		return exec("do $$ begin assert (select count(*) = 0 from pg_stat_replication); end $$") == nil
	}, 10*time.Second, 10*time.Millisecond)
	var last int64
	for range 100 { // more than a sequence writes ahead
		last = l.Add("a")
	}
	require.Len(t, l.Read(second), 100)
	require.NoError(t, server.Kill())
	require.NoError(t, execThere("select pg_promote()"))
	require.Eventually(t, func() bool { _, err := there.TryRead(0); return err == nil }, 10*time.Second, 10*time.Millisecond)
	_, err = there.TryRead(last)
	require.ErrorIs(t, err, journal.ErrAhead)
	next := there.Add("a")
	require.Less(t, next, last, "seqs are drawn again")
	require.Equal(t, []int64{next}, there.Read(second))
	require.NoError(t, server.Restart()) // to be cleaned up
	awake(t, l)
}

// TestLongEntity: Load keeps to its bounds, however long an entity's history is (J2).
func TestLongEntity(t *testing.T) {
	longlog.Test(t, kit.DB(t).Journal(kit.Open(t, nil)), 20_000, 48)
}

func BenchmarkLongEntity(b *testing.B) { longlog.Benchmark(b, kit.DB(b).Journal(kit.Open(b, nil))) }
