package conformance

import (
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func ackCases() []testCase {
	return []testCase{
		{rule: "Q6", name: "complete", run: ackComplete,
			demands: "Complete ends the job as completed with its result, and costs an attempt"},
		{rule: "Q6", name: "fail", run: ackFail,
			demands: "Fail ends the job as failed with its failure, and costs an attempt"},
		{rule: "Q6", name: "retry", run: ackRetry,
			demands: "Retry delays the job by its delay, costs an attempt and leaves no trace of an end"},
		{rule: "Q6", name: "retry-at-once", run: ackRetryAtOnce,
			demands: "Retry without a delay makes the job waiting at once, with RunAt = now"},
		{rule: "Q6", name: "cancel", run: ackCancel,
			demands: "Cancel ends the job as cancelled and costs no attempt"},
		{rule: "Q6", name: "release", run: ackRelease,
			demands: "Release makes the job as if it had never been claimed: no attempt, no ledger entry, RunAt kept"},
		{rule: "Q6", name: "snooze", run: ackSnooze,
			demands: "Snooze delays the job, is counted, and costs no attempt and no ledger entry"},
		{rule: "Q6", name: "attempts", run: ackAttempts, timeless: true,
			demands: "only Complete, Fail and Retry cost an attempt; the store counts and leaves the limit to the worker"},
		{rule: "Q6", name: "results", run: ackResults, timeless: true,
			demands: "a result comes back byte for byte; none, an empty one and null are three things"},
		{rule: "Q6", name: "failures", run: ackFailures, timeless: true,
			demands: "a failure comes back as it was; it belongs to Retry and Fail only, a result to Complete only"},
		{rule: "Q13", name: "copies", run: ackCopies, needs: []Capability{CapInspector}, timeless: true,
			demands: "the store keeps no reference to a caller's result or failure and hands out none of its own"},
	}
}

func ackComplete(k *kit) {
	k.add("a")
	h := k.take()
	k.advance(time.Second)
	st := k.ack(core.Ack{Lease: h.lease, Outcome: core.OutcomeComplete, Result: []byte(`{"ok":true}`)})
	eq(k, "state", st, core.StateCompleted)
	k.look("a", func(r core.Record) {
		eq(k, "state", r.State, core.StateCompleted)
		eq(k, "attempts", r.Attempts, 1)
		k.sameResult("result", r.Result, []byte(`{"ok":true}`))
		k.wantTime("FinishedAt", r.FinishedAt, k.now())
		k.wantTime("ClaimedAt", r.ClaimedAt, h.ClaimedAt)
		eq(k, "failure", r.Failure, nil)
	})
	k.wantLedger("a", core.OutcomeComplete)
	k.advance(time.Hour)
	k.swept()
	k.none("it is completed")
}

func ackFail(k *kit) {
	k.add("a")
	h := k.take()
	k.advance(time.Second)
	failure := &core.Failure{Message: "boom", Type: "*main.Error", Stack: "main.go:1", Panic: true}
	eq(k, "state", k.ack(core.Ack{Lease: h.lease, Outcome: core.OutcomeFail, Failure: failure}), core.StateFailed)
	k.look("a", func(r core.Record) {
		eq(k, "state", r.State, core.StateFailed)
		eq(k, "attempts", r.Attempts, 1)
		k.wantTime("FinishedAt", r.FinishedAt, k.now())
		k.wantTime("ClaimedAt", r.ClaimedAt, h.ClaimedAt)
		k.sameFailure("failure", r.Failure, failure)
		k.sameResult("result", r.Result, nil)
	})
	k.wantLedger("a", core.OutcomeFail)
	k.advance(time.Hour)
	k.swept()
	k.none("it failed")
}

func (k *kit) sameFailure(what string, got, want *core.Failure) {
	k.Helper()
	if (got == nil) != (want == nil) || got != nil && *got != *want {
		k.failf("%s: got %+v, want %+v", what, got, want)
	}
}

func ackRetry(k *kit) {
	k.add("a")
	h := k.take()
	k.advance(time.Second)
	st := k.ack(core.Ack{Lease: h.lease, Outcome: core.OutcomeRetry, Delay: 1500 * time.Millisecond,
		Failure: &core.Failure{Message: "not yet", Timeout: true}})
	eq(k, "state", st, core.StateDelayed)
	due := k.now().Add(1500 * time.Millisecond)
	pending := func(r core.Record) {
		eq(k, "attempts", r.Attempts, 1)
		eq(k, "runs", r.Runs, 1)
		k.wantTime("RunAt", r.RunAt, due)
		k.wantTime("FinishedAt", r.FinishedAt, time.Time{})
		eq(k, "failure, which is in the ledger only", r.Failure, nil)
	}
	k.look("a", func(r core.Record) {
		eq(k, "state", r.State, core.StateDelayed)
		k.wantTime("ClaimedAt", r.ClaimedAt, time.Time{})
		pending(r)
	})
	k.wantLedger("a", core.OutcomeRetry)
	k.advance(1500*time.Millisecond - time.Microsecond)
	k.none("it is due in a microsecond")
	k.advance(time.Microsecond)
	pending(k.takeID("a").Record)
}

func ackRetryAtOnce(k *kit) {
	k.add("a")
	h := k.take()
	k.advance(time.Second)
	k.end(h, core.OutcomeRetry, core.StateWaiting)
	k.look("a", func(r core.Record) { k.wantTime("ClaimedAt", r.ClaimedAt, time.Time{}) })
	h = k.takeID("a")
	k.wantTime("RunAt", h.RunAt, k.now())
	eq(k, "attempts", h.Attempts, 1)
	k.advance(time.Second)
	k.end(h, core.OutcomeSnooze, core.StateWaiting)
	h = k.takeID("a")
	k.wantTime("RunAt after a snooze", h.RunAt, k.now())
}

func ackCancel(k *kit) {
	k.add("a")
	h := k.take()
	k.advance(time.Second)
	k.end(h, core.OutcomeCancel, core.StateCancelled)
	k.look("a", func(r core.Record) {
		eq(k, "attempts", r.Attempts, 0)
		k.wantTime("FinishedAt", r.FinishedAt, k.now())
		k.wantTime("ClaimedAt", r.ClaimedAt, h.ClaimedAt)
		eq(k, "CancelRequested", r.CancelRequested, false)
	})
	k.wantLedger("a", core.OutcomeCancel)
	k.none("it is cancelled")
}

func ackRelease(k *kit) {
	k.add("a", delay(time.Second))
	k.advance(5 * time.Second)
	h := k.take()
	k.advance(time.Second)
	k.end(h, core.OutcomeRelease, core.StateWaiting)
	k.look("a", func(r core.Record) {
		k.wantTime("ClaimedAt", r.ClaimedAt, time.Time{})
		k.wantTime("RunAt", r.RunAt, h.RunAt)
	})
	k.wantLedger("a")
	again := k.takeID("a")
	eq(k, "fence", again.Fence, 2)
	again.Fence, again.ClaimedAt = h.Fence, h.ClaimedAt
	k.sameRecord("the job claimed again", again.Record, h.Record)
}

func ackSnooze(k *kit) {
	k.add("a")
	for i := range 3 {
		h := k.takeID("a")
		eq(k, "snoozes", h.Snoozes, i)
		eq(k, "attempts", h.Attempts, 0)
		k.endIn(h, core.OutcomeSnooze, time.Minute, core.StateDelayed)
		k.look("a", func(r core.Record) {
			k.wantTime("ClaimedAt", r.ClaimedAt, time.Time{})
			k.wantTime("RunAt", r.RunAt, k.now().Add(time.Minute))
		})
		k.advance(time.Minute - time.Microsecond)
		k.none("it is snoozed")
		k.advance(time.Microsecond)
	}
	k.wantLedger("a")
}

func ackAttempts(k *kit) {
	k.add("a", func(r *core.EnqueueRequest) { r.MaxAttempts = 1 })
	for i, outcome := range []core.Outcome{
		core.OutcomeRelease, core.OutcomeRetry, core.OutcomeSnooze, core.OutcomeRetry, core.OutcomeRelease, core.OutcomeRetry,
	} {
		h := k.takeID("a")
		eq(k, fmt.Sprintf("attempts before ack %d", i), h.Attempts, []int{0, 0, 1, 1, 2, 2}[i])
		k.end(h, outcome, core.StateWaiting)
	}
	h := k.takeID("a")
	eq(k, "attempts", h.Attempts, 3)
	eq(k, "snoozes", h.Snoozes, 1)
	eq(k, "runs", h.Runs, 3)
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	k.look("a", func(r core.Record) { eq(k, "attempts", r.Attempts, 4) })
	k.wantLedger("a", core.OutcomeRetry, core.OutcomeRetry, core.OutcomeRetry, core.OutcomeComplete)
}

func ackResults(k *kit) {
	results := [][]byte{nil, {}, []byte("null"), {0}, allBytes(), []byte("\x00"), make([]byte, core.DefaultPayload), []byte(`{"b":1,"a":1.0}`)}
	for i, want := range results {
		id := k.add(fmt.Sprintf("r%d", i))
		h := k.takeID(id)
		eq(k, "state", k.ack(core.Ack{Lease: h.lease, Outcome: core.OutcomeComplete, Result: want}), core.StateCompleted)
		k.look(id, func(r core.Record) {
			k.sameResult("result from Get", r.Result, want)
			as := k.attempts(id)
			eq(k, "ledger entries", len(as), 1)
			k.sameResult("result in the ledger", as[0].Result, want)
		})
	}
	if k.insp == nil {
		return
	}
	for i, r := range k.list(core.Query{Ascending: true}).Jobs {
		k.sameResult("result from List", r.Result, results[i])
	}
}

func ackFailures(k *kit) {
	full := &core.Failure{Message: "m\nä🦊", Type: "t", Stack: "s\t'\"", Panic: true, Timeout: true}
	for i, c := range []struct {
		outcome  core.Outcome
		failure  *core.Failure
		onRecord bool
		inLedger bool
	}{
		{core.OutcomeFail, nil, false, false},
		{core.OutcomeFail, &core.Failure{}, true, true},
		{core.OutcomeFail, full, true, true},
		{core.OutcomeRetry, full, false, true},
		{core.OutcomeRetry, nil, false, false},
		{core.OutcomeComplete, full, false, false},
		{core.OutcomeCancel, full, false, false},
	} {
		id := k.add(fmt.Sprintf("f%d", i))
		h := k.takeID(id)
		k.ack(core.Ack{Lease: h.lease, Outcome: c.outcome, Delay: 10 * time.Minute, Failure: c.failure, Result: []byte("r")})
		k.look(id, func(r core.Record) {
			pick := func(there bool) *core.Failure {
				if there {
					return c.failure
				}
				return nil
			}
			var result []byte
			if c.outcome == core.OutcomeComplete {
				result = []byte("r")
			}
			what := fmt.Sprintf(" of %s with %+v", c.outcome, c.failure)
			as := k.attempts(id)
			eq(k, "ledger entries"+what, len(as), 1)
			k.sameFailure("failure on the record"+what, r.Failure, pick(c.onRecord))
			k.sameFailure("failure in the ledger"+what, as[0].Failure, pick(c.inLedger))
			k.sameResult("result on the record"+what, r.Result, result)
			k.sameResult("result in the ledger"+what, as[0].Result, result)
		})
	}
}

func ackCopies(k *kit) {
	k.addAll("a", "b")
	result, failure := []byte("result"), &core.Failure{Message: "boom"}
	k.ack(core.Ack{Lease: k.takeID("a").lease, Outcome: core.OutcomeComplete, Result: result})
	k.ack(core.Ack{Lease: k.takeID("b").lease, Outcome: core.OutcomeFail, Failure: failure})
	for range 2 {
		copy(result, "XXXXXX")
		failure.Message = "changed"
		a, b, as, bs := k.get("a"), k.get("b"), k.attempts("a"), k.attempts("b")
		k.sameResult("result", a.Result, []byte("result"))
		k.sameResult("result in the ledger", as[0].Result, []byte("result"))
		eq(k, "message", b.Failure.Message, "boom")
		eq(k, "message in the ledger", bs[0].Failure.Message, "boom")
		copy(a.Result, "YYYYYY")
		copy(as[0].Result, "ZZZZZZ")
		b.Failure.Message, bs[0].Failure.Message = "changed", "changed"
	}
}
