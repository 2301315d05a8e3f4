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
	for i, c := range []struct {
		before  int64
		want    journal.Expect
		commits bool
	}{
		{0, journal.NoEntity, true}, {0, journal.NoEntity, false}, {1, journal.Version(1), true}, {1, journal.Version(1), false},
		{0, journal.AnyVersion, true}, {1, journal.AnyVersion, true}, {1, journal.AnyVersion, false},
	} {
		id := fmt.Sprint("e", i)
		if c.before > 0 {
			k.append(id, int(c.before))
		}
		first := k.begin()
		k.appendIn(first.tx, id, journal.Version(c.before), 2)
		end, have := first.commit, c.before+2
		if !c.commits {
			end, have = first.rollback, c.before
		}
		var rec journal.Recorded
		err := k.behind(end, func(ctx context.Context) error {
			return k.store.InTx(ctx, func(ctx context.Context, tx Tx) (err error) {
				rec, err = k.store.Append(ctx, tx, key(id), c.want, raw(1))
				return err
			})
		})
		if c.want.Holds(have) {
			k.ok("the second transaction", err)
			eq(k.kit, "version", rec.Version, have+1)
			have++
		} else {
			conflict := wantError[*journal.ConflictError](k.kit, "the second transaction", err)
			eq(k.kit, "version of the conflict", conflict.Have, have)
		}
		eqs(k.kit, "versions", versions(k.history(id)), upward(1, have))
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
					return errors.New("AnyVersion met a conflict: " + err.Error())
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
