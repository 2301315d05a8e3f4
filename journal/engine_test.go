package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type memTx = *memstore.Transaction

// oneConnection is a store whose only connection is in use while a transaction is open: what is asked beside it fails.
type oneConnection struct {
	journal.Store[memTx]
	t    *testing.T
	open bool
}

func (o *oneConnection) InTx(ctx context.Context, do func(context.Context, memTx) error) error {
	o.free("InTx")
	o.open = true
	defer func() { o.open = false }()
	return o.Store.InTx(ctx, do)
}

func (o *oneConnection) free(what string) {
	if o.open {
		o.t.Errorf("%s was called beside an open transaction", what)
	}
}

func (o *oneConnection) ReadLog(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
	o.free("ReadLog")
	return o.Store.ReadLog(ctx, f)
}

func (o *oneConnection) Cursors(ctx context.Context) ([]journal.Cursor, error) {
	o.free("Cursors")
	return o.Store.Cursors(ctx)
}

func (o *oneConnection) Head(ctx context.Context) (journal.Head, error) {
	o.free("Head")
	return o.Store.Head(ctx)
}

func (o *oneConnection) Announce(ctx context.Context) error {
	o.free("Announce")
	return o.Store.Announce(ctx)
}

// TestOneConnection: within a transaction the journal uses nothing else, or a pool of connections could run dry.
func TestOneConnection(t *testing.T) {
	ctx := t.Context()
	j, err := journal.New[memTx](&oneConnection{Store: memstore.New(memstore.Options{}).Journal(), t: t}, journal.Options{})
	require.NoError(t, err)
	fail := errors.New("poison")
	apply := func(context.Context, memTx, journal.Event[money]) error { return fail }
	inline := journal.NewProjection[memTx]("inline", journal.ProjectionOptions{Inline: true})
	journal.Apply(inline, deposited, func(context.Context, memTx, journal.Event[money]) error { return nil })
	require.NoError(t, j.Project(inline))
	p := journal.NewProjection[memTx]("p", journal.ProjectionOptions{OnError: journal.ParkEntity, Tries: 1})
	journal.Apply(p, deposited, func(ctx context.Context, tx memTx, e journal.Event[money]) error { return apply(ctx, tx, e) })
	require.NoError(t, j.Project(p))
	require.NoError(t, journal.On(j, "e", deposited, func(context.Context, journal.Event[money], journal.Call[memTx]) error { return nil }))
	require.NoError(t, journal.Tap(j, "t", deposited, func(context.Context, journal.Event[money]) error { return nil }))
	w, err := j.Worker(journal.WorkerOptions{})
	require.NoError(t, err)
	for range 3 {
		_, err = journal.Do(ctx, j, accounts, "a", func(context.Context, memTx, journal.State[account]) ([]journal.Draft, error) {
			return []journal.Draft{deposited.New(money{1})}, nil
		})
		require.NoError(t, err)
		_, _, err = w.Drain(ctx, core.DrainOptions{})
	}
	require.NoError(t, err)
	parked, err := j.Parked(ctx, "p", 0)
	require.NoError(t, err)
	require.Len(t, parked, 3)
	fail = nil
	n, err := j.Replay(ctx, "p", accounts.Key("a"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.NoError(t, j.Reset(ctx, "p", nil))
	_, err = j.Backfill(ctx, "e", 0, 0)
	require.NoError(t, err)
}

// TestWorkerThatCannotRun: a worker whose effects can't run says so at once, and does not go on with the rest.
func TestWorkerThatCannotRun(t *testing.T) {
	j, err := journal.New(memstore.New(memstore.Options{}).Journal(), journal.Options{})
	require.NoError(t, err)
	run := func(context.Context, journal.Event[money], journal.Call[memTx]) error { return nil }
	require.NoError(t, journal.On(j, "e", deposited, run))
	require.NoError(t, journal.Tap(j, "t", deposited, func(context.Context, journal.Event[money]) error { return nil }))
	_, err = j.Worker(journal.WorkerOptions{Core: core.WorkerOptions{Lease: time.Nanosecond}})
	var invalid *core.InvalidError
	require.ErrorAs(t, err, &invalid)
}

// TestRecordIsBounded: no Record asks a store to take more than MaxRecordBytes, metadata included (J1).
func TestRecordIsBounded(t *testing.T) {
	j, err := journal.New(memstore.New(memstore.Options{}).Journal(), journal.Options{})
	require.NoError(t, err)
	long := journal.Type[string](journal.NewEntity[account]("long"), "said", nil)
	one := long.New(strings.Repeat("x", 2000)).WithMeta(map[string]string{"k": strings.Repeat("v", core.MaxMetadataBytes-1)})
	err = j.InTx(t.Context(), func(ctx context.Context, tx memTx) error {
		_, err := j.Record(ctx, tx, journal.EntityKey{Kind: "long", ID: "a"}, journal.AnyVersion, slices.Repeat([]journal.Draft{one}, journal.MaxEvents)...)
		return err
	})
	var invalid *core.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "Drafts", invalid.Field)
}

// TestDeclarationsPanic: mistakes in package variables show when the program starts.
func TestDeclarationsPanic(t *testing.T) {
	e := journal.NewEntity[account]("x")
	journal.Type[money](e, "a", nil)
	same := func(m json.RawMessage) (json.RawMessage, error) { return m, nil }
	for what, declare := range map[string]func(){
		"a kind with a colon":  func() { journal.NewEntity[account]("a:b") },
		"no kind":              func() { journal.NewEntity[account]("") },
		"a type twice":         func() { journal.Type[money](e, "a", nil) },
		"no type":              func() { journal.Type[money](e, "", nil) },
		"an upcast is missing": func() { journal.Type[money](e, "b", nil, journal.Upcast(1, same), journal.Upcast(3, same)) },
	} {
		require.Panics(t, declare, what)
	}
}

func TestWords(t *testing.T) {
	require.Equal(t, "version 3", journal.Version(3).String())
	require.Equal(t, "no entity", journal.NoEntity.String())
	require.Equal(t, "any version", journal.AnyVersion.String())
	require.Equal(t, "account:1", accounts.Key("1").String())
	require.Equal(t, "account/deposited", deposited.Name())
	require.EqualError(t, &journal.ConflictError{Key: accounts.Key("1"), Want: 2, Have: 3}, "journal: account:1 has version 3, expected version 2")
}
