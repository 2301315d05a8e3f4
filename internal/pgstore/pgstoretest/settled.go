package pgstoretest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/journal"
)

// start has it all read so far, with the holes that other tests left, and returns where that ends.
func (l *Log) start() int64 {
	seq := l.Add("a")
	l.Soon(0, seq)
	return seq
}

// journalHoles: readers stop at a hole that an open transaction may fill, say for how long they have waited, and go on
// when it ends, however it does (J9).
func journalHoles(t testing.TB, k *Kit) {
	l := k.Log(t)
	other := k.LogOf(t, k.OpenAt(t, k.SchemaOf(l.s), nil)) // which knows nothing of what l knows
	last := l.start()
	for _, c := range []struct {
		name string
		end  func(tx *Tx) error
		dead bool
	}{
		{"commit", func(tx *Tx) error { return tx.Commit() }, false},
		{"rollback", func(tx *Tx) error { return tx.Rollback() }, true},
		{"backend killed", func(tx *Tx) error {
			var pid int
			_, err := sqlexec.One(l.ctx, tx.X, []any{&pid}, "select pg_backend_pid()")
			require.NoError(t, err)
			k.Exec(t, "select pg_terminate_backend("+strconv.Itoa(pid)+")")
			_ = tx.Rollback() // there is nothing left
			return nil
		}, true},
	} {
		before := l.Add("a")
		open := l.Begin()
		l.Exec(open, "select pg_current_xact_id()")
		late := l.Append(open, "b")
		next := l.Add("c")
		for range 3 { // what it learns the first time must not let it go on the next
			require.Equal(t, []int64{before}, l.Read(last), c.name)
			require.Empty(t, l.Read(before), c.name)
			require.Empty(t, other.Read(before), c.name)
		}
		require.Positive(t, l.oldest(), c.name)
		require.NoError(t, c.end(open))
		want := []int64{late, next}
		if c.dead {
			want = want[1:]
		}
		l.Soon(before, want...)
		other.Soon(before, want...)
		require.Zero(t, l.oldest(), c.name)
		last = next
	}
}

// journalNothingElseWaits: no transaction holds readers that did not append, or rolled that back to a savepoint (J9).
func journalNothingElseWaits(t testing.TB, k *Kit) {
	l := k.Log(t)
	first := l.start()
	for name, begin := range map[string]func() *Tx{
		"an advisory lock": func() *Tx {
			tx := l.Begin()
			l.Exec(tx, "select pg_advisory_xact_lock(1)")
			return tx
		},
		"a writer of another table": func() *Tx {
			tx := l.Begin()
			require.NoError(t, l.Store.PutNote(l.ctx, tx, journal.Note{Space: "s", Key: "k"}))
			return tx
		},
		"a reader with a snapshot": func() *Tx {
			tx, err := k.DB(t).Begin(l.ctx, l.s, true)
			require.NoError(t, err)
			t.Cleanup(func() { _ = tx.Rollback() }) // for a test that failed
			l.Exec(tx, "select 1")
			_, err = l.Store.ReadEntity(l.ctx, tx, Accounts.Key("a"), 0, 1)
			require.NoError(t, err)
			return tx
		},
		"a savepoint that was rolled back": func() *Tx {
			tx := l.Begin()
			l.Exec(tx, "select pg_current_xact_id()")
			l.Exec(tx, "savepoint s")
			l.Append(tx, "b")
			l.Exec(tx, "rollback to savepoint s")
			return tx
		},
	} {
		tx := begin()
		dead := l.Begin()
		l.Append(dead, "c")
		require.NoError(t, dead.Rollback())
		next := l.Add("d")
		require.Equal(t, []int64{next}, l.Read(first), name)
		require.Zero(t, l.oldest(), name)
		first = next
		require.NoError(t, tx.Rollback())
	}
	// Appended before the savepoint: that counts, whatever is rolled back afterwards.
	tx := l.Begin()
	late := l.Append(tx, "b")
	l.Exec(tx, "savepoint s")
	l.Append(tx, "b")
	l.Exec(tx, "rollback to savepoint s")
	next := l.Add("c")
	require.Empty(t, l.Read(first))
	require.NoError(t, tx.Commit())
	l.Soon(first, late, next)
}

// journalOwnEvents: what a transaction that appended sees of its own must not let others go on (J9).
func journalOwnEvents(t testing.TB, k *Kit) {
	l := k.Log(t)
	start := l.start()
	own, other := l.Begin(), l.Begin()
	a := l.Append(own, "a")
	b := l.Append(other, "b")
	c := l.Append(own, "a")
	got, err := l.ReadIn(l.ctx, own, start)
	require.NoError(t, err)
	require.Equal(t, []int64{a}, got)
	require.NoError(t, other.Commit())
	d := l.Add("d")
	for range 3 {
		require.Empty(t, l.Read(start), "seq %d is on its way", a)
	}
	require.NoError(t, own.Commit())
	l.Soon(start, a, b, c, d)
}

// journalLockedFirst: a reader that has a transaction number, from locking its cursor, before others begin (J9).
func journalLockedFirst(t testing.TB, k *Kit) {
	l := k.Log(t)
	start := l.start()
	reader := l.Begin()
	_, _, err := l.Store.LockCursor(l.ctx, reader, "p@1", true)
	require.NoError(t, err)
	open := l.Begin()
	late := l.Append(open, "a")
	next := l.Add("b")
	got, err := l.ReadIn(l.ctx, reader, start)
	require.NoError(t, err)
	require.Empty(t, got)
	require.NoError(t, reader.Commit())
	for range 3 {
		require.Empty(t, l.Read(start))
	}
	require.NoError(t, open.Commit())
	l.Soon(start, late, next)
}

// journalLevels: a transaction with an old snapshot can't read the log, also where there is nothing to read yet (J9).
func journalLevels(t testing.TB, k *Kit) {
	l := k.Log(t)
	for range 2 {
		tx, err := k.DB(t).Begin(l.ctx, l.s, true)
		require.NoError(t, err)
		t.Cleanup(func() { _ = tx.Rollback() }) // for a test that failed
		_, err = l.ReadIn(l.ctx, tx, 0)
		var invalid *core.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "tx", invalid.Field)
		require.NoError(t, tx.Rollback())
		l.Add("a")
	}
}

// journalSequence: readers count on how seqs are drawn, so a journal is refused where that was changed; and one that
// stands behind what was ever drawn is told so, rather than miss what is recorded from now on (J9).
func journalSequence(t testing.TB, k *Kit) {
	l := k.Log(t)
	seq := l.Add("a")
	require.Empty(t, l.Read(seq))
	var ahead *journal.AheadError
	_, err := l.TryRead(seq + 100)
	require.ErrorAs(t, err, &ahead)
	require.Equal(t, journal.AheadError{After: seq + 100, Drawn: seq}, *ahead)
	require.ErrorIs(t, err, journal.ErrAhead)
	last := l.Add("a")
	k.Exec(t, fmt.Sprintf("delete from %s.events where seq = %d", quoted(k.SchemaOf(l.s)), last))
	require.Empty(t, l.Read(last), "the newest was deleted, and its seq will not be drawn again")

	column := "alter table " + quoted(k.SchemaOf(l.s)) + ".events alter column seq set "
	t.Cleanup(func() { k.Exec(t, column+"cache 1 set increment 1 set no cycle") })
	for _, change := range []string{"cache 10", "cache 1 set increment 2", "increment 1 set cycle"} {
		k.Exec(t, column+change)
		fresh := k.LogOf(t, k.OpenAt(t, k.SchemaOf(l.s), nil))
		var invalid *core.InvalidError
		_, err = fresh.TryRead(0)
		require.ErrorAs(t, err, &invalid, change)
		_, err = fresh.Store.Cursors(l.ctx)
		require.ErrorAs(t, err, &invalid, change)
	}
}

// journalWithoutTables: a queue needs no journal, and says so when it is asked for one.
func journalWithoutTables(t testing.TB, k *Kit) {
	l := k.Log(t)
	schema := quoted(k.SchemaOf(l.s))
	k.Exec(t, "update "+schema+".schema_version set version = version - 100 where version > 2")
	t.Cleanup(func() { k.Exec(t, "update "+schema+".schema_version set version = version + 100 where version < 0") })
	var old *core.SchemaError
	_, err := l.TryRead(0)
	require.ErrorAs(t, err, &old)
	Enqueue(t, l.s, Request("job"))
}

// seen is what a projection applied.
type seen struct {
	mu       sync.Mutex
	seqs     []int64
	versions map[string]int64
}

func (r *seen) apply(_ context.Context, _ *Tx, e journal.Event[int]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Version != r.versions[e.Key.ID]+1 {
		return fmt.Errorf("%s: version %d after %d", e.Key, e.Version, r.versions[e.Key.ID])
	}
	r.seqs, r.versions[e.Key.ID] = append(r.seqs, e.Seq), e.Version
	return nil
}

// journalUnderLoad: under transactions that overlap, of which one in seven rolls back, some wrote before they append,
// roll savepoints back, or are open for long, two projections on two handles have every event once, in the order of
// seqs, and each entity's in that of its versions (J7, J9). STINT_TEST_JOURNAL=full is 20,000 events.
func journalUnderLoad(t testing.TB, k *Kit) {
	events := 500
	if os.Getenv("STINT_TEST_JOURNAL") == "full" {
		events = 20_000
	}
	l := k.Log(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stop()
	logs := []*Log{l, k.LogOf(t, k.OpenAt(t, k.SchemaOf(l.s), nil))}
	readers := make([]*seen, 2)
	for i, l := range logs {
		readers[i] = &seen{versions: map[string]int64{}}
		p := journal.NewProjection[*Tx]("reader" + strconv.Itoa(i))
		journal.Apply(p, Deposited, readers[i].apply)
		require.NoError(t, l.J.Project(p))
		w, err := l.J.Worker(journal.WorkerOptions{Poll: 20 * time.Millisecond})
		require.NoError(t, err)
		workers.Go(func() { _ = w.Run(running) })
	}
	recorded, err := l.load(ctx, events)
	require.NoError(t, err)
	var last int64
	for seq := range recorded {
		last = max(last, seq)
	}
	for i, r := range readers {
		if err := logs[i].J.WaitFor(ctx, "reader"+strconv.Itoa(i), last); err != nil {
			c, head, cerr := logs[i].J.Cursors(context.Background())
			t.Fatalf("%v: %+v %+v %v", err, c, head, cerr)
		}
		r.mu.Lock()
		got := map[int64]bool{}
		for n, seq := range r.seqs {
			require.False(t, got[seq], "seq %d twice", seq)
			require.True(t, n == 0 || seq > r.seqs[n-1])
			got[seq] = true
		}
		require.Len(t, got, len(recorded))
		require.Equal(t, recorded, got)
		r.mu.Unlock()
	}
	t.Logf("%d events, %d holes", len(recorded), int(last)-len(recorded))
}

// load has 12 writers record events, and returns the seqs of those that were committed.
func (l *Log) load(ctx context.Context, events int) (recorded map[int64]bool, err error) {
	var writers sync.WaitGroup
	var mu sync.Mutex
	recorded = map[int64]bool{}
	rollback := errors.New("rolled back")
	for w := range 12 {
		writers.Go(func() {
			for range events / 12 {
				var rec journal.Recorded
				e := l.Store.InTx(ctx, func(ctx context.Context, tx *Tx) (err error) {
					rec, err = l.oddRecord(ctx, tx, w)
					if err == nil && rand.N(7) == 0 {
						err = rollback
					}
					return err
				})
				mu.Lock()
				if e == nil {
					recorded[rec.Last()] = true
				} else if !errors.Is(e, rollback) && !errors.Is(e, core.ErrRetryTx) {
					err = e
				}
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	return recorded, err
}

// oddRecord records an event in one of the ways of callers' transactions.
func (l *Log) oddRecord(ctx context.Context, tx *Tx, w int) (rec journal.Recorded, err error) {
	key := Accounts.Key(strconv.Itoa(rand.N(5)))
	exec := func(sql string) {
		if err == nil {
			_, err = tx.X.Exec(ctx, sql)
		}
	}
	if w%3 == 0 { // an old transaction number
		err = l.Store.PutNote(ctx, tx, journal.Note{Space: "app", Key: strconv.Itoa(w)})
	}
	if rand.N(5) == 0 {
		exec("savepoint s")
		if err == nil {
			_, err = l.J.Record(ctx, tx, key, journal.AnyVersion, Deposited.New(1))
		}
		exec("rollback to savepoint s")
	}
	if err == nil {
		rec, err = l.J.Record(ctx, tx, key, journal.AnyVersion, Deposited.New(1))
	}
	if rand.N(20) == 0 {
		exec("select pg_sleep(0.01)")
	}
	return rec, err
}
