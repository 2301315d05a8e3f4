package journal_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
)

// TestWaitsOnClosedStore: who waits for what a closed store will never say is told at once.
func TestWaitsOnClosedStore(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *journal.Journal[memTx]) error{
		"WaitIdle": func(ctx context.Context, j *journal.Journal[memTx]) error { return j.WaitIdle(ctx) },
		"WaitFor":  func(ctx context.Context, j *journal.Journal[memTx]) error { return j.WaitFor(ctx, "p", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New(memstore.Options{})
				j, err := journal.New(s.Journal(), journal.Options{})
				require.NoError(t, err)
				p := journal.NewProjection[memTx]("p")
				journal.Apply(p, deposited, func(context.Context, memTx, journal.Event[money]) error { return nil })
				require.NoError(t, j.Project(p))
				require.NoError(t, j.InTx(t.Context(), func(ctx context.Context, tx memTx) error {
					_, err := j.Record(ctx, tx, accounts.Key("a"), journal.AnyVersion, deposited.New(money{1}))
					return err
				}))
				done := make(chan error, 1)
				go func() { done <- wait(t.Context(), j) }()
				time.Sleep(time.Minute)
				require.NoError(t, s.Close())
				began := time.Now()
				require.ErrorIs(t, <-done, core.ErrClosed)
				require.Less(t, time.Since(began), time.Second)
			})
		})
	}
}
