package conformance

import (
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func ledgerCases() []testCase {
	needs := []Capability{CapInspector}
	return []testCase{
		{rule: "Q9", name: "unknown", run: ledgerUnknown, needs: needs, timeless: true,
			demands: "the ledger of an unknown id is empty, and so is that of a job that has not run"},
		{rule: "Q9", name: "entries", run: ledgerEntries, needs: needs,
			demands: "an entry has its number, start, end, outcome, result, failure and worker; oldest first"},
		{rule: "Q9", name: "numbers", run: ledgerNumbers, needs: []Capability{CapInspector, CapAdmin}, timeless: true,
			demands: "entries count 1, 2, 3 for the life of the record, over every Retry of an operator"},
		{rule: "Q9", name: "newest-hundred", run: ledgerHundred, needs: needs, timeless: true,
			demands: "the newest 100 entries are kept, and the numbers go on"},
		{rule: "Q5", name: "repeat-beyond-the-ledger", run: ledgerRepeatGone, timeless: true,
			demands: "a repeated ack is answered as long as its entry is one of the newest 100; after that as ever or ErrLeaseLost"},
		{rule: "Q6", name: "one-entry-per-end", run: ledgerOnePerEnd, needs: []Capability{CapInspector, CapAdmin},
			demands: "every end writes exactly one entry, run or not"},
	}
}

func ledgerUnknown(k *kit) {
	for _, id := range []string{"nobody", "", "\x00", "\xff"} {
		eq(k, "ledger entries", len(k.attempts(id)), 0)
	}
	k.add("a")
	k.take()
	k.wantLedger("a")
}

func ledgerEntries(k *kit) {
	k.add("a")
	type entry struct {
		outcome core.Outcome
		result  []byte
		failure *core.Failure
		start   time.Time
		end     time.Time
		worker  string
	}
	var want []entry
	for i, o := range []core.Outcome{core.OutcomeRetry, core.OutcomeStalled, core.OutcomeRetry, core.OutcomeComplete} {
		e := entry{outcome: o, worker: fmt.Sprintf("wörker/%d", i)}
		c := k.claimAs(core.ClaimRequest{Wants: nil, Token: core.NewToken()})
		eq(k, "jobs of an empty claim", len(c.Jobs), 0)
		c = k.claimAs(core.ClaimRequest{Wants: wants(1), Token: core.NewToken(), Lease: time.Second, Worker: e.worker})
		eq(k, "jobs claimed", len(c.Jobs), 1)
		e.start = k.now()
		k.advance(time.Second)
		e.end = k.now()
		switch o {
		case core.OutcomeStalled:
			k.swept("a")
		case core.OutcomeRetry:
			e.failure = &core.Failure{Message: fmt.Sprintf("failure %d", i), Type: "t", Stack: "s", Timeout: i == 0, Panic: i == 2}
			k.ack(core.Ack{Lease: c.leases()[0], Outcome: o, Failure: e.failure})
		default:
			e.result = []byte("null")
			k.ack(core.Ack{Lease: c.leases()[0], Outcome: o, Result: e.result})
		}
		k.advance(time.Hour)
		want = append(want, e)
	}
	got := k.attempts("a")
	eq(k, "ledger entries", len(got), len(want))
	for i, a := range got {
		w := want[i]
		eq(k, "number", a.Number, i+1)
		eq(k, "outcome", a.Outcome, w.outcome)
		k.wantTime("StartedAt", a.StartedAt, w.start)
		k.wantTime("FinishedAt", a.FinishedAt, w.end)
		k.sameResult("result", a.Result, w.result)
		k.sameFailure("failure", a.Failure, w.failure)
		eq(k, "worker", a.Worker, w.worker)
	}
}

// wants is the default want as a list.
func wants(n int) []core.Want { return []core.Want{want(n)} }

func ledgerNumbers(k *kit) {
	k.add("a")
	var want []core.Outcome
	for range 3 {
		k.end(k.takeID("a"), core.OutcomeRetry, core.StateWaiting)
		k.end(k.takeID("a"), core.OutcomeFail, core.StateFailed)
		want = append(want, core.OutcomeRetry, core.OutcomeFail)
		k.wantLedger("a", want...)
		k.ok("Retry", k.admin.Retry(k.ctx, "a"))
		k.wantLedger("a", want...)
	}
	k.cancel("a", core.StateCancelled)
	k.wantLedger("a", append(want, core.OutcomeCancel)...)
}

// manyRuns runs a job n times and returns the first lease.
func (k *kit) manyRuns(id string, n int) core.Lease {
	k.Helper()
	first := k.takeID(id)
	k.end(first, core.OutcomeRetry, core.StateWaiting)
	for i := 1; i < n; i++ {
		h := k.takeID(id)
		k.ack(core.Ack{Lease: h.lease, Outcome: core.OutcomeRetry, Failure: &core.Failure{Message: fmt.Sprint(i + 1)}})
	}
	return first.lease
}

func ledgerHundred(k *kit) {
	k.add("a")
	const extra = 5
	k.manyRuns("a", core.LedgerLimit+extra)
	as := k.attempts("a")
	eq(k, "ledger entries kept", len(as), core.LedgerLimit)
	for i, a := range as {
		eq(k, "number", a.Number, i+extra+1)
		eq(k, "failure of entry", a.Failure.Message, fmt.Sprint(a.Number))
	}
	r := k.get("a")
	eq(k, "runs", r.Runs, core.LedgerLimit+extra)
	eq(k, "attempts", r.Attempts, core.LedgerLimit+extra)
}

func ledgerRepeatGone(k *kit) {
	k.add("a")
	first := k.manyRuns("a", core.LedgerLimit)
	retry := core.Ack{Lease: first, Outcome: core.OutcomeRetry}
	eq(k, "answer while the entry lives", k.ack(retry), core.StateWaiting)
	k.end(k.takeID("a"), core.OutcomeRetry, core.StateWaiting)
	switch res := k.acks(retry)[0]; res.Err {
	case nil:
		eq(k, "answer to whose entry may be forgotten", res.State, core.StateWaiting)
	default:
		k.is("ack whose entry was forgotten", res.Err, core.ErrLeaseLost)
	}
	eq(k, "attempts, as no repeat counted", k.takeID("a").Attempts, core.LedgerLimit+1)
}

func ledgerOnePerEnd(k *kit) {
	ends := []struct {
		id      string
		outcome core.Outcome
		end     func(id string)
	}{
		{"waiting cancelled", core.OutcomeCancel, func(id string) { k.cancel(id, core.StateCancelled) }},
		{"delayed cancelled", core.OutcomeCancel, func(id string) { k.cancel(id, core.StateCancelled) }},
		{"complete", core.OutcomeComplete, func(id string) { k.end(k.takeID(id), core.OutcomeComplete, core.StateCompleted) }},
		{"fail", core.OutcomeFail, func(id string) { k.end(k.takeID(id), core.OutcomeFail, core.StateFailed) }},
		{"cancel", core.OutcomeCancel, func(id string) { k.end(k.takeID(id), core.OutcomeCancel, core.StateCancelled) }},
		{"release as cancel", core.OutcomeCancel, func(id string) {
			h := k.takeID(id)
			k.cancel(id, core.StateActive)
			k.end(h, core.OutcomeRelease, core.StateCancelled)
		}},
		{"stalled out", core.OutcomeStalled, func(id string) {
			k.takeFor(0)
			eq(k, "jobs taken", len(k.sweep(core.RecoverRequest{})), 1)
		}},
	}
	for _, e := range ends {
		d := time.Duration(0)
		if e.id == "delayed cancelled" {
			d = time.Hour
		}
		k.add(e.id, delay(d))
		e.end(e.id)
		k.wantLedger(e.id, e.outcome)
		eq(k, e.id+" has ended", k.get(e.id).State.Terminal(), true)
	}
}
