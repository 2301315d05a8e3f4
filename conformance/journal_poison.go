package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/journal"
)

func poisonCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J7", name: "stall", run: poisonStall[Tx],
			demands: "a poison event stalls its projection: those before it are applied, it is tried with growing pauses by the store's clock, and Cursors shows it"},
		{rule: "J7", name: "skip", run: poisonSkip[Tx],
			demands: "with Skip a poison event is passed over after Tries, and recorded"},
		{rule: "J7", name: "none-before-it-is-lost", run: poisonTries[Tx],
			demands: "whatever the number of Tries, the events before a poison event are applied exactly once"},
		{rule: "J7", name: "many-workers", run: poisonRace[Tx],
			demands: "workers that meet a poison event at the same time lose none of those before it"},
		{rule: "J7", name: "panic", run: poisonPanic[Tx],
			demands: "a panic in a projection is a failure like another"},
		{rule: "J7", name: "only-at-commit", run: poisonCommit[Tx],
			demands: "an event that only the commit refuses is found, and handled by policy"},
		{rule: "J7", name: "passing", run: poisonPassing[Tx],
			demands: "an unavailable store, and a transaction to be retried, say nothing of an event"},
	}
}

// poisoned is a projection that can't be applied to the events with one number, until healed.
type poisoned struct {
	n      int
	healed atomic.Bool
	calls  atomic.Int64
}

var errPoison = errors.New("poison")

func (p *poisoned) first(e journal.Event[amount]) error {
	if e.Payload.N != p.n || p.healed.Load() {
		return nil
	}
	p.calls.Add(1)
	return errPoison
}

// later lets time pass and projections go on, round by round, until done says so.
func (k *jkit[Tx]) later(what string, j *journal.Journal[Tx], done func() bool) {
	k.Helper()
	for range 60 {
		for idle := 0; idle < 2; idle++ { // as catchUp
			n, err := j.CatchUp(k.ctx)
			if err != nil || n > 0 {
				idle = -1
			}
		}
		if done() {
			return
		}
		k.advance(10 * time.Minute)
	}
	k.failf("%s: did not happen in 60 rounds", what)
}

func poisonStall[Tx any](k *jkit[Tx]) {
	j := k.journal()
	p := poisoned{n: 3}
	k.projecting(j, "p", journal.ProjectionOptions{}, p.first, k.inRef)
	rec := k.record(j, "a", k.deposits(5)...)
	k.is("CatchUp", k.fails(j), errPoison)
	k.is("CatchUp of those before it, and then it", k.fails(j), errPoison)
	k.wantMarked("those before it", "p", rec.Seqs[:2]...)
	s := k.status(j, "p")
	eq(k.kit, "seq", s.Seq, rec.Seqs[1])
	eq(k.kit, "failed seq", s.FailedSeq, rec.Seqs[2])
	if s.Failures < 1 || !strings.Contains(s.LastError, "poison") || s.Lag == 0 {
		k.failf("status of a stalled projection: %+v", s)
	}
	pause := time.Duration(0)
	for range 5 {
		calls := p.calls.Load()
		eq(k.kit, "events scanned before its time", k.catchUp(j), 0)
		eq(k.kit, "calls before its time", p.calls.Load(), calls)
		s := k.status(j, "p")
		next := s.RetryAt.Sub(k.now())
		if next <= 0 || next > 5*time.Minute*5/4 || next < pause {
			k.failf("pause %v after one of %v: it must grow, up to 5 min and 25 %%", next, pause)
		}
		k.wantTime("RetryAt", s.RetryAt, s.RetryAt)
		pause = next
		k.advance(next - time.Microsecond)
		eq(k.kit, "events scanned a moment before its time", k.catchUp(j), 0)
		k.advance(2 * time.Microsecond)
		k.is("CatchUp at its time", k.fails(j), errPoison)
		eq(k.kit, "calls at its time", p.calls.Load(), calls+1)
		eq(k.kit, "failures", k.status(j, "p").Failures, s.Failures+1)
	}
	p.healed.Store(true)
	eq(k.kit, "events scanned before its time", k.catchUp(j), 0)
	k.advance(10 * time.Minute)
	eq(k.kit, "events scanned once it is healed", k.catchUp(j), 3)
	k.wantMarked("all", "p", rec.Seqs...)
	s = k.status(j, "p")
	eq(k.kit, "status of one that is well", s, journal.Status{Name: "p", Version: 1, Seq: rec.Last()})
}

func poisonSkip[Tx any](k *jkit[Tx]) {
	j := k.journal()
	p := poisoned{n: 2}
	k.projecting(j, "p", journal.ProjectionOptions{OnError: journal.Skip, Tries: 4}, p.first, k.inRef)
	rec := k.record(j, "a", append(k.deposits(3), k.inRef.New(amount{2}), k.inRef.New(amount{5}))...)
	at := k.now()
	k.later("passed over", j, func() bool { return k.status(j, "p").Seq == rec.Last() })
	want := slices.Concat(rec.Seqs[:1], rec.Seqs[2:3], rec.Seqs[4:])
	k.wantMarked("all but the poison", "p", want...)
	skipped, err := j.Skipped(k.ctx, "p", 0)
	k.ok("Skipped", err)
	eq(k.kit, "skipped", len(skipped), 2)
	for i, a := range skipped {
		eq(k.kit, "seq", a.Seq, rec.Seqs[1+2*i])
		eq(k.kit, "key", a.Key, key("a"))
		if !strings.Contains(a.Error, "poison") || a.At.Before(at) {
			k.failf("skipped: %+v", a)
		}
	}
	if n := p.calls.Load(); n < 8 || n > 10 {
		k.failf("the two were tried %d times: it should be 4 times each alone, and once more in a batch", n)
	}
	eq(k.kit, "failures", k.status(j, "p").Failures, 0)
	one, err := j.Skipped(k.ctx, "p", 1)
	k.ok("Skipped", err)
	eq(k.kit, "one of them", len(one), 1)
}

func poisonTries[Tx any](k *jkit[Tx]) {
	for _, policy := range []journal.Policy{journal.Skip, journal.ParkEntity} {
		for tries := 1; tries <= 3; tries++ {
			name := fmt.Sprint(policy, tries)
			j := k.journal()
			p := poisoned{n: 4}
			k.projecting(j, name, journal.ProjectionOptions{OnError: policy, Tries: tries}, p.first, k.out)
			var want []int64
			for n := 1; n <= 6; n++ {
				seq := k.record(j, fmt.Sprint(name, n), k.out.New(amount{n})).Last()
				if n != 4 {
					want = append(want, seq)
				}
			}
			k.later(name, j, func() bool { return k.status(j, name).Lag == 0 })
			got := k.applied(name)
			if len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) {
				k.failf("%s: applied to %v, want %v among them", name, got, want)
			}
		}
	}
}

func poisonRace[Tx any](k *jkit[Tx]) {
	j := k.journal()
	p := poisoned{n: 5}
	k.projecting(j, "p", journal.ProjectionOptions{OnError: journal.Skip, Tries: 2}, p.first, k.inRef)
	rec := k.record(j, "a", k.deposits(8)...)
	for range 20 {
		k.race(4, func(ctx context.Context, _ int) error {
			_, err := j.CatchUp(ctx)
			if err != nil && !errors.Is(err, errPoison) {
				return err
			}
			return nil
		})
		if k.status(j, "p").Lag == 0 {
			break
		}
		k.advance(time.Minute)
	}
	k.wantMarked("all but the poison", "p", slices.Concat(rec.Seqs[:4], rec.Seqs[5:])...)
}

func poisonPanic[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.projecting(j, "p", journal.ProjectionOptions{OnError: journal.Skip, Tries: 1}, func(e journal.Event[amount]) error {
		if e.Payload.N == 2 {
			panic("poison")
		}
		return nil
	}, k.inRef)
	rec := k.record(j, "a", k.deposits(3)...)
	k.later("passed over", j, func() bool { return k.status(j, "p").Seq == rec.Last() })
	k.wantMarked("all but the poison", "p", rec.Seqs[0], rec.Seqs[2])
}

// refusingCommit has a commit fail as long as bad says so.
type refusingCommit[Tx any] struct {
	journal.Store[Tx]
	bad func() error
}

func (r refusingCommit[Tx]) InTx(ctx context.Context, do func(context.Context, Tx) error) error {
	return r.Store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		if err := do(ctx, tx); err != nil {
			return err
		}
		return r.bad()
	})
}

func poisonCommit[Tx any](k *jkit[Tx]) {
	met := false
	j, err := journal.New[Tx](refusingCommit[Tx]{k.store, func() error {
		if met {
			met = false
			return errPoison
		}
		return nil
	}}, journal.Options{})
	k.ok("New", err)
	k.projecting(j, "p", journal.ProjectionOptions{OnError: journal.Skip, Tries: 2}, func(e journal.Event[amount]) error {
		met = met || e.Payload.N == 7
		return nil
	}, k.inRef)
	rec := k.record(j, "a", k.deposits(12)...)
	k.later("passed over", j, func() bool { return k.status(j, "p").Seq == rec.Last() })
	k.wantMarked("all but the poison", "p", slices.Concat(rec.Seqs[:6], rec.Seqs[7:])...)
	skipped, err := j.Skipped(k.ctx, "p", 0)
	k.ok("Skipped", err)
	eq(k.kit, "skipped", len(skipped), 1)
	eq(k.kit, "skipped seq", skipped[0].Seq, rec.Seqs[6])
}

func poisonPassing[Tx any](k *jkit[Tx]) {
	fail := error(nil)
	j, err := journal.New[Tx](refusingCommit[Tx]{k.store, func() error { return fail }}, journal.Options{})
	k.ok("New", err)
	k.projecting(j, "p", journal.ProjectionOptions{OnError: journal.Skip, Tries: 1}, nil, k.inRef)
	rec := k.record(j, "a", k.deposits(1)...)
	for _, fail = range passingErrors() {
		for range 3 {
			_, err := j.CatchUp(k.ctx)
			k.is("CatchUp", err, fail)
		}
		eq(k.kit, "failures", k.cursor("p@1").Failures, 0)
	}
	fail = nil
	k.catchUp(j)
	k.wantMarked("in the end", "p", rec.Seqs...)
}
