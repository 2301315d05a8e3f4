package pgstoretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// Balance is the state of the accounts that tests of the journal write to.
type Balance struct{ Sum int }

// Accounts and Deposited are what the tests record.
var (
	Accounts  = journal.NewEntity[Balance]("account")
	Deposited = journal.Type(Accounts, "deposited", func(b *Balance, e journal.Event[int]) error {
		b.Sum += e.Payload
		return nil
	})
)

// Log is a store's journal under test.
type Log struct {
	Store journal.Store[*Tx]
	J     *journal.Journal[*Tx]

	t   testing.TB
	k   *Kit
	s   Store
	ctx context.Context //nolint:containedctx // the test's own
}

// Log opens a store on an empty schema, and its journal.
func (k *Kit) Log(t testing.TB) *Log {
	t.Helper()
	return k.LogOf(t, k.Open(t, nil))
}

// LogOf is the journal of a store.
func (k *Kit) LogOf(t testing.TB, s Store) *Log {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	store := k.DB(t).Journal(s)
	j, err := journal.New(store, journal.Options{})
	require.NoError(t, err)
	return &Log{store, j, t, k, s, ctx}
}

// Schema is where it is.
func (l *Log) Schema() string { return l.k.SchemaOf(l.s) }

// Begin begins a transaction, which ends with the test at the latest.
func (l *Log) Begin() *Tx { return l.k.Begin(l.t, l.s) }

// Exec runs a statement in a transaction.
func (l *Log) Exec(tx *Tx, sql string) {
	l.t.Helper()
	_, err := tx.X.Exec(l.ctx, sql)
	require.NoError(l.t, err)
}

// Append records an event of an account in a transaction and returns its seq.
func (l *Log) Append(tx *Tx, id string) int64 {
	l.t.Helper()
	rec, err := l.J.Record(l.ctx, tx, Accounts.Key(id), journal.AnyVersion, Deposited.New(1))
	require.NoError(l.t, err)
	return rec.Last()
}

// Add appends in a transaction of its own.
func (l *Log) Add(id string) int64 {
	l.t.Helper()
	tx := l.Begin()
	seq := l.Append(tx, id)
	require.NoError(l.t, tx.Commit())
	return seq
}

// Read returns the seqs of what is settled.
func (l *Log) Read(after int64) []int64 {
	l.t.Helper()
	seqs, err := l.TryRead(after)
	require.NoError(l.t, err)
	return seqs
}

// TryRead is Read with its error.
func (l *Log) TryRead(after int64) (seqs []int64, err error) {
	err = l.Store.InTx(l.ctx, func(ctx context.Context, tx *Tx) error {
		seqs, err = l.ReadIn(ctx, tx, after)
		return err
	})
	return seqs, err
}

// ReadIn reads in a transaction.
func (l *Log) ReadIn(ctx context.Context, tx *Tx, after int64) (seqs []int64, err error) {
	rows, err := l.Store.ReadSettled(ctx, tx, after, 1000)
	for _, r := range rows {
		seqs = append(seqs, r.Seq)
	}
	return seqs, err
}

// Soon waits until all of these are settled, and nothing else.
func (l *Log) Soon(after int64, seqs ...int64) {
	l.t.Helper()
	var got []int64
	require.Eventually(l.t, func() bool {
		got = l.Read(after)
		return fmt.Sprint(got) == fmt.Sprint(seqs)
	}, 5*time.Second, time.Millisecond, "want %v", seqs)
}

// oldest is how long readers wait by now.
func (l *Log) oldest() time.Duration {
	l.t.Helper()
	head, err := l.Store.Head(l.ctx)
	require.NoError(l.t, err)
	return head.OldestAppender
}

// oddEventTexts are what no driver may take for syntax.
var oddEventTexts = []string{`a`, `"`, `\`, `{},"NULL"`, `NULL`, `'; --`, `?0 $1 ? :x`, `é漢🙂`, ` `, strings.Repeat("x", 255)}

// journalBytes: what is recorded comes back as it was, by every way to read it, and one Record takes a thousand events.
func journalBytes(t testing.TB, k *Kit) {
	l := k.Log(t)
	tx := l.Begin()
	var want []journal.Row
	for i, odd := range oddEventTexts {
		rows := []journal.Row{
			{Payload: []byte("\x00\xff{\"" + odd), Header: journal.Header{Type: "t", Schema: 1 << 30, Correlation: odd, Causation: int64(i), Meta: map[string]string{odd: odd}}},
			{Payload: nil, Header: journal.Header{Type: odd, Schema: 1, Correlation: odd, Causation: int64(i)}},
		}
		key := journal.EntityKey{Kind: "odd", ID: odd}
		rec, err := l.Store.Append(l.ctx, tx, key, journal.NoEntity, rows)
		require.NoError(t, err)
		require.Equal(t, int64(2), rec.Version)
		require.Equal(t, time.UTC, rec.At.Location())
		rows[1].Payload = []byte{}
		for n := range rows {
			rows[n].Key, rows[n].Seq, rows[n].Version, rows[n].At = key, rec.Seqs[n], int64(n+1), rec.At
		}
		got, err := l.Store.ReadEntity(l.ctx, tx, key, 0, 10)
		require.NoError(t, err)
		require.Equal(t, rows, got)
		want = append(want, rows...)
		note := journal.Note{Space: odd, Key: odd, Value: []byte("\x00\xff" + odd)}
		require.NoError(t, l.Store.PutNote(l.ctx, tx, note))
		notes, err := l.Store.Notes(l.ctx, tx, odd, odd, "", 2)
		require.NoError(t, err)
		require.Equal(t, []journal.Note{note}, notes)
		c, ok, err := l.Store.LockCursor(l.ctx, tx, odd, true)
		require.NoError(t, err)
		require.True(t, ok)
		c.LastError, c.Seq, c.Failures, c.RetryAt = odd, 1<<60, 3, c.Now
		require.NoError(t, l.Store.SaveCursor(l.ctx, tx, c))
		again, _, err := l.Store.LockCursor(l.ctx, tx, odd, false)
		require.NoError(t, err)
		again.Now = c.Now
		require.Equal(t, c, again)
	}
	require.NoError(t, tx.Commit())
	require.NoError(t, l.Store.InTx(l.ctx, func(ctx context.Context, tx *Tx) error {
		got, err := l.Store.ReadSettled(ctx, tx, 0, 1000)
		require.Equal(t, want, got)
		return err
	}))
	for _, odd := range oddEventTexts {
		got, err := l.Store.ReadLog(l.ctx, journal.Filter{Kind: "odd", EntityID: odd, Type: odd, Correlation: odd, Since: want[0].At, Newest: true, Limit: 5})
		require.NoError(t, err)
		require.Len(t, got, 1)
	}

	drafts := make([]journal.Draft, journal.MaxEvents)
	for i := range drafts {
		drafts[i] = Deposited.New(i)
	}
	var rec journal.Recorded
	require.NoError(t, l.J.InTx(l.ctx, func(ctx context.Context, tx *Tx) (err error) {
		rec, err = l.J.Record(ctx, tx, Accounts.Key("many"), journal.Version(0), drafts...)
		return err
	}))
	require.Equal(t, int64(len(drafts)), rec.Version)
	require.Equal(t, rec.Seqs, l.Read(want[len(want)-1].Seq), "in the order of the drafts")
}

// journalLargePages: a page brings no more into memory than a claim does, but always one event.
func journalLargePages(t testing.TB, k *Kit) {
	l := k.Log(t)
	for _, bytes := range []int{core.MaxClaimBytes, 1, 1} {
		require.NoError(t, l.Store.InTx(l.ctx, func(ctx context.Context, tx *Tx) error {
			_, err := l.Store.Append(ctx, tx, Accounts.Key("a"), journal.AnyVersion,
				[]journal.Row{{Header: journal.Header{Type: "t"}, Payload: make([]byte, bytes)}})
			return err
		}))
	}
	first := l.Read(0)
	require.Len(t, first, 1)
	require.Len(t, l.Read(first[0]), 2)
	tx := l.Begin()
	for after, want := range []int{1, 2} {
		rows, err := l.Store.ReadEntity(l.ctx, tx, Accounts.Key("a"), int64(after), 10)
		require.NoError(t, err)
		require.Equal(t, want, len(rows)) // a failure that shows the rows takes long
	}
}

// journalCommits: what InTx answers is what happened (J1).
func journalCommits(t testing.TB, k *Kit) {
	l := k.Log(t)
	var invalid *core.InvalidError
	err := l.J.InTx(l.ctx, func(_ context.Context, tx *Tx) error {
		l.Append(tx, "a")
		_, err := tx.X.Exec(l.ctx, "select 1 / 0")
		require.Error(t, err)
		return nil // as if nothing had been
	})
	require.ErrorAs(t, err, &invalid)
	require.NotErrorIs(t, err, core.ErrUnknown)
	own := errors.New("own")
	require.ErrorIs(t, l.J.InTx(l.ctx, func(_ context.Context, tx *Tx) error { l.Append(tx, "a"); return own }), own)
	require.Empty(t, l.Read(0))
	require.NoError(t, l.J.InTx(l.ctx, func(_ context.Context, tx *Tx) error { l.Append(tx, "a"); return nil }))
	require.Len(t, l.Read(0), 1)

	_, err = l.J.Record(l.ctx, nil, Accounts.Key("a"), journal.AnyVersion, Deposited.New(1))
	require.ErrorAs(t, err, &invalid)
	dead := l.Begin()
	require.NoError(t, dead.Rollback())
	_, err = l.J.Record(l.ctx, dead, Accounts.Key("a"), journal.AnyVersion, Deposited.New(1))
	require.ErrorAs(t, err, &invalid)
}

// journalRetries: what only a new transaction resolves says so, and a lost race is a conflict that leaves the
// transaction as it was (J1, J2).
func journalRetries(t testing.TB, k *Kit) {
	l := k.Log(t)
	l.Add("a")
	old, err := k.DB(t).Begin(l.ctx, l.s, true)
	require.NoError(t, err)
	defer func() { _ = old.Rollback() }()
	l.Exec(old, "select 1") // its snapshot
	l.Add("a")
	_, err = l.J.Record(l.ctx, old, Accounts.Key("a"), journal.AnyVersion, Deposited.New(1))
	require.ErrorIs(t, err, core.ErrRetryTx)
	require.NoError(t, old.Rollback())

	// Two entities in two orders.
	x, y := l.Begin(), l.Begin()
	l.Append(x, "a")
	l.Append(y, "b")
	done := make(chan error, 1)
	go func() {
		_, err := l.J.Record(l.ctx, x, Accounts.Key("b"), journal.AnyVersion, Deposited.New(1))
		done <- err
	}()
	k.waiting(t, 1)
	_, err = l.J.Record(l.ctx, y, Accounts.Key("a"), journal.AnyVersion, Deposited.New(1))
	if err == nil { // then the other one had to give up
		require.ErrorIs(t, <-done, core.ErrRetryTx)
		require.NoError(t, y.Rollback())
	} else {
		require.ErrorIs(t, err, core.ErrRetryTx)
		require.NoError(t, y.Rollback())
		require.NoError(t, <-done)
	}
	require.NoError(t, x.Rollback())

	// Who waits for the entity's row finds another version than it expected, or that there is an entity.
	for _, c := range []struct {
		id   string
		want journal.Expect
	}{{"a", journal.Version(2)}, {"new", journal.NoEntity}} {
		first, second := l.Begin(), l.Begin()
		held := l.Append(first, c.id)
		go func() {
			_, err := l.J.Record(l.ctx, second, Accounts.Key(c.id), c.want, Deposited.New(1))
			done <- err
		}()
		k.waiting(t, 1)
		require.NoError(t, first.Commit())
		var conflict *journal.ConflictError
		require.ErrorAs(t, <-done, &conflict)
		require.Equal(t, int64(c.want)+1, conflict.Have)
		next := l.Append(second, c.id)
		require.Equal(t, held+1, next, "a conflict draws no seq")
		third := l.Begin()
		go func() {
			_, err := l.J.Record(l.ctx, third, Accounts.Key(c.id), journal.AnyVersion, Deposited.New(1))
			done <- err
		}()
		k.waiting(t, 1)
		l.Append(second, c.id) // later than when the third began to wait
		require.NoError(t, second.Commit())
		require.NoError(t, <-done)
		require.NoError(t, third.Commit())
		rows, err := l.Store.ReadLog(l.ctx, journal.Filter{Kind: "account", EntityID: c.id, Limit: 10})
		require.NoError(t, err)
		for i := range rows {
			require.Equal(t, int64(i+1), rows[i].Version)
			require.False(t, i > 0 && rows[i].At.Before(rows[i-1].At), "the time is taken when the row is locked")
		}
	}
}

// journalWakesEffects: jobs of effects are told of after the commit, here and elsewhere (J12).
func journalWakesEffects(t testing.TB, k *Kit) {
	l := k.Log(t)
	require.NoError(t, journal.On(l.J, "tell", Deposited, func(context.Context, journal.Event[int], journal.Call[*Tx]) error { return nil }))
	other := k.OpenAt(t, k.SchemaOf(l.s), nil)
	k.Listening(t, other)
	for _, s := range []Store{l.s, other} {
		token := begin(t, s)
		require.NoError(t, l.J.InTx(l.ctx, func(ctx context.Context, tx *Tx) error {
			_, err := l.J.Record(ctx, tx, Accounts.Key("a"), journal.AnyVersion, Deposited.New(1))
			return err
		}))
		_, err := s.AwaitWake(l.ctx, []string{journal.EffectQueue}, token)
		require.NoError(t, err)
	}
}
