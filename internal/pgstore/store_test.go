package pgstore

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/sqlexec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a backend whose schema is there. What runs on it ends with the next of errs, then well.
type fake struct {
	errs      []error
	unsent    bool
	tries     int
	deadlines []time.Time
	closed    int
}

func (f *fake) Do(ctx context.Context, _ Conns, work func(context.Context, sqlexec.Executor) error) error {
	f.tries++
	at, _ := ctx.Deadline()
	f.deadlines = append(f.deadlines, at)
	if len(f.errs) == 0 {
		return work(ctx, executor{})
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return err
}

func (f *fake) Atomic(ctx context.Context, on Conns, work func(context.Context, Tx) error) error {
	err := work(ctx, script{})
	return errors.Join(err, f.Do(ctx, on, func(context.Context, sqlexec.Executor) error { return nil }))
}

func (f *fake) Settle(context.Context) error { return nil }
func (f *fake) Unsent(error) bool            { return f.unsent }
func (f *fake) Close() error                 { f.closed++; return nil }

// executor answers every query with the schema's version, twice.
type executor struct{}

func (executor) Exec(context.Context, string, ...any) (int64, error) { return 0, nil }
func (executor) Query(context.Context, string, ...any) (sqlexec.Rows, error) {
	return &rows{left: 1}, nil
}

type script struct{ executor }

func (script) Script(context.Context, string) error { return nil }

type rows struct{ left int }

func (r *rows) Next() bool { r.left--; return r.left >= 0 }
func (r *rows) Scan(dest ...any) error {
	for _, d := range dest {
		if n, ok := d.(*int); ok {
			*n = pgsql.Version
		}
	}
	return nil
}
func (r *rows) Err() error   { return nil }
func (r *rows) Close() error { return nil }

// state is an error of Postgres's.
type state string

func (s state) Error() string    { return string(s) }
func (s state) SQLState() string { return string(s) }

func fresh(t *testing.T) (*Store, *fake) {
	f := &fake{}
	s, err := New(f, Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.Equal(t, 1, f.closed)
	})
	f.tries, f.deadlines = 0, nil
	return s, f
}

// TestRolledBackByOthers: a deadlock, or a conflict, is ours to try again, and not for ever.
func TestRolledBackByOthers(t *testing.T) {
	s, f := fresh(t)
	f.errs = []error{state("40001"), state("40P01")}
	_, err := s.Paused(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, f.tries)
	for range 100 {
		f.errs = append(f.errs, state("40001"))
	}
	_, err = s.Paused(t.Context())
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.Equal(t, 3+again, f.tries)
}

// TestNobodyKnows: a write whose reply is lost is unknown, and everybody here looks whether it was done. One that was
// not sent, and a read, are not done.
func TestNobodyKnows(t *testing.T) {
	s, f := fresh(t)
	since := s.hub.Token()
	f.errs = []error{io.ErrUnexpectedEOF}
	require.ErrorIs(t, s.Resume(t.Context(), "q"), core.ErrUnknown)
	require.Equal(t, 1, f.tries, "never twice")
	_, err := s.hub.Await(t.Context(), nil, since)
	require.NoError(t, err)

	f.errs = []error{io.ErrUnexpectedEOF}
	_, err = s.Paused(t.Context())
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.NotErrorIs(t, err, core.ErrUnknown)
	f.unsent, f.errs = true, []error{io.ErrUnexpectedEOF}
	err = s.Resume(t.Context(), "q")
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.NotErrorIs(t, err, core.ErrUnknown)
}

// TestLostCommit: of a transaction it is the COMMIT that counts.
func TestLostCommit(t *testing.T) {
	s, f := fresh(t)
	for _, c := range []struct{ work, want error }{{nil, core.ErrUnknown}, {state("XX000"), core.ErrUnavailable}} {
		f.errs = []error{io.ErrUnexpectedEOF}
		err := s.atomic(t.Context(), func(context.Context, *session) error { return c.work })
		require.ErrorIs(t, err, c.want)
	}
}

// TestCallsAreBounded: by the caller's deadline, else by the store's.
func TestCallsAreBounded(t *testing.T) {
	s, f := fresh(t)
	require.NoError(t, s.Resume(t.Context(), "q"))
	require.WithinDuration(t, time.Now().Add(callTimeout), f.deadlines[0], time.Minute/2)
	later := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), later)
	defer cancel()
	require.NoError(t, s.Resume(ctx, "q"))
	require.Equal(t, later, f.deadlines[1])
}

// TestOwnTransactionsAreBounded: begin, commit and each statement of the store's own transactions, by the caller's deadline
// or else by the store's; the caller's code, and transactions of his own, are not.
func TestOwnTransactionsAreBounded(t *testing.T) {
	s, _ := fresh(t)
	SetPatience(s, time.Hour)
	var given time.Duration
	l := NewLog(s, nil, func(int) sqlexec.Executor { return executor{} }, func(tx int) any { return tx },
		func(ctx context.Context, patience time.Duration, do func(context.Context, int) error) error {
			given = patience
			return do(ctx, 1)
		})
	deadline := func(ctx context.Context, tx int) (at time.Time) {
		_, err := inTx(ctx, l, tx, func(ctx context.Context, _ *session) (nothing, error) {
			at, _ = ctx.Deadline()
			return nothing{}, nil
		})
		require.NoError(t, err)
		return at
	}
	s.keepsLog.Store(true)
	require.NoError(t, l.InTx(t.Context(), func(ctx context.Context, tx int) error {
		_, bounded := ctx.Deadline()
		require.False(t, bounded)
		require.WithinDuration(t, time.Now().Add(time.Hour), deadline(ctx, tx), time.Minute)
		require.Zero(t, deadline(ctx, 2), "another transaction")
		batch, cancel := context.WithTimeout(ctx, 2*time.Hour)
		defer cancel()
		require.WithinDuration(t, time.Now().Add(time.Hour), deadline(batch, tx), time.Minute)
		return nil
	}))
	require.Equal(t, time.Hour, given)
	later := time.Now().Add(3 * time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), later)
	defer cancel()
	require.NoError(t, l.InTx(ctx, func(ctx context.Context, tx int) error {
		require.Equal(t, later, deadline(ctx, tx))
		return nil
	}))
	require.Zero(t, given)
}

// TestDeafStatements: one that goes on when its context has ended is left behind.
func TestDeafStatements(t *testing.T) {
	s, _ := fresh(t)
	SetPatience(s, time.Millisecond)
	s.opts.Deaf = true
	held := make(chan struct{})
	defer close(held)
	_, err := bounded(t.Context(), s, &ownTx{}, func(context.Context) (int, error) {
		<-held
		return 1, nil
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestNewClosesWhatItTook: also when there is nothing to open.
func TestNewClosesWhatItTook(t *testing.T) {
	f := &fake{errs: []error{io.EOF}}
	_, err := New(f, Options{})
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.Equal(t, 1, f.closed)
	_, err = New(f, Options{Schema: "\x00"})
	var invalid *core.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, 2, f.closed)
}

// TestOwnTransactions: it is the transaction that says whose it is, not the context alone, and nothing is lost of what
// comes at the last moment.
func TestOwnTransactions(t *testing.T) {
	s, _ := fresh(t)
	mine, other := func() any { return 1 }, func() any { return 2 }
	own := &ownTx{id: 1}
	ctx := context.WithValue(t.Context(), ownKey{s}, own)
	require.Same(t, own, s.own(ctx, mine))
	require.Nil(t, s.own(ctx, other))
	require.Nil(t, s.own(t.Context(), mine))
	elsewhere, _ := fresh(t)
	require.Nil(t, elsewhere.own(ctx, mine))

	own.end()
	require.Nil(t, s.own(ctx, mine), "its connection is somebody else's now")
	require.True(t, own.add([]pgsql.News{{Queue: "q"}}), "before the commit")
	require.Equal(t, []pgsql.News{{Queue: "q"}}, own.take())
	require.False(t, own.add([]pgsql.News{{Queue: "q"}}), "nobody would tell it")
}
