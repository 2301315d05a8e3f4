package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stintmq/stint/journal"
)

// audit holds everything against the events: what the projection made of them, what the shop has heard of.
func (b *bank) audit(ctx context.Context, out io.Writer) error {
	var hooks []received
	if err := b.db.DB().NewSelect().Model(&hooks).Scan(ctx); err != nil {
		return err
	}
	heard, calls := make(map[string]bool), int64(0)
	for _, h := range hooks {
		heard[h.ID] = true
		calls += h.Times
	}
	var rows []balance
	if err := b.db.DB().NewSelect().Model(&rows).Scan(ctx); err != nil {
		return err
	}
	projected := make(map[string]int64)
	for _, r := range rows {
		projected[r.Account] = r.Balance
	}

	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	type count struct{ kind, event string }
	counts, folded, sum := make(map[count]int), make(map[string]int64), int64(0)
	for r, err := range b.Log(ctx, journal.Filter{}) {
		if err != nil {
			return err
		}
		counts[count{r.Key.Kind, r.Type}]++
		switch _, known := folded[r.Key.ID]; {
		case r.Type == "completed":
			check(heard[journal.JobID(webhook, r.Seq)], "the shop has not heard of %s", r.Key)
		case r.Key.Kind == "account" && !known:
			a, err := journal.Read(ctx, b.Journal, accounts, r.Key.ID)
			if err != nil {
				return err
			}
			folded[r.Key.ID] = a.Value.Balance
			sum += a.Value.Balance
			check(a.Value.Balance >= 0 || r.Key.ID == world, "%s is overdrawn by %d", r.Key, -a.Value.Balance)
			check(projected[r.Key.ID] == a.Value.Balance, "the projection has %d for %s, its events %d", projected[r.Key.ID], r.Key, a.Value.Balance)
		}
	}
	done := counts[count{"transfer", "completed"}]
	check(sum == 0, "all balances make %d, not 0", sum)
	check(len(projected) == len(folded), "the projection has %d accounts, the log %d", len(projected), len(folded))
	check(counts[count{"account", "posted"}] == 2*done, "%d postings for %d transfers", counts[count{"account", "posted"}], done)
	check(len(heard) == done, "%d distinct webhooks for %d transfers", len(heard), done)

	printf(out, "in the bank: %d transfers, %d refused, %d accounts, whose balances make %d", done, counts[count{"transfer", "refused"}], len(folded), sum)
	printf(out, "at the shop: %d distinct webhooks, each counted once, in %d calls that it answered", len(heard), calls)
	if len(wrong) > 0 {
		return fmt.Errorf("not exact: %w", errors.Join(wrong...))
	}
	printf(out, "all of it is exact")
	return nil
}
