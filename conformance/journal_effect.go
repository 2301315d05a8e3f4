package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

func effectCases[Tx any]() []journalCase[Tx] {
	inspect := []Capability{CapInspector}
	return []journalCase[Tx]{
		{rule: "J5", name: "runs", run: effectRuns[Tx],
			demands: "each event runs each effect that hears exactly its kind and type, once if nothing fails"},
		{rule: "J5", name: "retries", run: effectRetries[Tx], needs: inspect,
			demands: "an effect that fails runs again after its backoff, under the same job id, until MaxAttempts, 8 unless said, and is then failed"},
		{rule: "J3", name: "caused", run: effectCaused[Tx],
			demands: "what an effect records through its call has the event's correlation, and its seq as causation"},
		{rule: "J5", name: "writes", run: effectWrites[Tx],
			demands: "an effect that records and fails afterwards is repeated: at least once, which its job id tells"},
		{rule: "J6", name: "stranded", run: effectStranded[Tx], needs: inspect,
			demands: "jobs of effects that a journal does not have are never claimed by it, and are counted by name, sorted"},
	}
}

func effectRuns[Tx any](k *jkit[Tx]) {
	j := k.journal()
	one, two, out, other := k.effect(j, "one", k.inRef), k.effect(j, "two", k.inRef), k.effect(j, "out", k.out), k.effect(j, "other", k.inOther)
	w := k.worker(j)
	rec := k.record(j, "a", k.inRef.New(amount{1}), k.out.New(amount{1}), k.inRef.New(amount{1}))
	effects, _ := k.work(w)
	eq(k.kit, "effects that ran", effects, 5)
	for _, h := range []*heard[int64]{one, two} {
		eqs(k.kit, "events of an effect", slices.Sorted(slices.Values(h.list())), []int64{rec.Seqs[0], rec.Seqs[2]})
	}
	eqs(k.kit, "events of another type", out.list(), rec.Seqs[1:2])
	eq(k.kit, "events of another kind", other.len(), 0)
	effects, _ = k.work(w)
	eq(k.kit, "effects that ran again", effects, 0)
}

func effectRetries[Tx any](k *jkit[Tx]) {
	j := k.journal()
	var calls heard[string]
	failing := func(_ context.Context, e journal.Event[amount], c journal.Call[Tx]) error {
		calls.add(fmt.Sprint(c.JobID, " ", c.Attempt))
		if e.Payload.N > c.Attempt {
			return errors.New("no answer")
		}
		return nil
	}
	k.ok("On", journal.On(j, "three", k.inRef, failing, journal.EffectOptions{MaxAttempts: 3}))
	k.ok("On", journal.On(j, "default", k.out, failing))
	w := k.worker(j)
	rec := k.record(j, "a", k.inRef.New(amount{3}), k.inRef.New(amount{9}), k.out.New(amount{100}))
	ids := []string{journal.JobID("three", rec.Seqs[0]), journal.JobID("three", rec.Seqs[1]), journal.JobID("default", rec.Seqs[2])}
	for attempt := 1; attempt <= 8; attempt++ {
		k.work(w)
		eq(k.kit, "attempts", k.get(ids[2]).Attempts, attempt)
		n := calls.len()
		k.work(w)
		eq(k.kit, "calls before the backoff is over", calls.len(), n)
		k.advance(7 * time.Minute) // more than 5 min and 25 %
	}
	k.wantState(ids[0], core.StateCompleted)
	k.wantState(ids[1], core.StateFailed)
	k.wantState(ids[2], core.StateFailed)
	k.work(w)
	var want []string
	for i, n := range []int{3, 3, 8} {
		for attempt := range n {
			want = append(want, fmt.Sprint(ids[i], " ", attempt+1))
		}
	}
	eqs(k.kit, "calls", slices.Sorted(slices.Values(calls.list())), slices.Sorted(slices.Values(want)))
}

func effectCaused[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.ok("On", journal.On(j, "e", k.inRef, func(ctx context.Context, e journal.Event[amount], c journal.Call[Tx]) error {
		if c.JobID != journal.JobID("e", e.Seq) {
			return fmt.Errorf("job id is %q", c.JobID)
		}
		return c.Journal.InTx(ctx, func(ctx context.Context, tx Tx) error {
			_, err := c.Journal.Record(ctx, tx, key("b"), journal.AnyVersion, k.out.New(e.Payload))
			return err
		})
	}))
	rec := k.record(j.Correlated("mine"), "a", k.deposits(1)...)
	k.work(k.worker(j))
	rows := k.all()
	eq(k.kit, "events", len(rows), 2)
	eq(k.kit, "causation", rows[1].Causation, rec.Last())
	eq(k.kit, "correlation", rows[1].Correlation, "mine")
}

func effectWrites[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.ok("On", journal.On(j, "e", k.inRef, func(ctx context.Context, _ journal.Event[amount], c journal.Call[Tx]) error {
		if err := k.store.InTx(ctx, func(ctx context.Context, tx Tx) error { return k.count(ctx, tx, c.JobID, 1) }); err != nil {
			return err
		}
		if c.Attempt == 1 {
			return errors.New("afterwards")
		}
		return nil
	}))
	w := k.worker(j)
	rec := k.record(j, "a", k.deposits(1)...)
	for range 3 {
		k.work(w)
		k.advance(time.Minute)
	}
	k.wantUser("what two attempts wrote", "", map[string]string{journal.JobID("e", rec.Last()): "2"})
}

func effectStranded[Tx any](k *jkit[Tx]) {
	known := k.journal()
	for _, name := range []string{"z", "a", "m"} {
		k.effect(known, name, k.inRef)
	}
	k.effect(known, "b", k.out)
	j := k.journal()
	mine := k.effect(j, "m", k.inRef)
	k.record(known, "x", k.inRef.New(amount{1}), k.inRef.New(amount{2}), k.out.New(amount{3}))
	_, err := k.kit.store.Enqueue(k.ctx, []core.EnqueueRequest{request("stranger")})
	k.ok("Enqueue", err)
	effects, _ := k.work(k.worker(j))
	eq(k.kit, "effects that ran", effects, 2)
	eq(k.kit, "runs of the effect", mine.len(), 2)
	stranded := func(j *journal.Journal[Tx], want ...journal.StrandedEffect) {
		k.Helper()
		got, err := j.Stranded(k.ctx)
		k.ok("Stranded", err)
		eqs(k.kit, "stranded", got, append([]journal.StrandedEffect{}, want...))
	}
	stranded(j, journal.StrandedEffect{Effect: "a", Count: 2}, journal.StrandedEffect{Effect: "b", Count: 1}, journal.StrandedEffect{Effect: "z", Count: 2})
	stranded(k.journal(), journal.StrandedEffect{Effect: "a", Count: 2}, journal.StrandedEffect{Effect: "b", Count: 1}, journal.StrandedEffect{Effect: "z", Count: 2})
	stranded(known)
	effects, _ = k.work(k.worker(known))
	eq(k.kit, "effects that ran where they are known", effects, 5)
	stranded(j)
}

func orderedCases[Tx any]() []journalCase[Tx] {
	inspect := []Capability{CapInspector}
	return []journalCase[Tx]{
		{rule: "J5", name: "retries-keep-order", run: orderedRetries[Tx], needs: inspect,
			demands: "an ordered effect runs for an entity's events in order, retries included; other entities go on"},
		{rule: "J5", name: "dead-is-passed", run: orderedDead[Tx], needs: inspect,
			demands: "an ordered effect does not wait for a run that failed for good, or was cancelled"},
		{rule: "J5", name: "gaps-keep-order", run: orderedGaps[Tx], needs: inspect,
			demands: "an ordered effect waits for a run that is pending also where events between have no job: recorded by who does not have the effect, or removed"},
	}
}

// rounds does what is due again and again, some time later each, until enough was heard.
func (k *jkit[Tx]) rounds(w *journal.Worker[Tx], h *heard[string], n int) {
	k.Helper()
	for range 50 {
		k.work(w)
		if h.len() >= n {
			return
		}
		k.advance(10 * time.Second)
	}
	k.failf("after many rounds these ran: %v, want %d", h.list(), n)
}

func orderedRetries[Tx any](k *jkit[Tx]) {
	j := k.journal()
	var done heard[string]
	k.ok("On", journal.On(j, "e", k.inRef, func(_ context.Context, e journal.Event[amount], c journal.Call[Tx]) error {
		if e.Key.ID == "a" && e.Version == 1 && c.Attempt < 3 {
			return errors.New("not yet")
		}
		done.add(fmt.Sprint(e.Key.ID, e.Version))
		return nil
	}, journal.EffectOptions{Ordered: true}))
	w := k.worker(j)
	k.record(j, "a", k.inRef.New(amount{1}), k.out.New(amount{1}), k.inRef.New(amount{1}))
	k.record(j, "b", k.deposits(1)...)
	k.record(j, "a", k.deposits(1)...)
	k.work(w)
	eqs(k.kit, "what ran beside one that failed", done.list(), []string{"b1"})
	k.rounds(w, &done, 4)
	eqs(k.kit, "order", done.list(), []string{"b1", "a1", "a3", "a4"})
}

func orderedDead[Tx any](k *jkit[Tx]) {
	j := k.journal()
	var done heard[string]
	k.ok("On", journal.On(j, "e", k.inRef, func(_ context.Context, e journal.Event[amount], _ journal.Call[Tx]) error {
		if e.Version == 2 {
			return core.Unrecoverable(errors.New("never"))
		}
		done.add(fmt.Sprint(e.Key.ID, e.Version))
		return nil
	}, journal.EffectOptions{Ordered: true}))
	w := k.worker(j)
	rec := k.record(j, "a", k.deposits(5)...)
	want := []string{"a1", "a3", "a4", "a5"}
	if k.admin != nil {
		_, err := k.admin.Cancel(k.ctx, journal.JobID("e", rec.Seqs[2]))
		k.ok("Cancel", err)
		want = slices.Delete(want, 1, 2)
	}
	k.rounds(w, &done, len(want))
	eqs(k.kit, "order", done.list(), want)
}

func orderedGaps[Tx any](k *jkit[Tx]) {
	j, old := k.journal(), k.journal()
	var done heard[string]
	k.ok("On", journal.On(j, "e", k.inRef, func(_ context.Context, e journal.Event[amount], c journal.Call[Tx]) error {
		if e.Version == 1 && c.Attempt < 3 {
			return errors.New("not yet")
		}
		done.add(fmt.Sprint(e.Key.ID, e.Version))
		return nil
	}, journal.EffectOptions{Ordered: true}))
	k.record(j, "a", k.deposits(1)...)
	k.record(old, "a", k.deposits(10)...)
	rec := k.record(j, "a", k.deposits(2)...)
	want := []string{"a1", "a12", "a13"}
	if k.admin != nil {
		_, err := k.admin.Remove(k.ctx, journal.JobID("e", rec.Seqs[0]))
		k.ok("Remove", err)
		want = slices.Delete(want, 1, 2)
	}
	w := k.worker(j)
	k.work(w)
	eq(k.kit, "what ran before the first", done.len(), 0)
	k.rounds(w, &done, len(want))
	eqs(k.kit, "order", done.list(), want)
}

func backfillCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J5", name: "idempotent", run: backfillTwice[Tx],
			demands: "Backfill makes one job per event that the effect hears and that has none, however often it is called"},
		{rule: "J5", name: "range", run: backfillRange[Tx],
			demands: "Backfill makes jobs for from <= seq < to only; an unknown effect is ErrUnknownEffect"},
		{rule: "J9", name: "waits-for-the-range", run: backfillWaits[Tx], needs: []Capability{capOverlap},
			demands: "Backfill does not return before it made the jobs of the whole range: it waits for open transactions that appended, or says that it did"},
	}
}

func (k *jkit[Tx]) backfill(j *journal.Journal[Tx], from, to int64, want int) {
	k.Helper()
	n, err := j.Backfill(k.ctx, "e", from, to)
	k.ok("Backfill", err)
	eq(k.kit, fmt.Sprintf("jobs made for %d to %d", from, to), n, want)
}

func backfillTwice[Tx any](k *jkit[Tx]) {
	old := k.journal()
	k.record(old, "a", append(k.deposits(600), k.out.New(amount{1}))...)
	j := k.journal()
	ran := k.effect(j, "e", k.inRef)
	k.record(j, "a", k.deposits(2)...)
	k.backfill(j, 0, 0, 600)
	k.backfill(j, 0, 0, 0)
	k.wantJobs("after two", 602)
	k.work(k.worker(j, journal.WorkerOptions{Core: core.WorkerOptions{Concurrency: 20}}))
	k.backfill(j, 0, 0, 0)
	got := slices.Sorted(slices.Values(ran.list()))
	eq(k.kit, "runs", len(got), 602)
	eq(k.kit, "different runs", len(slices.Compact(got)), 602)
}

func backfillWaits[Tx any](k *jkit[Tx]) {
	old, j := k.journal(), k.journal()
	k.effect(j, "e", k.inRef)
	open := k.begin()
	_, err := old.Record(k.ctx, open.tx, key("slow"), journal.AnyVersion, k.inRef.New(amount{1}))
	k.ok("Record", err)
	end := k.record(old, "a", k.deposits(3)...).Last() + 1
	for _, to := range []int64{end, 0} {
		soon, cancel := context.WithTimeout(k.ctx, 50*time.Millisecond)
		_, err = j.Backfill(soon, "e", 0, to)
		cancel()
		if err == nil { // which one is for the driver to say
			k.failf("Backfill to %d beside an open transaction that has an event before: done", to)
		}
	}
	open.commit()
	k.backfill(j, 0, end, 4)
}

func backfillRange[Tx any](k *jkit[Tx]) {
	rec := k.record(k.journal(), "a", k.deposits(10)...)
	j := k.journal()
	k.effect(j, "e", k.inRef)
	k.backfill(j, rec.Seqs[2], rec.Seqs[5], 3)
	k.backfill(j, rec.Seqs[4], rec.Seqs[6], 1)
	k.backfill(j, rec.Seqs[6], rec.Seqs[6], 0)
	k.backfill(j, rec.Seqs[8], 0, 2)
	k.backfill(j, 0, rec.Seqs[1], 1)
	k.backfill(j, 0, 0, 3)
	k.backfill(j, rec.Last()+1, 0, 0)
	_, err := j.Backfill(k.ctx, "f", 0, 0)
	k.is("Backfill of an unknown effect", err, journal.ErrUnknownEffect)
}
