package conformance

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stintmq/stint/journal"
)

func settledCases[Tx any]() []journalCase[Tx] {
	overlap := []Capability{capOverlap}
	return []journalCase[Tx]{
		{rule: "J9", name: "pages", run: settledPages[Tx],
			demands: "ReadSettled answers up to limit events beyond a seq, in order, and beyond what was ever drawn an AheadError"},
		{rule: "J9", name: "gap-of-the-dead", run: settledDead[Tx],
			demands: "seqs that a rolled back transaction drew hold nobody up"},
		{rule: "J9", name: "gap-that-fills", run: settledGap[Tx], needs: overlap,
			demands: "ReadSettled never goes past a gap that an open transaction fills later, and is not held up before it"},
		{rule: "J9", name: "gap-that-dies", run: settledGapDies[Tx], needs: overlap,
			demands: "ReadSettled goes past a gap once the transaction that left it was rolled back"},
		{rule: "J9", name: "gap-inside-a-page", run: settledInterior[Tx], needs: overlap,
			demands: "a page ends at the first open gap, wherever in the page that is"},
		{rule: "J9", name: "several-gaps", run: settledSeveral[Tx], needs: overlap,
			demands: "with several transactions open, no event is passed before an earlier one has become visible"},
		{rule: "J9", name: "no-appender", run: settledBystander[Tx], needs: overlap,
			demands: "an open transaction that wrote, but appended nothing, holds nobody up"},
		{rule: "J9", name: "old-transaction", run: settledOldTransaction[Tx], needs: overlap,
			demands: "a transaction that wrote before another one began, and appends after it, comes after it: order is by seq, not by age"},
		{rule: "J9", name: "other-handle", run: settledOtherHandle[Tx], needs: []Capability{capOverlap, CapOpen},
			demands: "a reader on another handle stops at the same gaps"},
		{rule: "J9", name: "oldest-appender", run: settledOldest[Tx], needs: overlap,
			demands: "Head says how long the oldest open transaction that appended is under way"},
	}
}

func settledPages[Tx any](k *jkit[Tx]) {
	var want []int64
	for _, id := range []string{"a", "b", "a", "c"} {
		want = append(want, k.append(id, 3).Seqs...)
	}
	for _, page := range []int{1, 2, 5, 12, 100} {
		eqs(k.kit, "all pages", seqs(k.settledFrom(0, page)), want)
	}
	eqs(k.kit, "beyond the fifth", seqs(k.settledFrom(want[4], 3)), want[5:])
	eq(k.kit, "beyond the last", len(k.settledFrom(want[11], 3)), 0)
	err := k.store.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
		_, err := k.store.ReadSettled(ctx, tx, want[11]+1000, 3)
		return err
	})
	if !errors.Is(err, journal.ErrAhead) {
		k.failf("beyond what was ever drawn: %v, want ErrAhead", err)
	}
}

func settledDead[Tx any](k *jkit[Tx]) {
	var want []int64
	for range 3 {
		t := k.begin()
		k.appendIn(t.tx, "a", journal.AnyVersion, 3)
		t.rollback()
		want = append(want, k.append("b", 1).Seqs...)
	}
	k.until("all events settled", func() bool { return slices.Equal(seqs(k.settledFrom(0, 2)), want) })
}

// never reads some times what must not be there, and then returns: a horizon may rise with each look.
func (k *jkit[Tx]) never(what string, after, past int64) {
	k.Helper()
	for range 5 {
		for _, r := range k.settledFrom(after, 3) {
			if r.Seq >= past {
				k.failf("%s: ReadSettled answered seq %d while an open transaction has drawn an earlier one", what, r.Seq)
			}
		}
	}
}

// comes waits until all of the log beyond a seq is settled as it should be.
func (k *jkit[Tx]) comes(what string, after int64, want ...int64) {
	k.Helper()
	k.until(what, func() bool {
		got := seqs(k.settledFrom(after, 3))
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			k.failf("%s: settled are %v, want %v", what, got, want)
		}
		return len(got) == len(want)
	})
}

func settledGap[Tx any](k *jkit[Tx]) {
	first := k.append("a", 1).Last()
	k.comes("the first", 0, first) // whatever gap was before it is known to be dead now
	slow := k.begin()
	gap := k.appendIn(slow.tx, "slow", journal.NoEntity, 1).Last()
	late := k.append("b", 2)
	k.never("a gap", 0, gap)
	k.comes("what is before the gap", 0, first)
	slow.commit()
	k.comes("all, once the gap is filled", 0, first, gap, late.Seqs[0], late.Seqs[1])
}

func settledGapDies[Tx any](k *jkit[Tx]) {
	slow := k.begin()
	gap := k.appendIn(slow.tx, "slow", journal.NoEntity, 3)
	late := k.append("b", 1)
	k.never("a gap", 0, gap.Seqs[0])
	slow.rollback()
	k.comes("all, once the gap is dead", 0, late.Last())
	k.comes("and on a further look", 0, late.Last())
}

func settledInterior[Tx any](k *jkit[Tx]) {
	before := k.append("a", 2)
	k.comes("what is before the gap", 0, before.Seqs...)
	slow := k.begin()
	gap := k.appendIn(slow.tx, "slow", journal.NoEntity, 1).Last()
	after := k.append("b", 2)
	k.in("ReadSettled", func(ctx context.Context, tx Tx) error {
		rows, err := k.store.ReadSettled(ctx, tx, 0, 100)
		if err == nil {
			eqs(k.kit, "a page with a gap in it", seqs(rows), before.Seqs)
		}
		return err
	})
	k.never("a page with a gap in it", before.Seqs[0], gap)
	slow.commit()
	k.comes("all", before.Seqs[1], gap, after.Seqs[0], after.Seqs[1])
}

func settledSeveral[Tx any](k *jkit[Tx]) {
	one, two, three := k.begin(), k.begin(), k.begin()
	a := k.appendIn(one.tx, "a", journal.NoEntity, 1).Last()
	b := k.appendIn(two.tx, "b", journal.NoEntity, 1).Last()
	c := k.appendIn(three.tx, "c", journal.NoEntity, 1).Last()
	b2 := k.appendIn(two.tx, "b", journal.Version(1), 1).Last()
	three.commit()
	k.never("two open before it", 0, a)
	two.commit()
	k.never("one open before it", 0, a)
	d := k.append("d", 1).Last()
	k.never("one open before it", 0, a)
	one.commit()
	k.comes("all", 0, a, b, c, b2, d)
}

func settledBystander[Tx any](k *jkit[Tx]) {
	t := k.begin()
	k.ok("mark", k.mark(k.ctx, t.tx, "m"))
	rec := k.append("a", 2)
	k.comes("events beside a transaction that appended nothing", 0, rec.Seqs...)
	t.commit()
}

func settledOldTransaction[Tx any](k *jkit[Tx]) {
	old := k.begin()
	k.ok("mark", k.mark(k.ctx, old.tx, "m")) // it has its number now, if the database gives any
	first := k.append("x", 1)
	k.comes("the first", 0, first.Last())
	second := k.appendIn(old.tx, "x", journal.Version(1), 1)
	third := k.append("y", 1)
	k.never("behind the old one", first.Last(), second.Last())
	old.commit()
	k.comes("all, in the order of seqs", 0, first.Last(), second.Last(), third.Last())
	k.comes("beyond the first", first.Last(), second.Last(), third.Last())
}

func settledOtherHandle[Tx any](k *jkit[Tx]) {
	o := k.second()
	first := k.append("a", 1).Last()
	o.comes("the first, on another handle", 0, first)
	slow := k.begin()
	gap := k.appendIn(slow.tx, "slow", journal.NoEntity, 1).Last()
	late := o.append("b", 1).Last()
	o.never("a gap, on another handle", 0, gap)
	o.comes("what is before it, on another handle", 0, first)
	slow.commit()
	o.comes("all, on another handle", 0, first, gap, late)
	k.comes("all", 0, first, gap, late)
}

func settledOldest[Tx any](k *jkit[Tx]) {
	oldest := func() time.Duration {
		head, err := k.store.Head(k.ctx)
		k.ok("Cursors", err)
		return head.OldestAppender
	}
	eq(k.kit, "without appenders", oldest(), 0)
	t := k.begin()
	k.appendIn(t.tx, "a", journal.NoEntity, 1)
	k.advance(time.Minute) // for stores that measure by the suite's clock
	k.until("an appender shows", func() bool { return oldest() > 0 })
	t.commit()
	k.until("none does any more", func() bool { return oldest() == 0 })
}
