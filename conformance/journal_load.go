package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

func loadCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J2", name: "pages", run: loadPages[Tx],
			demands: "Load folds all events of an entity, more than a page of them too, and only its own"},
		{rule: "J2", name: "in-its-transaction", run: loadOwn[Tx],
			demands: "Load sees what its transaction recorded"},
		{rule: "J2", name: "nobody", run: loadNobody[Tx],
			demands: "an entity without events has version 0 and a zero value"},
	}
}

// state loads an account.
func (k *jkit[Tx]) state(j *journal.Journal[Tx], e *journal.Entity[balance], id string) journal.State[balance] {
	k.Helper()
	var s journal.State[balance]
	k.in("Load", func(ctx context.Context, tx Tx) (err error) {
		s, err = journal.Load(ctx, j, tx, e, id)
		return err
	})
	return s
}

func loadPages[Tx any](k *jkit[Tx]) {
	j := k.journal()
	for _, n := range []int{1000, 999, 1} { // a page is 500
		k.record(j, "a", k.deposits(n)...)
		k.record(j, "b", k.deposits(1)...)
	}
	s := k.state(j, k.entity, "a")
	eq(k.kit, "state", s, journal.State[balance]{Key: key("a"), Version: 2000, Value: balance{500_500 + 499_500 + 1, 2000}})
}

func loadOwn[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.record(j, "a", k.deposits(1)...)
	k.in("Record and Load", func(ctx context.Context, tx Tx) error {
		if _, err := j.Record(ctx, tx, key("a"), journal.Version(1), k.out.New(amount{5})); err != nil {
			return err
		}
		s, err := journal.Load(ctx, j, tx, k.entity, "a")
		eq(k.kit, "state", s.Value, balance{-4, 2})
		return err
	})
}

func loadNobody[Tx any](k *jkit[Tx]) {
	s := k.state(k.journal(), k.entity, "a")
	eq(k.kit, "state", s, journal.State[balance]{Key: key("a")})
	eq(k.kit, "Exists", s.Exists(), false)
}

func doCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J2", name: "decides", run: doDecides[Tx],
			demands: "Do loads, records what decide says on that version, and returns the state after it"},
		{rule: "J2", name: "retries-conflicts", run: doRetries[Tx],
			demands: "Do decides again, on the new state, when somebody was quicker, and when the database gave the transaction up"},
		{rule: "J2", name: "bounded", run: doBounded[Tx],
			demands: "Do gives up after its number of attempts, and returns the conflict"},
		{rule: "J2", name: "error-ends", run: doError[Tx],
			demands: "decide's error ends Do, which returns it, and nothing is written"},
		{rule: "J2", name: "racing", run: doRacing[Tx],
			demands: "of many Do at once each counts, none is lost"},
		{rule: "J2", name: "snapshot", run: doSnapshot[Tx],
			demands: "a snapshot is used where it fits, and one of another SnapshotVersion is not"},
	}
}

func doDecides[Tx any](k *jkit[Tx]) {
	j := k.journal()
	seen := journal.State[balance]{}
	decide := func(drafts ...journal.Draft) func(context.Context, Tx, journal.State[balance]) ([]journal.Draft, error) {
		return func(ctx context.Context, tx Tx, s journal.State[balance]) ([]journal.Draft, error) {
			seen = s
			return drafts, k.count(ctx, tx, "calls", 1)
		}
	}
	s, err := journal.Do(k.ctx, j, k.entity, "a", decide(k.inRef.New(amount{7}), k.out.New(amount{3})))
	k.ok("Do", err)
	eq(k.kit, "state that decide saw", seen, journal.State[balance]{Key: key("a")})
	eq(k.kit, "state after", s, journal.State[balance]{Key: key("a"), Version: 2, Value: balance{4, 2}})
	s, err = journal.Do(k.ctx, j, k.entity, "a", decide())
	k.ok("Do of nothing", err)
	eq(k.kit, "state that decide saw", seen.Value, balance{4, 2})
	eq(k.kit, "state after nothing", s.Version, 2)
	eq(k.kit, "events", len(k.all()), 2)
	k.wantUser("what decide wrote", "", map[string]string{"calls": "2"})
}

// crossing has somebody else append just before an Append, some times.
type crossing[Tx any] struct {
	journal.Store[Tx]
	mu    sync.Mutex
	times int
	fail  error // instead, if set
}

func (c *crossing[Tx]) Append(ctx context.Context, tx Tx, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
	c.mu.Lock()
	cross := c.times > 0
	c.times--
	c.mu.Unlock()
	switch {
	case !cross:
	case c.fail != nil:
		return journal.Recorded{}, c.fail
	default: // the same transaction stands for somebody else: what it wrote is gone with the conflict
		if _, err := c.Store.Append(ctx, tx, key, want, raw(1)); err != nil {
			return journal.Recorded{}, err
		}
	}
	return c.Store.Append(ctx, tx, key, want, rows)
}

func (k *jkit[Tx]) crossed(times int, fail error) *journal.Journal[Tx] {
	k.Helper()
	j, err := journal.New[Tx](&crossing[Tx]{Store: k.store, times: times, fail: fail}, journal.Options{})
	k.ok("New", err)
	return j
}

func doRetries[Tx any](k *jkit[Tx]) {
	for what, fail := range map[string]error{"conflict": nil, "retry": fmt.Errorf("deadlock: %w", core.ErrRetryTx)} {
		calls := 0
		s, err := journal.Do(k.ctx, k.crossed(3, fail), k.entity, what,
			func(ctx context.Context, tx Tx, s journal.State[balance]) ([]journal.Draft, error) {
				calls++
				return k.deposits(1), k.count(ctx, tx, what, 1)
			})
		k.ok("Do", err)
		eq(k.kit, "calls of decide", calls, 4)
		eq(k.kit, "version", s.Version, 1)
		eqs(k.kit, "versions", versions(k.history(what)), []int64{1})
		k.wantUser("by the call that committed", what, map[string]string{what: "1"})
	}
}

func doBounded[Tx any](k *jkit[Tx]) {
	calls := 0
	decide := func(context.Context, Tx, journal.State[balance]) ([]journal.Draft, error) {
		calls++
		return k.deposits(1), nil
	}
	_, err := journal.Do(k.ctx, k.crossed(1000, nil), k.entity, "a", decide, journal.DoOptions{Attempts: 3})
	k.is("Do", err, journal.ErrConflict)
	eq(k.kit, "calls of decide", calls, 3)
	calls = 0
	_, err = journal.Do(k.ctx, k.crossed(1000, nil), k.entity, "a", decide)
	k.is("Do", err, journal.ErrConflict)
	eq(k.kit, "calls of decide by default", calls, 10)
	eq(k.kit, "events", len(k.all()), 0)
}

func doError[Tx any](k *jkit[Tx]) {
	mine := errors.New("not enough money")
	calls := 0
	_, err := journal.Do(k.ctx, k.journal(), k.entity, "a",
		func(ctx context.Context, tx Tx, _ journal.State[balance]) ([]journal.Draft, error) {
			calls++
			return k.deposits(1), errors.Join(mine, k.mark(ctx, tx, "m"))
		})
	k.is("Do", err, mine)
	eq(k.kit, "calls of decide", calls, 1)
	eq(k.kit, "events", len(k.all()), 0)
	k.wantUser("after an error", "", map[string]string{})
}

func doRacing[Tx any](k *jkit[Tx]) {
	j := k.journal()
	const racers, each = 4, 8
	k.race(racers, func(ctx context.Context, _ int) error {
		for range each {
			_, err := journal.Do(ctx, j, k.entity, "a", func(_ context.Context, _ Tx, s journal.State[balance]) ([]journal.Draft, error) {
				if int64(s.Value.Sum) != s.Version {
					return nil, fmt.Errorf("version %d has the sum %d", s.Version, s.Value.Sum)
				}
				return []journal.Draft{k.inRef.New(amount{1})}, nil
			}, journal.DoOptions{Attempts: 1000})
			if err != nil {
				return err
			}
		}
		return nil
	})
	s := k.state(j, k.entity, "a")
	eq(k.kit, "sum", s.Value.Sum, racers*each)
	eqs(k.kit, "versions", versions(k.history("a")), upward(1, racers*each))
}

func doSnapshot[Tx any](k *jkit[Tx]) {
	j := k.journal()
	first := newBank(journal.EntityOptions{SnapshotEvery: 10, SnapshotVersion: 1})
	do := func(b bank, n int) journal.State[balance] {
		k.Helper()
		s, err := journal.Do(k.ctx, j, b.entity, "a", func(context.Context, Tx, journal.State[balance]) ([]journal.Draft, error) {
			return b.deposits(n), nil
		})
		k.ok("Do", err)
		return s
	}
	do(first, 20)
	do(first, 1)
	eq(k.kit, "snapshots", len(k.space("snapshot", "")), 1)
	eq(k.kit, "state", k.state(j, first.entity, "a").Value, balance{211, 21})

	// That it is used shows by one that says something else than the events.
	for key, value := range k.space("snapshot", "") {
		var kept map[string]any
		k.ok("snapshot", json.Unmarshal([]byte(value), &kept))
		kept["state"] = balance{1000, 20}
		forged, err := json.Marshal(kept)
		k.ok("snapshot", err)
		k.in("PutNote", func(ctx context.Context, tx Tx) error {
			return k.store.PutNote(ctx, tx, journal.Note{Space: "snapshot", Key: key, Value: forged})
		})
	}
	eq(k.kit, "state from a snapshot", k.state(j, first.entity, "a").Value, balance{1001, 21})
	eq(k.kit, "another entity", k.state(j, first.entity, "b").Version, 0)
	eq(k.kit, "state without snapshots", k.state(j, k.entity, "a").Value, balance{211, 21})

	next := newBank(journal.EntityOptions{SnapshotEvery: 10, SnapshotVersion: 2})
	eq(k.kit, "state of another SnapshotVersion", k.state(j, next.entity, "a").Value, balance{211, 21})
	eq(k.kit, "state that Do saw", do(next, 1).Value, balance{212, 22})
	eq(k.kit, "state from the new snapshot", k.state(j, next.entity, "a").Value, balance{212, 22})
}
