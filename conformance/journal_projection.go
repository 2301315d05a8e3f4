package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

func projectionCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J7", name: "applies", run: projectionApplies[Tx],
			demands: "a projection is applied to each event that it hears, in order of seq, and its cursor moves to the last event scanned"},
		{rule: "J7", name: "batch", run: projectionBatch[Tx],
			demands: "a batch scans at most Batch events, in one transaction with the cursor"},
		{rule: "J7", name: "once-with-many-workers", run: projectionOnce[Tx], needs: []Capability{CapOpen},
			demands: "however many workers over however many handles, each event is applied exactly once"},
		{rule: "J7", name: "failure-is-its-own", run: projectionFailure[Tx],
			demands: "a projection that fails rolls back its own batch and cursor, and the others go on"},
		{rule: "J7", name: "busy-is-skipped", run: projectionBusy[Tx], needs: []Capability{capOverlap},
			demands: "a projection whose cursor is locked elsewhere is skipped without waiting"},
		{rule: "J7", name: "timeout", run: projectionTimeout[Tx],
			demands: "the context of a batch ends after Timeout; then it is rolled back, and tried again, and no event is to blame"},
		{rule: "J7", name: "new-version", run: projectionVersion[Tx],
			demands: "a new Version has a cursor of its own and begins at the beginning, beside the old one"},
		{rule: "J8", name: "lag", run: projectionLag[Tx],
			demands: "Cursors says how far each projection is behind, in events and in time by the store's clock"},
		{rule: "J8", name: "wait-for", run: projectionWait[Tx],
			demands: "WaitFor returns once a projection has passed a seq, or with the context's error"},
	}
}

// marking declares a projection that leaves a note for each event, and can't do so twice.
func (k *jkit[Tx]) marking(j *journal.Journal[Tx], name string, opts journal.ProjectionOptions, refs ...journal.Ref[amount]) {
	k.Helper()
	k.projecting(j, name, opts, nil, refs...)
}

// projecting also asks a function first. What a projection writes begins with its name.
func (k *jkit[Tx]) projecting(j *journal.Journal[Tx], name string, opts journal.ProjectionOptions, first func(journal.Event[amount]) error, refs ...journal.Ref[amount]) {
	k.Helper()
	p := journal.NewProjection[Tx](name, opts)
	for _, r := range refs {
		journal.Apply(p, r, func(ctx context.Context, tx Tx, e journal.Event[amount]) error {
			err := k.mark(ctx, tx, marked(name, e.Seq))
			if err == nil && first != nil {
				err = first(e)
			}
			return err
		})
	}
	k.ok("Project "+name, j.Project(p))
}

func marked(name string, seq int64) string { return fmt.Sprintf("%s %d", name, seq) }

// wantMarked checks that a projection was applied to exactly these events.
func (k *jkit[Tx]) wantMarked(what, name string, want ...int64) {
	k.Helper()
	eqs(k.kit, what+": applied", k.applied(name), append([]int64{}, want...))
}

// applied are the events that a projection was applied to.
func (k *jkit[Tx]) applied(name string) []int64 {
	k.Helper()
	got := []int64{}
	for key := range k.space(userSpace, name+" ") {
		seq, err := strconv.ParseInt(strings.TrimPrefix(key, name+" "), 10, 64)
		k.ok("mark", err)
		got = append(got, seq)
	}
	slices.Sort(got)
	return got
}

func projectionApplies[Tx any](k *jkit[Tx]) {
	j := k.journal()
	var order heard[int64]
	k.projecting(j, "p", journal.ProjectionOptions{}, func(e journal.Event[amount]) error { order.add(e.Seq); return nil }, k.inRef)
	k.marking(j, "q", journal.ProjectionOptions{}, k.out)
	var want []int64
	for _, id := range []string{"a", "b", "a"} {
		want = append(want, k.record(j, id, k.inRef.New(amount{1}), k.out.New(amount{1}), k.inRef.New(amount{1})).Seqs...)
	}
	k.in("an event of another kind", func(ctx context.Context, tx Tx) error {
		_, err := j.Record(ctx, tx, k.bank.other.Key("a"), journal.NoEntity, k.inOther.New(amount{1}))
		return err
	})
	last := k.all()[9].Seq
	eq(k.kit, "events scanned, by two projections", k.catchUp(j), 20)
	eqs(k.kit, "order", order.list(), []int64{want[0], want[2], want[3], want[5], want[6], want[8]})
	k.wantMarked("in", "p", want[0], want[2], want[3], want[5], want[6], want[8])
	k.wantMarked("out", "q", want[1], want[4], want[7])
	for _, name := range []string{"p", "q"} {
		s := k.status(j, name)
		eq(k.kit, "cursor of "+name, s.Seq, last)
		eq(k.kit, "lag of "+name, s.Lag, 0)
	}
	eq(k.kit, "events scanned again", k.catchUp(j), 0)
}

func projectionBatch[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{Batch: 4}, k.inRef)
	rec := k.record(j, "a", k.deposits(10)...)
	for _, want := range []int{4, 4, 2, 0} {
		n, err := j.CatchUp(k.ctx)
		k.ok("CatchUp", err)
		eq(k.kit, "events scanned", n, want)
		at := len(k.applied("p"))
		eq(k.kit, "cursor", k.cursor("p@1").Seq, rec.Seqs[at-1])
	}
	k.wantMarked("all", "p", rec.Seqs...)
}

func projectionOnce[Tx any](k *jkit[Tx]) {
	o := k.second()
	journals := []*journal.Journal[Tx]{k.journal(), o.journal(), o.journal()}
	for i, on := range []*jkit[Tx]{k, o, o} {
		on.marking(journals[i], "p", journal.ProjectionOptions{Batch: 5}, k.inRef)
	}
	const n = 60
	var want []int64
	var mu sync.Mutex
	k.race(6, func(ctx context.Context, worker int) error {
		j := journals[worker%3]
		if worker >= 3 { // writers
			for range n / 6 {
				err := j.InTx(ctx, func(ctx context.Context, tx Tx) error {
					rec, err := j.Record(ctx, tx, key(fmt.Sprint(worker)), journal.AnyVersion, k.deposits(2)...)
					mu.Lock()
					defer mu.Unlock()
					want = append(want, rec.Seqs...)
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		}
		for {
			if _, err := j.CatchUp(ctx); err != nil {
				return err
			}
			mu.Lock()
			top, written := int64(0), len(want)
			for _, seq := range want {
				top = max(top, seq)
			}
			mu.Unlock()
			cursors, err := k.store.Cursors(ctx)
			if err != nil || written == n && len(cursors) > 0 && cursors[0].Seq >= top {
				return err
			}
		}
	})
	slices.Sort(want)
	k.wantMarked("by three workers", "p", want...)
}

func projectionFailure[Tx any](k *jkit[Tx]) {
	j := k.journal()
	bad := errors.New("bad day")
	k.projecting(j, "bad", journal.ProjectionOptions{}, func(e journal.Event[amount]) error {
		if e.Version == 3 {
			return bad
		}
		return nil
	}, k.inRef)
	k.marking(j, "good", journal.ProjectionOptions{}, k.inRef)
	rec := k.record(j, "a", k.deposits(4)...)
	n, err := j.CatchUp(k.ctx)
	k.is("CatchUp", err, bad)
	eq(k.kit, "events scanned by the other", n, 4)
	k.wantMarked("the other", "good", rec.Seqs...)
	k.wantMarked("the one that failed", "bad")
	s := k.status(j, "bad")
	eq(k.kit, "its cursor", s.Seq, 0)
	eq(k.kit, "its failed seq", s.FailedSeq, rec.Seqs[2])
	if !strings.Contains(s.LastError, "bad day") {
		k.failf("LastError is %q", s.LastError)
	}
}

func projectionBusy[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{}, k.inRef)
	k.marking(j, "q", journal.ProjectionOptions{}, k.inRef)
	k.in("make it", func(ctx context.Context, tx Tx) error { k.lock(ctx, tx, "p@1"); return nil })
	rec := k.record(j, "a", k.deposits(2)...)
	t := k.begin()
	k.lock(k.ctx, t.tx, "p@1")
	eq(k.kit, "events scanned while one is busy", k.catchUp(j), 2)
	k.wantMarked("the busy one", "p")
	k.wantMarked("the other one", "q", rec.Seqs...)
	t.rollback()
	eq(k.kit, "events scanned once it is free", k.catchUp(j), 2)
	k.wantMarked("the one that was busy", "p", rec.Seqs...)
}

func projectionVersion[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{}, k.inRef)
	rec := k.record(j, "a", k.deposits(2)...)
	k.catchUp(j)
	next := k.journal()
	var again heard[int64]
	for _, version := range []int{1, 2} {
		p := journal.NewProjection[Tx]("p", journal.ProjectionOptions{Version: version})
		journal.Apply(p, k.inRef, func(_ context.Context, _ Tx, e journal.Event[amount]) error {
			again.add(int64(version)*1_000_000_000 + e.Seq)
			return nil
		})
		k.ok("Project", next.Project(p))
	}
	more := k.record(j, "a", k.deposits(1)...).Last()
	k.catchUp(next)
	const two = 2_000_000_000
	eqs(k.kit, "events of both", slices.Sorted(slices.Values(again.list())),
		[]int64{1_000_000_000 + more, two + rec.Seqs[0], two + rec.Seqs[1], two + more})
	all, _, err := next.Cursors(k.ctx)
	k.ok("Cursors", err)
	for i, s := range all {
		eq(k.kit, "version", s.Version, i+1)
		eq(k.kit, "seq", s.Seq, more)
	}
}

func projectionLag[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{Batch: 1}, k.inRef)
	s := k.status(j, "p")
	eq(k.kit, "lag of an empty log", s.Lag, 0)
	eq(k.kit, "age of an empty log", s.LagAge, 0)
	var last []int64
	for range 3 {
		last = append(last, k.record(j, "a", k.inRef.New(amount{1})).Last())
		k.advance(time.Minute)
	}
	all, head, err := j.Cursors(k.ctx)
	k.ok("Cursors", err)
	eq(k.kit, "head", head.Seq, last[2])
	eq(k.kit, "lag", all[0].Lag, last[2])
	eq(k.kit, "age of the first", all[0].LagAge.Round(time.Second), 3*time.Minute)
	_, err = j.CatchUp(k.ctx)
	k.ok("CatchUp", err)
	s = k.status(j, "p")
	eq(k.kit, "lag", s.Lag, last[2]-last[0])
	eq(k.kit, "age of the second", s.LagAge.Round(time.Second), 2*time.Minute)
	k.catchUp(j)
	s = k.status(j, "p")
	eq(k.kit, "lag of one that has caught up", s.Lag, 0)
	eq(k.kit, "age of one that has caught up", s.LagAge, 0)
}

func projectionWait[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{}, k.inRef)
	rec := k.record(j, "a", k.deposits(2)...)
	short, cancel := context.WithTimeout(k.ctx, 20*time.Millisecond)
	defer cancel()
	k.is("WaitFor what does not come", j.WaitFor(short, "p", rec.Last()), context.DeadlineExceeded)
	err := k.behind(func() { k.catchUp(j) }, func(ctx context.Context) error {
		if err := j.WaitFor(ctx, "p", rec.Last()); err != nil {
			return err
		}
		all, err := k.store.Cursors(ctx)
		if err == nil && all[0].Seq < rec.Last() {
			err = fmt.Errorf("WaitFor returned with the cursor at %d, waited for %d", all[0].Seq, rec.Last())
		}
		return err
	})
	k.ok("WaitFor", err)
	k.ok("WaitFor what has been", j.WaitFor(k.ctx, "p", rec.Seqs[0]))
	k.is("WaitFor of nobody", j.WaitFor(k.ctx, "nobody", 1), journal.ErrUnknownProjection)
}

func inlineCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J7", name: "same-transaction", run: inlineSame[Tx],
			demands: "an inline projection is applied in the transaction that records, and has no lag"},
		{rule: "J7", name: "error-fails-record", run: inlineError[Tx],
			demands: "an inline projection's error, or panic, is Record's"},
		{rule: "J7", name: "mode", run: inlineMode[Tx],
			demands: "a projection that was made inline can't be async under the same Version, nor the other way round: a ModeError, and nothing is applied twice"},
		{rule: "J12", name: "locks-nobody", run: inlineLocksNobody[Tx], needs: []Capability{capOverlap},
			demands: "once a Record with it has been committed, an inline projection makes no Record wait for another, also where nobody announces"},
		{rule: "J8", name: "no-reset", run: inlineReset[Tx],
			demands: "an inline projection can't be reset, nor one that was made inline elsewhere"},
	}
}

func inlineLocksNobody[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{Inline: true}, k.inRef)
	for range 2 { // the second time a Record has been committed
		var open []openTx[Tx]
		for _, id := range []string{"a", "b"}[:1+len(k.all())] {
			t := k.begin()
			_, err := j.Record(k.ctx, t.tx, key(id), journal.AnyVersion, k.deposits(1)...)
			k.ok("Record for "+id+" beside an open Record", err)
			open = append(open, t)
		}
		for _, t := range open {
			t.commit()
		}
	}
	eq(k.kit, "events", len(k.all()), 3)
}

func inlineSame[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{Inline: true}, k.inRef)
	t := k.begin()
	rec, err := j.Record(k.ctx, t.tx, key("a"), journal.NoEntity, k.inRef.New(amount{1}), k.out.New(amount{1}))
	k.ok("Record", err)
	notes := k.notes(k.ctx, t.tx, userSpace, "p ", "", 10)
	eqs(k.kit, "what it wrote, in the transaction", notes, []string{marked("p", rec.Seqs[0])})
	more, err := j.Record(k.ctx, t.tx, key("b"), journal.NoEntity, k.deposits(2)...)
	k.ok("Record", err)
	t.commit()
	k.wantMarked("after the commit", "p", rec.Seqs[0], more.Seqs[0], more.Seqs[1])
	k.ok("WaitFor", j.WaitFor(k.ctx, "p", more.Last()))
	s := k.status(j, "p")
	eq(k.kit, "inline", s.Inline, true)
	eq(k.kit, "lag", s.Lag, 0)
	eq(k.kit, "events scanned by CatchUp", k.catchUp(j), 0)
	k.race(4, func(ctx context.Context, worker int) error {
		return j.InTx(ctx, func(ctx context.Context, tx Tx) error {
			_, err := j.Record(ctx, tx, key(fmt.Sprint("r", worker)), journal.NoEntity, k.deposits(1)...)
			return err
		})
	})
	eq(k.kit, "applied", len(k.applied("p")), 7)
}

func inlineError[Tx any](k *jkit[Tx]) {
	j := k.journal()
	bad := errors.New("no")
	k.projecting(j, "p", journal.ProjectionOptions{Inline: true}, func(e journal.Event[amount]) error {
		switch e.Payload.N {
		case 1:
			return bad
		case 2:
			panic("no")
		}
		return nil
	}, k.inRef)
	k.effect(j, "e", k.inRef)
	for n := 1; n <= 2; n++ {
		err := j.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
			_, err := j.Record(ctx, tx, key("a"), journal.AnyVersion, k.inRef.New(amount{n}))
			return err
		})
		if err == nil || n == 1 && !errors.Is(err, bad) {
			k.failf("Record with an inline projection that fails: %v", err)
		}
	}
	eq(k.kit, "events", len(k.all()), 0)
	k.wantJobs("after a failure", 0)
	k.wantMarked("after a failure", "p")
	k.record(j, "a", k.inRef.New(amount{3}))
	eq(k.kit, "applied", len(k.applied("p")), 1)
}

func inlineMode[Tx any](k *jkit[Tx]) {
	inline, async := k.journal(), k.journal()
	for _, name := range []string{"p", "q"} {
		k.marking(inline, name, journal.ProjectionOptions{Inline: true}, map[string]journal.Ref[amount]{"p": k.inRef, "q": k.out}[name])
		k.marking(async, name, journal.ProjectionOptions{}, map[string]journal.Ref[amount]{"p": k.inRef, "q": k.out}[name])
	}
	rec := k.record(inline, "a", k.inRef.New(amount{1})) // p is inline now
	_, err := async.CatchUp(k.ctx)                       // and q async
	mode := wantError[*journal.ModeError](k.kit, "CatchUp of what is inline", err)
	eq(k.kit, "the error", *mode, journal.ModeError{Projection: "p@1", Inline: true})
	k.wantMarked("the inline one", "p", rec.Last())
	eq(k.kit, "cursor of the async one", k.cursor("q@1").Seq, rec.Last())

	err = inline.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
		_, err := inline.Record(ctx, tx, key("a"), journal.AnyVersion, k.out.New(amount{1}))
		return err
	})
	mode = wantError[*journal.ModeError](k.kit, "Record with what is async", err)
	eq(k.kit, "the error", *mode, journal.ModeError{Projection: "q@1"})
	eq(k.kit, "events", len(k.all()), 1)
	k.wantMarked("the async one", "q")

	k.ok("Reset", async.Reset(k.ctx, "q", nil)) // it has passed nothing now, and is async all the same
	err = inline.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
		_, err := inline.Record(ctx, tx, key("a"), journal.AnyVersion, k.out.New(amount{1}))
		return err
	})
	wantError[*journal.ModeError](k.kit, "Record with what is async and was reset", err)
	eq(k.kit, "events", len(k.all()), 1)
}

func inlineReset[Tx any](k *jkit[Tx]) {
	inline, async := k.journal(), k.journal()
	k.marking(inline, "p", journal.ProjectionOptions{Inline: true}, k.inRef)
	k.marking(async, "p", journal.ProjectionOptions{}, k.inRef)
	k.record(inline, "a", k.deposits(1)...)
	wantError[*core.UnsupportedError](k.kit, "Reset", inline.Reset(k.ctx, "p", nil))
	cleared := false
	err := async.Reset(k.ctx, "p", func(context.Context, Tx) error { cleared = true; return nil })
	wantError[*journal.ModeError](k.kit, "Reset of what is inline elsewhere", err)
	eq(k.kit, "cleared", cleared, false)
	eq(k.kit, "inline", k.cursor("p@1").Inline, true)
}
