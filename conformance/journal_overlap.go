package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

func overlapCases[Tx any]() []journalCase[Tx] {
	overlap := []Capability{capOverlap}
	return []journalCase[Tx]{
		{rule: "J1", name: "one-entity", run: overlapEntity[Tx],
			demands: "a second transaction that appends to an entity waits for the end of the first, and then sees its version"},
		{rule: "J1", name: "two-entities", run: overlapEntities[Tx], needs: overlap,
			demands: "transactions that append to different entities do not wait for each other"},
		{rule: "J1", name: "racing", run: overlapRacing[Tx],
			demands: "of many that append to one entity, each gets a version of its own or a ConflictError, and versions are dense"},
		{rule: "J1", name: "deadlock", run: overlapDeadlock[Tx], needs: overlap,
			demands: "of two that take two entities in opposite orders one goes on, the other's error wraps ErrRetryTx"},
	}
}

// behind calls do in a goroutine, waits a little, then ends what it may be waiting for and returns its error.
func (k *jkit[Tx]) behind(end func(), do func(ctx context.Context) error) error {
	k.Helper()
	started, done := make(chan struct{}), make(chan error, 1)
	ctx := k.ctx
	k.waiters.Go(func() {
		close(started)
		done <- do(ctx)
	})
	<-started
	w := waiter{returned: make(chan woke, 1)}
	w.stays() // long enough for it to come to where it waits, on most machines
	end()
	select {
	case err := <-done:
		return err
	case <-k.ctx.Done():
		k.failf("a transaction that waited for another one never went on")
		return nil
	}
}

func overlapEntity[Tx any](k *jkit[Tx]) {
	for i, commits := range []bool{true, false} {
		id := fmt.Sprint("e", i)
		first := k.begin()
		k.appendIn(first.tx, id, journal.NoEntity, 2)
		end, have := first.commit, int64(2)
		if !commits {
			end, have = first.rollback, 0
		}
		var rec journal.Recorded
		err := k.behind(end, func(ctx context.Context) error {
			return k.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
				_, err := k.store.Append(ctx, tx, key(id), journal.Version(5), raw(1))
				var c *journal.ConflictError
				if !errors.As(err, &c) || c.Have != have {
					return fmt.Errorf("the second transaction got %w, want a ConflictError with version %d", err, have)
				}
				rec, err = k.store.Append(ctx, tx, key(id), journal.Version(have), raw(1))
				return err
			})
		})
		k.ok("the second transaction", err)
		eq(k.kit, "version", rec.Version, have+1)
		eqs(k.kit, "versions", versions(k.history(id)), upward(1, have+1))
	}
}

func overlapEntities[Tx any](k *jkit[Tx]) {
	k.append("a", 1)
	k.append("b", 1)
	one, two := k.begin(), k.begin()
	k.appendIn(one.tx, "a", journal.Version(1), 1)
	k.appendIn(two.tx, "b", journal.Version(1), 1)
	k.appendIn(one.tx, "c", journal.NoEntity, 1)
	k.appendIn(two.tx, "d", journal.NoEntity, 1)
	two.commit()
	one.commit()
	for _, id := range []string{"a", "b"} {
		eqs(k.kit, "versions of "+id, versions(k.history(id)), upward(1, 2))
	}
}

func overlapRacing[Tx any](k *jkit[Tx]) {
	const racers, each = 6, 10
	var mu sync.Mutex
	wins, conflicts := 0, 0
	k.race(racers, func(ctx context.Context, worker int) error {
		for i := range each {
			err := k.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
				rows, err := k.store.ReadEntity(ctx, tx, key("a"), 0, 1000)
				if err != nil {
					return err
				}
				want := journal.Version(int64(len(rows)))
				if (worker+i)%3 == 0 {
					want = journal.AnyVersion
				}
				rec, err := k.store.Append(ctx, tx, key("a"), want, raw(1))
				if err == nil && want != journal.AnyVersion && rec.Version != int64(len(rows))+1 {
					return fmt.Errorf("version %d was answered where %s was expected", rec.Version, want)
				}
				if want == journal.AnyVersion && errors.Is(err, journal.ErrConflict) {
					return fmt.Errorf("AnyVersion met a conflict: %v", err)
				}
				return err
			})
			mu.Lock()
			switch {
			case err == nil:
				wins++
			case errors.Is(err, journal.ErrConflict):
				conflicts++
			default:
				mu.Unlock()
				return err
			}
			mu.Unlock()
		}
		return nil
	})
	eq(k.kit, "wins and conflicts", wins+conflicts, racers*each)
	eqs(k.kit, "versions", versions(k.history("a")), upward(1, int64(wins)))
	eq(k.kit, "events", len(k.all()), wins)
}

func overlapDeadlock[Tx any](k *jkit[Tx]) {
	k.append("a", 1)
	k.append("b", 1)
	met := make(chan struct{}, 2)
	var mu sync.Mutex
	won, retry := 0, 0
	k.race(2, func(ctx context.Context, worker int) error {
		ids := []string{"a", "b"}
		if worker == 1 {
			ids = []string{"b", "a"}
		}
		err := k.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
			if _, err := k.store.Append(ctx, tx, key(ids[0]), journal.AnyVersion, raw(1)); err != nil {
				return err
			}
			met <- struct{}{}
			for len(met) < 2 && ctx.Err() == nil { // both hold one
				select {
				case <-ctx.Done():
				case <-tickOnce():
				}
			}
			_, err := k.store.Append(ctx, tx, key(ids[1]), journal.AnyVersion, raw(1))
			return err
		})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			won++
		case errors.Is(err, core.ErrRetryTx):
			retry++
		default:
			return err
		}
		return nil
	})
	if won == 0 || won+retry != 2 {
		k.failf("of two in a deadlock %d went on and %d may be retried", won, retry)
	}
	eq(k.kit, "events", len(k.all()), 2+2*won)
}
