package journal_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
)

// TestNilArguments: what must be there is asked for by name, before anything is written, and a zero Ref is none.
func TestNilArguments(t *testing.T) {
	ctx := t.Context()
	s := memstore.New(memstore.Options{})
	j, err := journal.New(s.Journal(), journal.Options{})
	require.NoError(t, err)
	var (
		noEntity *journal.Entity[account]
		noRef    journal.Ref[money]
		tx       = s.Begin()
	)
	decide := func(context.Context, memTx, journal.State[account]) ([]journal.Draft, error) { return nil, nil }
	hear := func(context.Context, journal.Event[money]) error { return nil }
	effect := func(context.Context, journal.Event[money], journal.Call[memTx]) error { return nil }
	for name, c := range map[string]struct {
		field string
		call  func() error
	}{
		"New":           {"Store", func() error { _, err := journal.New[memTx](nil, journal.Options{}); return err }},
		"InTx":          {"do", func() error { return j.InTx(ctx, nil) }},
		"Transact":      {"do", func() error { return j.Transact(ctx, nil) }},
		"Do, decide":    {"decide", func() error { _, err := journal.Do(ctx, j, accounts, "a", nil); return err }},
		"Do, entity":    {"Entity", func() error { _, err := journal.Do(ctx, j, noEntity, "a", decide); return err }},
		"Load":          {"Entity", func() error { _, err := journal.Load(ctx, j, tx, noEntity, "a"); return err }},
		"Read":          {"Entity", func() error { _, err := journal.Read(ctx, j, noEntity, "a"); return err }},
		"Project":       {"Projection", func() error { return j.Project(nil) }},
		"On, function":  {"Effect", func() error { return journal.On[money, memTx](j, "e", deposited, nil) }},
		"On, type":      {"Effect", func() error { return journal.On(j, "e", noRef, effect) }},
		"Tap, function": {"Tap", func() error { return journal.Tap(j, "t", deposited, nil) }},
		"Tap, type":     {"Tap", func() error { return journal.Tap(j, "t", noRef, hear) }},
		"Apply, type": {"Projection", func() error {
			p := journal.NewProjection[memTx]("p")
			journal.Apply(p, noRef, func(context.Context, memTx, journal.Event[money]) error { return nil })
			return j.Project(p)
		}},
		"RecordOn": {"Entity", func() error {
			_, err := journal.RecordOn(ctx, j, tx, noEntity, journal.State[account]{Key: accounts.Key("a")}, deposited.New(money{1}))
			return err
		}},
		"Record, zero draft": {"Drafts", func() error {
			_, err := j.Record(ctx, tx, accounts.Key("a"), journal.AnyVersion, journal.Draft{})
			return err
		}},
		"Record, zero Ref's": {"Drafts", func() error {
			_, err := j.Record(ctx, tx, accounts.Key("a"), journal.AnyVersion, noRef.New(money{1}))
			return err
		}},
		"Ref.Decode": {"Ref", func() error { _, err := noRef.Decode(journal.Row{}); return err }},
		"Ref.Name":   {"Ref", panics(func() { _ = noRef.Name() })},
		"Handle":     {"Worker", panics(func() { j.Handle(nil) })},
		"Apply, to": {"Projection", panics(func() {
			journal.Apply(nil, deposited, func(context.Context, *memstore.Transaction, journal.Event[money]) error { return nil })
		})},
		"Apply, f":     {"f", panics(func() { journal.Apply(journal.NewProjection[*memstore.Transaction]("p"), deposited, nil) })},
		"Type, entity": {"Entity", panics(func() { journal.Type[money](noEntity, "t", nil) })},
		"Type, codec":  {"Codec", panics(func() { journal.Type[money](journal.NewEntity[account]("k"), "t", nil, journal.WithCodec(nil)) })},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.call()
			invalid, ok := errors.AsType[*core.InvalidError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.field, invalid.Field)
		})
	}
	require.NoError(t, tx.Commit())
	rows, err := j.History(ctx, journal.Filter{})
	require.NoError(t, err)
	require.Empty(t, rows)
}

// panics makes what a declaration panics with an error.
func panics(f func()) func() error {
	return func() (err error) {
		defer func() { err, _ = recover().(error) }()
		f()
		return nil
	}
}
