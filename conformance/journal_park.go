package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stintmq/stint/journal"
)

func parkCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J7", name: "entity-waits", run: parkWaits[Tx],
			demands: "with ParkEntity the later events of a poison event's entity are put aside in order, and other entities go on"},
		{rule: "J7", name: "replay", run: parkReplay[Tx],
			demands: "Replay applies an entity's parked events in order, all or none; later ones go their way again"},
		{rule: "J7", name: "replay-closed", run: parkClosed[Tx],
			demands: "Replay and Discard for a cursor that is inline, or was closed, are a ModeError and change nothing"},
		{rule: "J7", name: "discard", run: parkDiscard[Tx],
			demands: "Discard drops an entity's parked events, and only its; later ones go their way again"},
		{rule: "J7", name: "many-entities", run: parkMany[Tx],
			demands: "parked entities are told apart, whatever their names"},
	}
}

func (k *jkit[Tx]) parked(j *journal.Journal[Tx], want ...int64) []journal.Aside {
	k.Helper()
	all, err := j.Parked(k.ctx, "p", 1000)
	k.ok("Parked", err)
	got := []int64{}
	for _, a := range all {
		got = append(got, a.Seq)
	}
	eqs(k.kit, "parked", got, append([]int64{}, want...))
	eq(k.kit, "parked in Cursors", k.status(j, "p").Parked, int64(len(want)))
	return all
}

// parkedOn records for a and b, with the second event of a as poison, and has it parked.
func (k *jkit[Tx]) parkedOn(j *journal.Journal[Tx], p *poisoned) (a, b []int64) {
	k.Helper()
	p.n = 2
	k.projecting(j, "p", journal.ProjectionOptions{OnError: journal.ParkEntity, Tries: 2, Batch: 3}, p.first, k.inRef)
	for n := 1; n <= 4; n++ {
		a = append(a, k.record(j, "a", k.inRef.New(amount{n})).Last())
		b = append(b, k.record(j, "b", k.inRef.New(amount{10 * n}), k.out.New(amount{1})).Seqs[0])
	}
	k.later("parked", j, func() bool { return k.status(j, "p").Lag == 0 })
	return a, b
}

func sorted(seqs ...[]int64) []int64 { return slices.Sorted(slices.Values(slices.Concat(seqs...))) }

func parkWaits[Tx any](k *jkit[Tx]) {
	j := k.journal()
	var p poisoned
	a, b := k.parkedOn(j, &p)
	k.wantMarked("all but what is parked", "p", sorted(a[:1], b)...)
	aside := k.parked(j, a[1:]...)
	for i, x := range aside {
		eq(k.kit, "key", x.Key, key("a"))
		if x.At.IsZero() || i == 0 && !strings.Contains(x.Error, "poison") || i > 0 && x.Error == "" {
			k.failf("parked: %+v", x)
		}
	}
	// What comes later is parked too: the order of an entity holds, even if it could be applied.
	p.healed.Store(true)
	a = append(a, k.record(j, "a", k.deposits(2)...).Seqs...)
	b = append(b, k.record(j, "b", k.deposits(1)...).Last())
	k.advance(time.Hour)
	k.catchUp(j)
	k.parked(j, a[1:]...)
	k.wantMarked("all but what is parked", "p", sorted(a[:1], b)...)
	eq(k.kit, "failures", k.status(j, "p").Failures, 0)
	other := k.journal() // a worker that begins now knows of them, too
	k.projecting(other, "p", journal.ProjectionOptions{OnError: journal.ParkEntity}, p.first, k.inRef)
	a = append(a, k.record(j, "a", k.deposits(1)...).Last())
	k.catchUp(other)
	k.parked(j, a[1:]...)
}

func parkReplay[Tx any](k *jkit[Tx]) {
	j := k.journal()
	var p poisoned
	a, b := k.parkedOn(j, &p)
	_, err := j.Replay(k.ctx, "p", key("a"))
	k.is("Replay of what still fails", err, errPoison)
	k.parked(j, a[1:]...)
	p.n = 4
	_, err = j.Replay(k.ctx, "p", key("a"))
	k.is("Replay whose last fails", err, errPoison)
	k.parked(j, a[1:]...)
	k.wantMarked("after Replays that failed", "p", sorted(a[:1], b)...)

	p.healed.Store(true)
	n, err := j.Replay(k.ctx, "p", key("b"))
	k.ok("Replay of nothing", err)
	eq(k.kit, "replayed of b", n, 0)
	k.parked(j, a[1:]...)
	var order heard[int64]
	again := k.journal()
	k.projecting(again, "p", journal.ProjectionOptions{OnError: journal.ParkEntity}, func(e journal.Event[amount]) error {
		order.add(e.Seq)
		return nil
	}, k.inRef)
	n, err = again.Replay(k.ctx, "p", key("a"))
	k.ok("Replay", err)
	eq(k.kit, "replayed", n, 3)
	eqs(k.kit, "order", order.list(), a[1:])
	k.parked(j)
	k.wantMarked("after a Replay", "p", sorted(a, b)...)
	a = append(a, k.record(j, "a", k.deposits(1)...).Last())
	k.catchUp(j)
	k.wantMarked("what comes later", "p", sorted(a, b)...)
	n, err = j.Replay(k.ctx, "p", key("a"))
	k.ok("Replay again", err)
	eq(k.kit, "replayed again", n, 0)
	_, err = j.Replay(k.ctx, "nobody", key("a"))
	k.is("Replay of nobody", err, journal.ErrUnknownProjection)
}

func parkClosed[Tx any](k *jkit[Tx]) {
	j := k.journal()
	var p poisoned
	a, b := k.parkedOn(j, &p)
	p.n = 0
	k.ok("SaveCursor", k.store.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
		c, _, err := k.store.LockCursor(ctx, tx, "p@1", true)
		if err != nil {
			return err
		}
		c.Inline = true
		return k.store.SaveCursor(ctx, tx, c)
	}))
	_, err := j.Replay(k.ctx, "p", key("a"))
	wantError[*journal.ModeError](k.kit, "Replay", err)
	_, err = j.Discard(k.ctx, "p", key("a"))
	wantError[*journal.ModeError](k.kit, "Discard", err)
	k.parked(j, a[1:]...)
	k.wantMarked("after a Replay that was refused", "p", sorted(a[:1], b)...)
}

func parkDiscard[Tx any](k *jkit[Tx]) {
	j := k.journal()
	var p poisoned
	a, b := k.parkedOn(j, &p)
	n, err := j.Discard(k.ctx, "p", key("b"))
	k.ok("Discard of nothing", err)
	eq(k.kit, "discarded of b", n, 0)
	n, err = j.Discard(k.ctx, "p", key("a"))
	k.ok("Discard", err)
	eq(k.kit, "discarded", n, 3)
	k.parked(j)
	more := k.record(j, "a", k.deposits(1)...).Last()
	k.catchUp(j)
	k.wantMarked("all but what was discarded", "p", sorted(a[:1], b, []int64{more})...)
	_, err = j.Discard(k.ctx, "nobody", key("a"))
	k.is("Discard of nobody", err, journal.ErrUnknownProjection)
}

func parkMany[Tx any](k *jkit[Tx]) {
	j := k.journal()
	p := poisoned{n: 2}
	k.projecting(j, "p", journal.ProjectionOptions{OnError: journal.ParkEntity, Tries: 1}, p.first, k.inRef)
	ids := []string{"a", "ab", "a:b", "a 1", "A", "é", "9"}
	want := []int64{}
	aside := map[string][]int64{}
	for _, n := range []int{1, 2, 3} {
		for _, id := range ids {
			seq := k.record(j, id, k.inRef.New(amount{n})).Last()
			if n == 1 {
				want = append(want, seq)
			} else {
				aside[id] = append(aside[id], seq)
			}
		}
	}
	k.later("parked", j, func() bool { return k.status(j, "p").Lag == 0 })
	k.wantMarked("the first of each", "p", want...)
	eq(k.kit, "parked", k.status(j, "p").Parked, int64(2*len(ids)))
	p.healed.Store(true)
	for i, id := range ids {
		n, err := j.Replay(k.ctx, "p", key(id))
		k.ok("Replay of "+id, err)
		eq(k.kit, "replayed of "+id, n, 2)
		want = sorted(want, aside[id])
		k.wantMarked("after the Replay of "+id, "p", want...)
		eq(k.kit, "parked", k.status(j, "p").Parked, int64(2*(len(ids)-1-i)))
	}
}

func resetCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J8", name: "begins-again", run: resetAgain[Tx],
			demands: "Reset clears and rewinds in one transaction, and the projection is applied from the beginning"},
		{rule: "J8", name: "unknown", run: resetUnknown[Tx],
			demands: "Reset of a projection that is not declared is ErrUnknownProjection"},
		{rule: "J8", name: "clear-fails", run: resetFails[Tx],
			demands: "a clear that fails leaves everything as it was"},
		{rule: "J8", name: "no-batch-between", run: resetBetween[Tx],
			demands: "no batch lands between clear and rewind: the cursor is locked first"},
		{rule: "J8", name: "forgets", run: resetForgets[Tx],
			demands: "Reset forgets failures, and parked and skipped events"},
	}
}

// unmark removes what a projection wrote.
func (k *jkit[Tx]) unmark(ctx context.Context, tx Tx, name string) error {
	for {
		notes, err := k.store.Notes(ctx, tx, userSpace, name+" ", "", 100)
		if err != nil || len(notes) == 0 {
			return err
		}
		for _, n := range notes {
			if _, err := k.store.DeleteNote(ctx, tx, n.Space, n.Key); err != nil {
				return err
			}
		}
	}
}

func resetAgain[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{}, k.inRef)
	k.marking(j, "q", journal.ProjectionOptions{}, k.inRef)
	rec := k.record(j, "a", k.deposits(5)...)
	k.catchUp(j)
	k.ok("Reset", j.Reset(k.ctx, "p", func(ctx context.Context, tx Tx) error { return k.unmark(ctx, tx, "p") }))
	k.wantMarked("after a Reset", "p")
	eq(k.kit, "cursor", k.cursor("p@1").Seq, 0)
	eq(k.kit, "the other's cursor", k.cursor("q@1").Seq, rec.Last())
	eq(k.kit, "events scanned again", k.catchUp(j), 5)
	k.wantMarked("all, again", "p", rec.Seqs...)
	k.wantMarked("the other", "q", rec.Seqs...)
}

func resetUnknown[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.is("Reset", j.Reset(k.ctx, "p", nil), journal.ErrUnknownProjection)
	_, err := j.Parked(k.ctx, "p", 0)
	k.is("Parked", err, journal.ErrUnknownProjection)
	_, err = j.Skipped(k.ctx, "p", 0)
	k.is("Skipped", err, journal.ErrUnknownProjection)
	all, err := k.store.Cursors(k.ctx)
	k.ok("Cursors", err)
	eq(k.kit, "cursors", len(all), 0)
}

func resetFails[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{}, k.inRef)
	rec := k.record(j, "a", k.deposits(2)...)
	k.catchUp(j)
	bad := errors.New("not now")
	k.is("Reset", j.Reset(k.ctx, "p", func(ctx context.Context, tx Tx) error { return errors.Join(k.unmark(ctx, tx, "p"), bad) }), bad)
	k.wantMarked("after a Reset that failed", "p", rec.Seqs...)
	eq(k.kit, "cursor", k.cursor("p@1").Seq, rec.Last())
	eq(k.kit, "events scanned", k.catchUp(j), 0)
}

func resetBetween[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{Batch: 2}, k.inRef)
	rec := k.record(j, "a", k.deposits(6)...)
	_, err := j.CatchUp(k.ctx)
	k.ok("CatchUp", err)
	inside, over := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	ctx := k.ctx
	k.waiters.Go(func() {
		<-inside
		for {
			n, err := j.CatchUp(ctx)
			select {
			case <-over:
				if err != nil || n == 0 {
					done <- err
					return
				}
			default:
			}
			if err != nil {
				done <- err
				return
			}
		}
	})
	err = j.Reset(k.ctx, "p", func(ctx context.Context, tx Tx) error {
		if err := k.unmark(ctx, tx, "p"); err != nil {
			return err
		}
		close(inside)
		waiter{returned: make(chan woke, 1)}.stays() // time enough for a batch
		return nil
	})
	close(over)
	k.ok("Reset", err)
	k.ok("CatchUp beside it", <-done)
	k.catchUp(j)
	k.wantMarked("each once", "p", rec.Seqs...)
}

func resetForgets[Tx any](k *jkit[Tx]) {
	j := k.journal()
	var p poisoned
	a, b := k.parkedOn(j, &p)
	s := poisoned{n: 3}
	k.projecting(j, "s", journal.ProjectionOptions{OnError: journal.Skip, Tries: 1}, s.first, k.inRef)
	t := poisoned{n: 1}
	k.projecting(j, "t", journal.ProjectionOptions{}, t.first, k.inRef)
	k.later("passed over", j, func() bool { return k.status(j, "s").Lag == 0 })
	eq(k.kit, "failed seq", k.status(j, "t").FailedSeq, a[0])
	for _, x := range []*poisoned{&p, &s, &t} {
		x.healed.Store(true)
	}
	for _, name := range []string{"p", "s", "t"} {
		k.ok("Reset", j.Reset(k.ctx, name, func(ctx context.Context, tx Tx) error { return k.unmark(ctx, tx, name) }))
	}
	k.parked(j)
	skipped, err := j.Skipped(k.ctx, "s", 0)
	k.ok("Skipped", err)
	eq(k.kit, "skipped", len(skipped), 0)
	k.catchUp(j) // at once: no pause is left over
	for _, name := range []string{"p", "s", "t"} {
		k.wantMarked("all, again", name, sorted(a, b)...)
	}
}
