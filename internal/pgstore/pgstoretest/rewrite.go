package pgstoretest

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/sqlexec"
)

// ForTest returns a kit that is closed when the test ends.
func ForTest(t testing.TB, connect func(t testing.TB) (*DB, error)) *Kit {
	k := New(connect)
	t.Cleanup(func() { require.NoError(t, k.close()) })
	return k
}

// Rewriting is a backend whose statements are changed before they are sent: what makes of a store a broken one.
type Rewriting struct {
	pgstore.Backend
	// Rewrite returns what changes the statements of one Do or Atomic; nil: nothing is changed. It sees them as
	// package pgsql writes them, with {}. in front of a table.
	Rewrite func() func(text string) string
	// Patience is how long a Do may take, so that what waits for ever does not take long to fail.
	Patience time.Duration
}

// Do implements pgstore.Backend.
func (r *Rewriting) Do(ctx context.Context, on pgstore.Conns, work func(context.Context, sqlexec.Executor) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	return r.Backend.Do(ctx, on, func(ctx context.Context, x sqlexec.Executor) error { return work(ctx, r.Over(x)) })
}

// Atomic implements pgstore.Backend.
func (r *Rewriting) Atomic(ctx context.Context, on pgstore.Conns, work func(context.Context, pgstore.Tx) error) error {
	return r.Backend.Atomic(ctx, on, func(ctx context.Context, tx pgstore.Tx) error {
		return work(ctx, rewritingTx{r.Over(tx), tx})
	})
}

// Close does nothing: somebody else closes the backend.
func (r *Rewriting) Close() error { return nil }

// Over is an executor whose statements are changed before x runs them.
func (r *Rewriting) Over(x sqlexec.Executor) sqlexec.Executor {
	if r.Rewrite == nil {
		return x
	}
	return rewriter{x, r.Rewrite()}
}

type rewritingTx struct {
	sqlexec.Executor
	tx pgstore.Tx
}

func (t rewritingTx) Script(ctx context.Context, sql string) error { return t.tx.Script(ctx, sql) }

type rewriter struct {
	x       sqlexec.Executor
	rewrite func(string) string
}

func (r rewriter) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return r.x.Exec(ctx, r.text(query), args...)
}

func (r rewriter) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	return r.x.Query(ctx, r.text(query), args...)
}

var schemaName = regexp.MustCompile(`"stint_test_\w+"`)

func (r rewriter) text(sent string) string {
	schema := schemaName.FindString(sent)
	if schema == "" {
		return r.rewrite(sent)
	}
	return strings.ReplaceAll(r.rewrite(strings.ReplaceAll(sent, schema+".", "{}.")), "{}.", schema+".")
}

// Edit is one change to statements: what they say, and what to say instead.
type Edit [2]string

// Fault is what breaks a store: edits of all statements that contain In, and each of which must have found its text when
// Check is called.
type Fault struct {
	In    string
	Skip  int // how many such statements of one Do are left as they are first
	Edits []Edit

	mu    sync.Mutex
	found map[string]bool
}

// Rewrite is for Rewriting.
func (f *Fault) Rewrite() func(string) string {
	skip := f.Skip
	return func(text string) string {
		if !strings.Contains(text, f.In) {
			return text
		}
		if skip > 0 {
			skip--
			return text
		}
		for _, e := range f.Edits {
			if changed := strings.ReplaceAll(text, e[0], e[1]); changed != text {
				text = changed
				f.mu.Lock()
				if f.found == nil {
					f.found = make(map[string]bool)
				}
				f.found[e[0]] = true
				f.mu.Unlock()
			}
		}
		return text
	}
}

// Check fails unless each edit found its text in some statement.
func (f *Fault) Check(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.Edits {
		if !f.found[e[0]] {
			t.Errorf("no statement has this text any more, so the fault is none:\n%s", e[0])
		}
	}
}
