package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

func loopCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J11", name: "woken", run: loopWoken[Tx],
			demands: "a worker that would poll once an hour applies and taps at once what InTx and Do recorded, and what is announced"},
		{rule: "J11", name: "woken-across", run: loopAcross[Tx], needs: []Capability{capAcross},
			demands: "a worker is woken by what is recorded through another handle"},
		{rule: "J12", name: "announce-tx", run: loopAnnounceTx[Tx],
			demands: "with AnnounceTx the commit of a caller's transaction wakes workers"},
		{rule: "J11", name: "polls", run: loopPolls[Tx],
			demands: "what nobody announced is found by polling"},
		{rule: "J11", name: "not-hot", run: loopCool[Tx],
			demands: "a pass that fails is repeated with pauses, however often the worker is woken, and works again afterwards"},
		{rule: "J7", name: "one-fails", run: loopOneFails[Tx],
			demands: "a projection that fails in each pass does not hold up the others"},
		{rule: "J11", name: "twice", run: loopTwice[Tx],
			demands: "Run and Drain beside a Run are ErrRunning; afterwards it can be run again"},
		{rule: "J11", name: "end", run: loopEnd[Tx],
			demands: "when the context ends the batch under way commits or rolls back, and Run returns nil"},
		{rule: "J11", name: "everything", run: loopEverything[Tx],
			demands: "one worker runs effects, projections and taps; each can be left to others"},
		{rule: "J8", name: "idle", run: loopIdle[Tx], needs: []Capability{CapInspector},
			demands: "WaitIdle returns once projections and effects have reacted, to what effects recorded too, or says what it waits for"},
		{rule: "J9", name: "ahead-is-told", run: loopAhead[Tx],
			demands: "a cursor that is ahead of the log is an AheadError for who applies and who waits, Cursors tells of it, and Reset ends it"},
	}
}

// run runs a worker until stop, which a case that fails leaves to undo.
func (k *jkit[Tx]) run(w *journal.Worker[Tx]) (stop func()) {
	k.Helper()
	ctx, cancel := context.WithCancel(k.ctx)
	done := make(chan error, 1)
	k.waiters.Go(func() { done <- w.Run(ctx) })
	end := func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(k.suite.patience):
			return errors.New("Run did not return")
		}
	}
	at := len(k.pending)
	k.pending = append(k.pending, end)
	return func() {
		k.Helper()
		k.pending[at] = nil
		k.ok("Run", end())
	}
}

// soon waits for something that must come well before any poll.
func (k *jkit[Tx]) soon(what string, done func() bool) {
	k.Helper()
	deadline := time.Now().Add(k.suite.patience)
	k.until(what, func() bool {
		if time.Now().After(deadline) {
			k.failf("%s: not within %v", what, k.suite.patience)
		}
		return done()
	})
}

// hourly is a worker that hears by its wake channel or not at all.
func hourly() journal.WorkerOptions {
	return journal.WorkerOptions{Poll: time.Hour, Core: core.WorkerOptions{Poll: time.Hour}}
}

func loopWoken[Tx any](k *jkit[Tx]) {
	j := k.journal()
	h := k.tap(j, "t", k.inRef)
	var applied heard[int64]
	k.projecting(j, "p", journal.ProjectionOptions{}, func(e journal.Event[amount]) error { applied.add(e.Seq); return nil }, k.inRef)
	stop := k.run(k.worker(j, hourly()))
	k.probe(j, h)
	comes := func(what string, seq int64) {
		k.Helper()
		k.soon(what+": applied", func() bool { return slices.Contains(applied.list(), seq) })
		k.soon(what+": tapped", func() bool { return slices.Contains(h.list(), seq) })
	}
	for range 3 {
		comes("InTx", k.record(j, "a", k.deposits(1)...).Last())
		_, err := journal.Do(k.ctx, j, k.entity, "b", func(context.Context, Tx, journal.State[balance]) ([]journal.Draft, error) {
			return k.deposits(1), nil
		})
		k.ok("Do", err)
		all := k.all()
		comes("Do", all[len(all)-1].Seq)
		t := k.begin()
		rec, err := j.Record(k.ctx, t.tx, key("c"), journal.AnyVersion, k.deposits(1)...)
		k.ok("Record", err)
		t.commit()
		j.Announce(k.ctx)
		comes("Announce", rec.Last())
	}
	stop()
}

func loopAcross[Tx any](k *jkit[Tx]) {
	j := k.journal()
	var applied heard[int64]
	k.projecting(j, "p", journal.ProjectionOptions{}, func(e journal.Event[amount]) error { applied.add(e.Seq); return nil }, k.inRef)
	h := k.tap(j, "t", k.inRef)
	stop := k.run(k.worker(j, hourly()))
	k.probe(j, h)
	o := k.second()
	other := o.journal()
	for range 3 {
		seq := o.record(other, "a", k.deposits(1)...).Last()
		k.soon("applied", func() bool { return slices.Contains(applied.list(), seq) })
	}
	stop()
}

func loopAnnounceTx[Tx any](k *jkit[Tx]) {
	j := k.journal(journal.Options{AnnounceTx: true})
	h := k.tap(j, "t", k.inRef)
	stop := k.run(k.worker(j, hourly()))
	k.probe(j, h)
	for range 3 {
		t := k.begin()
		rec, err := j.Record(k.ctx, t.tx, key("a"), journal.AnyVersion, k.deposits(1)...)
		k.ok("Record", err)
		t.commit()
		k.soon("tapped", func() bool { return slices.Contains(h.list(), rec.Last()) })
	}
	stop()
}

func loopPolls[Tx any](k *jkit[Tx]) {
	j := k.journal()
	var applied heard[int64]
	k.projecting(j, "p", journal.ProjectionOptions{}, func(e journal.Event[amount]) error { applied.add(e.Seq); return nil }, k.inRef)
	stop := k.run(k.worker(j, journal.WorkerOptions{Poll: 10 * time.Millisecond}))
	for range 3 {
		seq := k.append("a", 1).Last()
		k.soon("applied", func() bool { return slices.Contains(applied.list(), seq) })
	}
	stop()
}

// flaky is a store whose transactions fail for a while, and are counted.
type flaky[Tx any] struct {
	journal.Store[Tx]
	broken atomic.Bool
	calls  atomic.Int64
}

func (f *flaky[Tx]) InTx(ctx context.Context, do func(context.Context, Tx) error) error {
	f.calls.Add(1)
	if f.broken.Load() {
		return fmt.Errorf("no server: %w", core.ErrUnavailable)
	}
	return f.Store.InTx(ctx, do)
}

func loopCool[Tx any](k *jkit[Tx]) {
	f := &flaky[Tx]{Store: k.store}
	f.broken.Store(true)
	var out logger
	j, err := journal.New[Tx](f, journal.Options{Logger: out.log()})
	k.ok("New", err)
	var applied heard[int64]
	k.projecting(j, "p", journal.ProjectionOptions{}, func(e journal.Event[amount]) error { applied.add(e.Seq); return nil }, k.inRef)
	seq := k.append("a", 1).Last()
	w := k.worker(j, journal.WorkerOptions{Poll: 10 * time.Millisecond})
	stop := k.run(w)
	k.soon("a pass", func() bool { return f.calls.Load() > 0 })
	start := time.Now()
	k.until("a while of wakes", func() bool {
		w.Wake()
		_ = k.store.Announce(k.ctx) // a hint
		return time.Since(start) > 150*time.Millisecond
	})
	// Pauses of 50 ms and more, -25 %: 150 ms have at most four. A slow machine has fewer passes, and more time.
	if calls, most := f.calls.Load(), int64(time.Since(start)/(30*time.Millisecond))+3; calls > most {
		k.failf("%d passes in %v over a store that fails", calls, time.Since(start))
	}
	eq(k.kit, "the failure is logged", out.has("no server"), true)
	f.broken.Store(false)
	k.until("works again", func() bool { return slices.Contains(applied.list(), seq) })
	stop()
}

func loopOneFails[Tx any](k *jkit[Tx]) {
	inline := k.journal()
	k.marking(inline, "bad", journal.ProjectionOptions{Inline: true}, k.out)
	k.record(inline, "a", k.out.New(amount{1}))
	j := k.journal()
	k.marking(j, "bad", journal.ProjectionOptions{}, k.out) // a ModeError in each pass
	var applied heard[int64]
	k.projecting(j, "good", journal.ProjectionOptions{}, func(e journal.Event[amount]) error { applied.add(e.Seq); return nil }, k.inRef)
	stop := k.run(k.worker(j, hourly()))
	for range 8 { // without an end to its growing pauses, the last would come after seconds
		seq := k.record(j, "a", k.deposits(1)...).Last()
		start := time.Now()
		k.soon("applied", func() bool { return slices.Contains(applied.list(), seq) })
		if took := time.Since(start); took > 2*time.Second {
			k.failf("one projection fails, and another one is %v late", took)
		}
	}
	stop()
}

func loopTwice[Tx any](k *jkit[Tx]) {
	j := k.journal()
	h := k.tap(j, "t", k.inRef)
	k.marking(j, "p", journal.ProjectionOptions{}, k.inRef)
	w := k.worker(j, hourly())
	for range 2 {
		stop := k.run(w)
		k.probe(j, h)
		k.is("Run beside a Run", w.Run(k.ctx), journal.ErrRunning)
		_, _, err := w.Drain(k.ctx, core.DrainOptions{})
		k.is("Drain beside a Run", err, journal.ErrRunning)
		stop()
	}
	_, _, err := w.Drain(k.ctx, core.DrainOptions{})
	k.ok("Drain afterwards", err)
	// A database may notice late that a transaction's client is gone: its cursor is busy for so long.
	k.until("caught up", func() bool { k.work(w); return k.status(j, "p").Lag == 0 })
}

func loopEnd[Tx any](k *jkit[Tx]) {
	j := k.journal()
	inside := make(chan struct{}, 10)
	p := journal.NewProjection[Tx]("p")
	journal.Apply(p, k.inRef, func(ctx context.Context, tx Tx, e journal.Event[amount]) error {
		if err := k.mark(ctx, tx, marked("p", e.Seq)); err != nil {
			return err
		}
		if e.Payload.N == 2 {
			inside <- struct{}{}
			<-ctx.Done()
		}
		return nil
	})
	k.ok("Project", j.Project(p))
	rec := k.record(j, "a", k.deposits(3)...)
	stop := k.run(k.worker(j, hourly()))
	select {
	case <-inside:
	case <-k.ctx.Done():
		k.failf("the projection was never applied")
	}
	stop()
	c := k.cursor("p@1")
	var want []int64
	for _, seq := range rec.Seqs {
		if seq <= c.Seq {
			want = append(want, seq)
		}
	}
	k.wantMarked("up to the cursor, and no further", "p", want...)
	eq(k.kit, "failures: a stop is none", c.Failures, 0)
}

func loopIdle[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{}, k.inRef, k.out)
	var ran heard[int]
	k.ok("On", journal.On(j, "chain", k.inRef, func(ctx context.Context, e journal.Event[amount], c journal.Call[Tx]) error {
		err := c.Journal.InTx(ctx, func(ctx context.Context, tx Tx) error {
			next := k.inRef
			if e.Payload.N == 5 {
				next = k.out
			}
			_, err := c.Journal.Record(ctx, tx, key("a"), journal.AnyVersion, next.New(amount{e.Payload.N + 1}))
			return err
		})
		ran.add(e.Payload.N)
		return err
	}))
	k.ok("WaitIdle over an empty log", j.WaitIdle(k.ctx))
	k.record(j, "a", k.deposits(1)...)
	ended, cancel := context.WithTimeout(k.ctx, 10*time.Millisecond)
	k.is("WaitIdle without a worker", j.WaitIdle(ended), context.DeadlineExceeded)
	cancel()
	stop := k.run(k.worker(j))
	k.ok("WaitIdle", j.WaitIdle(k.ctx))
	eqs(k.kit, "runs", ran.list(), []int{1, 2, 3, 4, 5})
	eq(k.kit, "applied", len(k.applied("p")), 6)
	stop()

	failing, bad := k.journal(), errors.New("no room")
	p := journal.NewProjection[Tx]("q")
	journal.Apply(p, k.inRef, func(context.Context, Tx, journal.Event[amount]) error { return bad })
	k.ok("Project", failing.Project(p))
	_, err := failing.CatchUp(k.ctx)
	k.is("CatchUp of a projection that fails", err, bad)
	for long := 20 * time.Millisecond; ; long *= 2 { // a slow store first looks late
		ended, cancel = context.WithTimeout(k.ctx, long)
		err = failing.WaitIdle(ended)
		cancel()
		if long > 5*time.Second || err == nil || strings.Contains(err.Error(), bad.Error()) {
			break
		}
	}
	k.is("WaitIdle for a projection that fails", err, context.DeadlineExceeded)
	if !strings.Contains(err.Error(), bad.Error()) {
		k.failf("WaitIdle for a projection that fails: got %v, want why", err)
	}
}

func loopAhead[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.marking(j, "p", journal.ProjectionOptions{}, k.inRef)
	rec := k.record(j, "a", k.deposits(1)...)
	k.ok("SaveCursor", k.store.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
		c, _, err := k.store.LockCursor(ctx, tx, "p@1", true)
		if err != nil {
			return err
		}
		c.Seq = rec.Last() + 1000
		return k.store.SaveCursor(ctx, tx, c)
	}))
	_, err := j.CatchUp(k.ctx)
	k.is("CatchUp", err, journal.ErrAhead)
	at, _, err := j.Cursors(k.ctx)
	k.ok("Cursors", err)
	if at[0].Ahead == nil {
		k.failf("Cursors says nothing of a cursor that is ahead: %+v", at[0])
	}
	k.is("WaitFor", j.WaitFor(k.ctx, "p", rec.Last()), journal.ErrAhead)
	if k.suite.has[CapInspector] {
		k.is("WaitIdle", j.WaitIdle(k.ctx), journal.ErrAhead)
	}
	k.ok("Reset", j.Reset(k.ctx, "p", nil))
	_, err = j.CatchUp(k.ctx)
	k.ok("CatchUp after a Reset", err)
	k.ok("WaitFor after a Reset", j.WaitFor(k.ctx, "p", rec.Last()))
	k.wantMarked("after a Reset", "p", rec.Last())
}

func loopEverything[Tx any](k *jkit[Tx]) {
	j := k.journal()
	ran, tapped := k.effect(j, "e", k.inRef), k.tap(j, "t", k.inRef)
	k.marking(j, "p", journal.ProjectionOptions{}, k.inRef)
	w := k.worker(j)
	k.work(w)
	rec := k.record(j, "a", k.deposits(2)...)
	for _, o := range []journal.WorkerOptions{
		{NoEffects: true, NoProjections: true, NoTaps: true},
		{NoEffects: true, NoTaps: true},
	} {
		effects, events := k.work(k.worker(j, o))
		eq(k.kit, "effects", effects, 0)
		eq(k.kit, "events", events, map[bool]int{true: 0, false: 2}[o.NoProjections])
		eq(k.kit, "runs, and taps", ran.len()+tapped.len(), 0)
	}
	effects, events := k.work(w)
	eq(k.kit, "effects", effects, 2)
	eq(k.kit, "events", events, 0)
	eq(k.kit, "runs", ran.len(), 2)
	eqs(k.kit, "taps", tapped.list(), rec.Seqs)
	k.wantMarked("projection", "p", rec.Seqs...)
	stop := k.run(k.worker(k.journal())) // nothing is declared: it only waits
	stop()
}
