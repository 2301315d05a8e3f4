package conformance

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/stintmq/stint/journal"
)

func tapCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J10", name: "hears", run: tapHears[Tx],
			demands: "a tap is called for each event of exactly its kind and type, in order, once"},
		{rule: "J10", name: "fails-nothing", run: tapFails[Tx],
			demands: "a tap's error and panic are logged, and other taps and later events go on"},
		{rule: "J10", name: "interleaved", run: tapInterleaved[Tx], needs: []Capability{capOverlap},
			demands: "where commits interleave each event is tapped once, in order of seq"},
		{rule: "J10", name: "each-worker", run: tapWorkers[Tx],
			demands: "every worker's taps hear an event once"},
		{rule: "J10", name: "while-it-runs", run: tapWhile[Tx],
			demands: "a worker that is run again taps what is recorded from then on, not what was while it stood still"},
		{rule: "J10", name: "rolled-back", run: tapRolledBack[Tx],
			demands: "what was rolled back is never tapped"},
	}
}

func (k *jkit[Tx]) tap(j *journal.Journal[Tx], name string, r journal.Ref[amount]) *heard[int64] {
	k.Helper()
	h := &heard[int64]{}
	k.ok("Tap "+name, journal.Tap(j, name, r, func(_ context.Context, e journal.Event[amount]) error {
		h.add(e.Seq)
		return nil
	}))
	return h
}

func tapHears[Tx any](k *jkit[Tx]) {
	j := k.journal()
	in, out, other := k.tap(j, "in", k.inRef), k.tap(j, "out", k.out), k.tap(j, "other", k.inOther)
	w := k.worker(j)
	k.record(j, "a", k.deposits(1)...)
	k.work(w)
	eq(k.kit, "events of before", in.len(), 0)
	var wantIn, wantOut []int64
	for i := range 300 {
		s := k.record(j, fmt.Sprint(i%3), k.inRef.New(amount{1}), k.out.New(amount{1}), k.inRef.New(amount{1})).Seqs
		wantIn, wantOut = append(wantIn, s[0], s[2]), append(wantOut, s[1])
	}
	k.work(w)
	k.work(w)
	eqs(k.kit, "in", in.list(), wantIn)
	eqs(k.kit, "out", out.list(), wantOut)
	eq(k.kit, "events of another kind", other.len(), 0)
}

func tapFails[Tx any](k *jkit[Tx]) {
	var out logger
	j := k.journal(journal.Options{Logger: out.log()})
	before := k.tap(j, "before", k.inRef)
	k.ok("Tap", journal.Tap(j, "bad", k.inRef, func(_ context.Context, e journal.Event[amount]) error {
		switch e.Version {
		case 1:
			return errors.New("no answer")
		case 2:
			panic("no idea")
		case 3:
			runtime.Goexit()
		}
		return nil
	}))
	after := k.tap(j, "zafter", k.inRef)
	w := k.worker(j)
	k.work(w)
	rec := k.record(j, "a", k.deposits(4)...)
	k.work(w)
	eqs(k.kit, "the tap before", before.list(), rec.Seqs)
	eqs(k.kit, "the tap after", after.list(), rec.Seqs)
	eq(k.kit, "the error is logged", out.has("bad", "no answer", fmt.Sprint(rec.Seqs[0])), true)
	eq(k.kit, "the panic is logged", out.has("bad", "panic", fmt.Sprint(rec.Seqs[1])), true)
	eq(k.kit, "the exit is logged", out.has("bad", fmt.Sprint(rec.Seqs[2])), true)
}

func tapInterleaved[Tx any](k *jkit[Tx]) {
	j := k.journal()
	h := k.tap(j, "t", k.inRef)
	w := k.worker(j)
	k.work(w)
	var want []int64
	slow := k.begin()
	gap, err := j.Record(k.ctx, slow.tx, key("slow"), journal.NoEntity, k.deposits(1)...)
	k.ok("Record", err)
	for i := range 3 {
		want = append(want, k.record(j, fmt.Sprint(i), k.deposits(2)...).Seqs...)
		k.work(w)
	}
	eq(k.kit, "events before the gap is filled", h.len(), 0)
	more, err := j.Record(k.ctx, slow.tx, key("slow"), journal.AnyVersion, k.deposits(1)...)
	k.ok("Record", err)
	slow.commit()
	want = sorted(want, gap.Seqs, more.Seqs)
	k.until("all were tapped", func() bool { k.work(w); return h.len() >= len(want) })
	k.work(w)
	eqs(k.kit, "events", h.list(), want)
}

func tapWorkers[Tx any](k *jkit[Tx]) {
	j := k.journal()
	h := k.tap(j, "t", k.inRef)
	one, two := k.worker(j), k.worker(j)
	k.work(one)
	k.work(two)
	s := k.record(j, "a", k.deposits(2)...).Seqs
	k.work(one)
	k.work(two)
	k.work(one)
	eqs(k.kit, "events", h.list(), []int64{s[0], s[1], s[0], s[1]})
}

func tapWhile[Tx any](k *jkit[Tx]) {
	j := k.journal()
	h := k.tap(j, "t", k.inRef)
	w := k.worker(j)
	for round := range 2 {
		stop := k.run(w)
		k.probe(j, h)
		stop()
		missed := k.record(j, "missed", k.deposits(3)...)
		stop = k.run(w)
		k.probe(j, h)
		stop()
		for _, seq := range missed.Seqs {
			if slices.Contains(h.list(), seq) {
				k.failf("round %d: event %d was recorded while no worker ran, and tapped", round, seq)
			}
		}
	}
	got := h.list()
	eqs(k.kit, "events, each once", got, slices.Compact(sorted(got)))
}

// probe records until a tap hears it: the worker runs.
func (k *jkit[Tx]) probe(j *journal.Journal[Tx], h *heard[int64]) {
	k.Helper()
	n := h.len()
	k.until("a tap hears", func() bool {
		k.record(j, "probe", k.deposits(1)...)
		return h.len() > n
	})
}

func tapRolledBack[Tx any](k *jkit[Tx]) {
	j := k.journal()
	h := k.tap(j, "t", k.inRef)
	w := k.worker(j)
	k.work(w)
	t := k.begin()
	_, err := j.Record(k.ctx, t.tx, key("a"), journal.NoEntity, k.deposits(2)...)
	k.ok("Record", err)
	t.rollback()
	rec := k.record(j, "a", k.deposits(1)...)
	k.until("the event was tapped", func() bool { k.work(w); return h.len() > 0 })
	eqs(k.kit, "events", h.list(), rec.Seqs)
}
