package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
)

func retainRaceCases() []testCase {
	const limit = 60 * time.Second
	return []testCase{
		{rule: "Q28", name: "prunes", run: retainPrunes, needs: []Capability{CapRetain, CapInspector, CapOpen}, limit: limit,
			demands: "prunes at once through two handles delete each job once, and their numbers add up"},
		{rule: "Q28", name: "prunes-and-others", run: retainBeside, needs: []Capability{CapRetain, CapInspector, CapAdmin}, limit: limit,
			demands: "prunes beside claims, acks, retries and removals: every job ends as often as it was revived, and goes once"},
	}
}

// pruneUntil prunes until done says so, and returns how many jobs that deleted. A store that lets one at a time prune
// answers 0 to the others, so that alone says nothing.
func pruneUntil(ctx context.Context, s core.Store, req core.PruneRequest, done func() (bool, error)) (total int, err error) {
	r, _ := core.As[core.Retainer](s)
	for {
		n, err := r.Prune(ctx, req)
		if err != nil {
			return total, fmt.Errorf("Prune: %w", err)
		}
		if n > req.Limit {
			return total, fmt.Errorf("Prune with limit %d deleted %d", req.Limit, n)
		}
		total += n
		if over, err := done(); over || err != nil {
			return total, err
		}
	}
}

func retainPrunes(k *kit) {
	const n, kept = 150, 30
	k.addMany(n)
	c := k.claim(want(n))
	acks := make([]core.Ack, len(c.Jobs))
	for i, l := range c.leases() {
		acks[i] = core.Ack{Lease: l, Outcome: core.OutcomeComplete}
	}
	k.acks(acks...)
	req := core.PruneRequest{Default: core.Keep{Completed: keepCount(kept)}, Limit: 7}
	stores := []core.Store{k.store, k.other().store}
	var sum atomic.Int64
	k.race(4, func(ctx context.Context, worker int) error {
		total, err := pruneUntil(ctx, stores[worker%2], req, func() (bool, error) {
			counts, err := k.insp.Counts(ctx, "")
			return counts[core.StateCompleted] <= kept, err
		})
		sum.Add(int64(total))
		return err
	})
	eq(k, "jobs that prunes say they deleted", sum.Load(), n-kept)
	k.wantCounts("", map[core.State]int64{core.StateCompleted: kept})
	jobs := k.list(core.Query{Ascending: true, Limit: core.MaxListLimit}).Jobs
	eq(k, "jobs in List", len(jobs), kept)
	eq(k, "the oldest job that is left", jobs[0].ID, fmt.Sprintf("job-%d", n-kept))
}

// retainBeside has every job fail once; some are revived, and complete, some are removed; all others are pruned.
func retainBeside(k *kit) {
	const n = 120
	k.addMany(n)
	store, admin, insp := k.store, k.admin, k.insp
	var revived, completed, removed, pruned atomic.Int64
	failed := make(chan string, n) // ids of jobs that failed
	over := func(ctx context.Context) (bool, error) {
		counts, err := insp.Counts(ctx, "")
		sum := int64(0)
		for _, c := range counts {
			sum += c
		}
		return sum == 0, err
	}
	keep := core.PruneRequest{Default: everyState(keepNone), Limit: 5}
	work := func(ctx context.Context) error {
		for {
			token := core.NewToken()
			c, err := store.Claim(ctx, core.ClaimRequest{Wants: wants(4), Token: token, Lease: time.Hour})
			if err != nil {
				return fmt.Errorf("Claim: %w", err)
			}
			acks := make([]core.Ack, len(c.Jobs))
			for i, j := range c.Jobs {
				acks[i] = core.Ack{Lease: core.Lease{ID: j.ID, Token: token, Ref: j.Ref}, Outcome: core.OutcomeFail}
				if j.Runs > 0 {
					acks[i].Outcome = core.OutcomeComplete
				}
			}
			res, err := store.Ack(ctx, acks)
			if err != nil {
				return fmt.Errorf("Ack: %w", err)
			}
			for i, r := range res {
				switch {
				case r.Err != nil:
					return fmt.Errorf("Ack of %q: %w", acks[i].Lease.ID, r.Err)
				case acks[i].Outcome == core.OutcomeFail:
					failed <- acks[i].Lease.ID
				default:
					completed.Add(1)
				}
			}
			if done, err := over(ctx); done || err != nil {
				return err
			}
		}
	}
	operate := func(ctx context.Context) error {
		for i := range n {
			var id string
			select {
			case id = <-failed:
			case <-ctx.Done():
				return ctx.Err()
			}
			if i%3 == 2 {
				ok, err := admin.Remove(ctx, id)
				if err != nil {
					return fmt.Errorf("Remove: %w", err)
				}
				if ok {
					removed.Add(1)
				}
				continue
			}
			switch err := admin.Retry(ctx, id); {
			case err == nil:
				revived.Add(1)
			case !errors.Is(err, core.ErrNotFound):
				return fmt.Errorf("Retry: %w", err)
			}
		}
		return nil
	}
	k.race(5, func(ctx context.Context, worker int) error {
		switch worker {
		case 0, 1:
			return work(ctx)
		case 2:
			return operate(ctx)
		}
		total, err := pruneUntil(ctx, store, keep, func() (bool, error) { return over(ctx) })
		pruned.Add(int64(total))
		return err
	})
	eq(k, "jobs that completed, of those that were revived", completed.Load(), revived.Load())
	eq(k, "jobs that prunes and removals say they deleted", pruned.Load()+removed.Load(), n)
	k.left()
}
