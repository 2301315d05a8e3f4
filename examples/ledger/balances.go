package main

import (
	"context"
	"io"
	"time"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// balance is a row of the table of balances, for those who would rather ask SQL.
type balance struct {
	bun.BaseModel `bun:"table:ledger_balances,alias:b"`

	Account string `bun:",pk"`
	Balance int64
}

// balances is the projection that keeps them. It may add up, since it has each event exactly once.
func balances() *journal.Projection[bun.Tx] {
	p := journal.NewProjection[bun.Tx]("balances")
	journal.Apply(p, posted, func(ctx context.Context, tx bun.Tx, e journal.Event[Posting]) error {
		row := &balance{Account: e.Key.ID, Balance: e.Payload.Amount}
		_, err := tx.NewInsert().Model(row).On("CONFLICT (account) DO UPDATE").Set("balance = b.balance + EXCLUDED.balance").Exec(ctx)
		return err
	})
	return p
}

// webhooks is how many were delivered, and how many were not yet.
func (b *bank) webhooks(ctx context.Context) (delivered, left int64, err error) {
	n, err := b.db.Counts(ctx, journal.EffectQueue)
	return n[core.StateCompleted], n[core.StateWaiting] + n[core.StateDelayed] + n[core.StateActive], err
}

// watch says how far all of it is, until ctx ends.
func (b *bank) watch(ctx context.Context, every time.Duration, out io.Writer) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	seen := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		status, head, err := b.Cursors(ctx)
		if err != nil {
			continue // whoever works says so
		}
		delivered, left, err := b.webhooks(ctx)
		if err != nil {
			continue
		}
		now := b.recorded.Load()
		printf(out, "%d events, balances %d behind, %d webhooks delivered, %d to go, %.0f transfers/s",
			head.Seq, status[0].Lag, delivered, left, float64(now-seen)/every.Seconds())
		seen = now
	}
}
