package docs_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	bunstore "github.com/stintmq/stint/drivers/bun"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
	"github.com/stintmq/stint/journal"
)

var (
	goBlock  = regexp.MustCompile("(?ms)^```go\n// file: (\\S+)\n(.*?)^```$")
	sqlBlock = regexp.MustCompile("(?ms)^```sql (\\S+)\n(.*?)^```$")
)

func journalPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("journal.md")
	require.NoError(t, err)
	return string(page)
}

// TestJournalQuotesTheCode: Go on the page stands word for word in a file that go test compiles and runs.
func TestJournalQuotesTheCode(t *testing.T) {
	page := journalPage(t)
	found := goBlock.FindAllStringSubmatch(page, -1)
	require.Len(t, found, strings.Count(page, "```go"), "a block that names no file")
	require.NotEmpty(t, found)
	for _, b := range found {
		file, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(b[1])))
		require.NoError(t, err)
		require.Contains(t, string(file), b[2], "%s has it no more", b[1])
	}
}

type sold struct{ Cents int }

var (
	items  = journal.NewEntity[sold]("item")
	bought = journal.Type[sold](items, "bought", nil)
)

// TestRetire: an old version of a projection goes away by the statements of the page, while workers that declare it run,
// and leaves nothing once they are gone.
func TestRetire(t *testing.T) {
	statements := make(map[string][]string)
	for _, b := range sqlBlock.FindAllStringSubmatch(journalPage(t), -1) {
		statements[b[1]] = append(statements[b[1]], b[2])
	}
	require.Len(t, statements["postgres"], 2)
	require.Len(t, statements["sqlite"], 2)
	require.Equal(t, strings.Count(journalPage(t), "```sql"), 4, "a fence that nothing runs")
	t.Run("postgres", func(t *testing.T) {
		pool := postgres(t)
		require.NoError(t, pgxstore.Migrate(t.Context(), pool, ""))
		retire(t, open(t, pool).Journal(), statements["postgres"], func(text string) { script(t, pool, text) },
			func(ctx context.Context, tx pgx.Tx, text string) error { _, err := tx.Exec(ctx, text); return err },
			func(ctx context.Context, tx pgx.Tx, text string) (n int, err error) {
				return n, tx.QueryRow(ctx, text).Scan(&n)
			}, "stint.")
	})
	t.Run("sqlite", func(t *testing.T) {
		s, err := bunstore.OpenSQLite(filepath.Join(t.TempDir(), "jobs.db"))
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		retire(t, s.Journal(), statements["sqlite"], func(text string) {
			t.Helper()
			c, err := s.DB().DB.Conn(context.Background()) // all statements on one
			require.NoError(t, err)
			defer func() { require.NoError(t, c.Close()) }()
			_, err = c.ExecContext(context.Background(), text)
			require.NoError(t, err, text)
		}, func(ctx context.Context, tx bun.Tx, text string) error {
			_, err := tx.ExecContext(ctx, text)
			return err
		},
			func(ctx context.Context, tx bun.Tx, text string) (n int, err error) {
				return n, tx.QueryRowContext(ctx, text).Scan(&n)
			}, "stint_")
	})
}

// retire runs a program of two releases, with statements one by one: what closes, and what deletes.
func retire[Tx any](t *testing.T, store journal.Store[Tx], statements []string, script func(string),
	exec func(context.Context, Tx, string) error, one func(context.Context, Tx, string) (int, error), tables string,
) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var said lines
	release := func(versions ...int) *journal.Journal[Tx] {
		t.Helper()
		j, err := journal.New(store, journal.Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
		require.NoError(t, err)
		for _, v := range versions {
			p := journal.NewProjection[Tx]("sales", journal.ProjectionOptions{Version: v, Batch: 3})
			journal.Apply(p, bought, func(ctx context.Context, tx Tx, e journal.Event[sold]) error {
				return exec(ctx, tx, fmt.Sprintf("insert into sales_%d values (%d)", v, e.Seq))
			})
			require.NoError(t, j.Project(p))
		}
		other := journal.NewProjection[Tx]("other")
		journal.Apply(other, bought, func(context.Context, Tx, journal.Event[sold]) error { return nil })
		require.NoError(t, j.Project(other))
		return j
	}
	ask := func(text string) (n int) {
		t.Helper()
		require.NoError(t, store.InTx(ctx, func(ctx context.Context, tx Tx) (err error) { n, err = one(ctx, tx, text); return err }))
		return n
	}
	script("create table sales_1 (seq bigint primary key); create table sales_2 (seq bigint primary key)")
	before, after := release(1), release(2)
	var crew sync.WaitGroup
	work := func(j *journal.Journal[Tx]) context.CancelFunc {
		w, err := j.Worker(journal.WorkerOptions{Poll: 20 * time.Millisecond})
		require.NoError(t, err)
		working, stop := context.WithCancel(ctx)
		crew.Go(func() { _ = w.Run(working) })
		return stop
	}
	defer crew.Wait()
	stopOld, stopNew := work(before), work(after)
	defer stopNew()
	defer stopOld()
	var last atomic.Int64
	record := func() {
		err := after.InTx(ctx, func(ctx context.Context, tx Tx) error {
			r, err := after.Record(ctx, tx, items.Key("tea"), journal.AnyVersion, bought.New(sold{1}), bought.New(sold{2}))
			if err == nil {
				last.Store(r.Last())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	recording, enough := context.WithCancel(ctx)
	defer enough()
	crew.Go(func() {
		for recording.Err() == nil {
			record()
			_ = after.WaitFor(recording, "sales", last.Load()) // no faster than it is followed
		}
	})
	require.NoError(t, before.WaitFor(ctx, "sales", 40))

	script(statements[0])
	at := func() (seq int64) {
		cursors, err := store.Cursors(ctx)
		require.NoError(t, err)
		for _, c := range cursors {
			if c.Name == "sales@1" {
				return c.Seq
			}
		}
		return -1
	}
	closed := at()
	require.GreaterOrEqual(t, closed, int64(40))
	target := last.Load() + 100
	require.NoError(t, before.WaitFor(ctx, "other", target), "the old worker goes on with the rest")
	require.NoError(t, after.WaitFor(ctx, "sales", target))
	require.Equal(t, closed, at(), "an old worker moved it")
	enough()
	require.NoError(t, after.WaitIdle(ctx))
	require.Equal(t, ask("select count(*) from "+tables+"events"), ask("select count(*) from sales_2"))
	for _, line := range said.all() {
		require.Contains(t, line, "sales@1")
		require.Contains(t, line, "inline", "the old worker says why it stands, and nothing else went wrong")
	}
	require.NotEmpty(t, said.all())

	// Deleted under an old worker it begins again: what the page warns of.
	script(statements[1])
	require.Eventually(t, func() bool {
		cursors, err := store.Cursors(ctx)
		i := slices.IndexFunc(cursors, func(c journal.Cursor) bool { return c.Name == "sales@1" })
		return err == nil && i >= 0 && !cursors[i].Inline && cursors[i].Seq == 0 && cursors[i].FailedSeq == 1
	}, 20*time.Second, 10*time.Millisecond, "it has no table")

	stopOld()
	stopNew()
	crew.Wait()
	for _, space := range []string{"parked/sales@1", "skipped/sales@1", "parked/sales@10", "inline"} {
		require.NoError(t, store.InTx(ctx, func(ctx context.Context, tx Tx) error {
			return store.PutNote(ctx, tx, journal.Note{Space: space, Key: "sales@1", Value: []byte("1")})
		}))
	}
	script(statements[1])
	require.EqualValues(t, -1, at())
	require.Equal(t, 1, ask("select count(*) from "+tables+"notes"), "another's notes stay")
	require.Equal(t, 2, ask("select count(*) from "+tables+"cursors"))
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.buf.String()), "\n")
}
