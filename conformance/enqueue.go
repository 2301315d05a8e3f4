package conformance

import (
	"bytes"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func enqueueCases() []testCase {
	return []testCase{
		{rule: "Q1", name: "claimable", run: enqueueClaimable, timeless: true,
			demands: "an enqueued job is waiting and is handed out whole by the next claim"},
		{rule: "Q13", name: "every-field", run: enqueueEveryField,
			demands: "every field of a request comes back from Claim, Get and List alike"},
		{rule: "Q13", name: "zero-fields", run: enqueueZeroFields, timeless: true,
			demands: "fields that were left out come back as zero"},
		{rule: "Q13", name: "times", run: enqueueTimes,
			demands: "times are UTC in whole microseconds; a RunAt that is not in the future means now"},
		{rule: "Q13", name: "payload-bytes", run: enqueuePayloadBytes, timeless: true,
			demands: "any payload bytes are accepted and come back unchanged"},
		{rule: "Q13", name: "payload-limit", run: enqueuePayloadLimit, timeless: true,
			demands: "a payload of exactly the limit is accepted, one byte more is refused"},
		{rule: "Q13", name: "payload-copies", run: enqueuePayloadCopies, timeless: true,
			demands: "the store keeps no reference to a caller's bytes and hands out none of its own"},
		{rule: "Q13", name: "metadata-copies", run: enqueueMetadataCopies, timeless: true,
			demands: "the store keeps no reference to a caller's map or trace and hands out none of its own"},
		{rule: "Q13", name: "metadata-texts", run: enqueueMetadataTexts, timeless: true,
			demands: "metadata comes back byte for byte, whatever the text"},
		{rule: "Q1", name: "seen-by-other-handle", run: enqueueOtherHandle, needs: []Capability{CapOpen}, timeless: true,
			demands: "a job enqueued through one handle is claimed and held through another"},
	}
}

func enqueueClaimable(k *kit) {
	k.add("a")
	k.wantState("a", core.StateWaiting)
	k.wantCounts(theQueue, map[core.State]int64{core.StateWaiting: 1})
	h := k.takeID("a")
	k.sameBytes("payload", h.Payload, []byte(`{"n":1}`))
	k.wantState("a", core.StateActive)
	k.none("the only job is held")
}

// fullRequest sets every field but Dedupe.
func fullRequest(id string) core.EnqueueRequest {
	r := request(id)
	r.Payload = []byte(`{"z":1,"a":12345678901234567890,"third":0.3333333333333333,"none":[]}`)
	r.Metadata = map[string]string{"tenant": "a:b/c", "größe": "✓"}
	r.Priority, r.MaxAttempts, r.MaxStalls = -7, 5, 2
	r.Backoff = core.Exponential(1500*time.Millisecond, 1.7, time.Hour, core.NoJitter())
	r.Keep = core.Keep{
		Completed: core.KeepRule{Count: 3, Age: time.Minute},
		Failed:    core.KeepRule{None: true},
		Cancelled: core.KeepRule{Forever: true},
	}
	r.Timeout = 1234 * time.Millisecond
	r.Delay = 5 * time.Second
	r.Trace = &core.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "v=1", Delayed: true}
	return r
}

func enqueueEveryField(k *kit) {
	req := fullRequest("full")
	enqueued := k.now()
	k.ok("Enqueue", k.enqueue(req)[0].Err)
	want := core.Record{
		ID: "full", Name: req.Name, Queue: req.Queue, State: core.StateDelayed, Payload: req.Payload,
		Metadata: req.Metadata, Priority: req.Priority, MaxAttempts: req.MaxAttempts, MaxStalls: req.MaxStalls,
		Backoff: req.Backoff, Keep: req.Keep, Timeout: req.Timeout, Trace: req.Trace,
		EnqueuedAt: enqueued, RunAt: enqueued.Add(req.Delay),
	}
	compare := func(where string) {
		if k.insp == nil {
			return
		}
		got := k.get("full")
		want.Ref = got.Ref
		k.sameRecord("Get of a "+where+" job", got, want)
		for _, q := range []core.Query{{}, {Queue: req.Queue, Name: req.Name, Metadata: map[string]string{"tenant": "a:b/c"}}} {
			page := k.list(q)
			eq(k, "jobs listed", len(page.Jobs), 1)
			k.sameRecord("List of a "+where+" job", page.Jobs[0], want)
		}
	}
	compare("delayed")

	k.advance(req.Delay)
	h := k.takeID("full")
	want.State, want.Fence, want.ClaimedAt, want.Ref = core.StateActive, 1, k.now(), h.Ref
	k.sameRecord("Claim", h.Record, want)
	compare("active")

	k.advance(time.Second)
	eq(k, "state", k.ack(core.Ack{Lease: h.lease, Outcome: core.OutcomeComplete, Result: []byte("done")}), core.StateCompleted)
	want.State, want.FinishedAt, want.Result = core.StateCompleted, k.now(), []byte("done")
	want.Attempts, want.Runs = 1, 1
	compare("completed")
}

func enqueueZeroFields(k *kit) {
	k.ok("Enqueue", k.enqueue(core.EnqueueRequest{ID: "bare", Name: theName, Queue: theQueue, MaxAttempts: 1})[0].Err)
	h := k.takeID("bare")
	switch {
	case len(h.Payload) != 0, len(h.Metadata) != 0, h.Trace != nil, h.Priority != 0, h.MaxStalls != 0,
		h.Backoff != core.Backoff{}, h.Keep != core.Keep{}, h.Timeout != 0, h.DedupeKey != "",
		h.Attempts != 0, h.Stalls != 0, h.Snoozes != 0, h.Runs != 0:
		k.failf("a job without options came back as %+v", h.Record)
	}
}

func enqueueTimes(k *kit) {
	now := k.now()
	odd := time.Date(2026, 12, 31, 23, 59, 59, 987_654_999, time.FixedZone("odd", -7*60*60))
	for _, c := range []struct {
		id   string
		mod  mod
		want time.Time
	}{
		{"plain", func(*core.EnqueueRequest) {}, now},
		{"past", runAt(now.Add(-time.Hour)), now},
		{"long past", runAt(time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)), now},
		{"exactly now", runAt(k.clock.Now()), now},
		{"delayed", delay(time.Minute), now.Add(time.Minute)},
		{"delayed by a microsecond", delay(time.Microsecond), now.Add(time.Microsecond)},
		{"at", runAt(odd), core.Micros(odd)},
		{"far", runAt(time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)},
	} {
		k.add(c.id, c.mod)
		state := core.StateWaiting
		if c.want.After(now) {
			state = core.StateDelayed
		}
		k.look(c.id, func(r core.Record) {
			k.wantTime("EnqueuedAt of "+c.id, r.EnqueuedAt, now)
			k.wantTime("RunAt of "+c.id, r.RunAt, c.want)
			k.wantTime("ClaimedAt of "+c.id, r.ClaimedAt, time.Time{})
			k.wantTime("FinishedAt of "+c.id, r.FinishedAt, time.Time{})
			eq(k, "state of "+c.id, r.State, state)
		})
	}
	for _, j := range k.drain("claimable at once", "plain", "past", "long past", "exactly now").Jobs {
		k.wantTime("EnqueuedAt of "+j.ID, j.EnqueuedAt, now)
		k.wantTime("RunAt of "+j.ID, j.RunAt, now)
	}
}

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func enqueuePayloadBytes(k *kit) {
	payloads := [][]byte{
		nil, {}, {0}, []byte("a\x00b"), []byte("\x00tail"), allBytes(), []byte(`{"b":1,"a":12345678901234567890}`),
		[]byte("  spaces kept  \n"), []byte(`\x41`), {0xff, 0xfe, 0x80}, bytes.Repeat([]byte("ä'\"\\"), 5000), []byte("null"),
	}
	ids := make([]string, len(payloads))
	for i, p := range payloads {
		ids[i] = k.add(fmt.Sprintf("p%d", i), payload(p))
	}
	for i, j := range k.drain("jobs", ids...).Jobs {
		k.sameBytes("payload of "+j.ID, j.Payload, payloads[i])
		k.look(j.ID, func(r core.Record) { k.sameBytes("payload of "+j.ID+" from Get", r.Payload, payloads[i]) })
	}
}

func enqueuePayloadLimit(k *kit) {
	exact := bytes.Repeat([]byte{0, 1, 2, 0xff}, core.DefaultPayload/4)
	k.add("exact", payload(exact))
	res := k.enqueue(request("over", payload(append(exact, 'x'))))[0]
	e := wantError[*core.InvalidError](k, "payload over the limit", res.Err)
	eq(k, "field", e.Field, "Payload")
	h := k.takeID("exact")
	k.sameBytes("payload of exactly 1 MiB", h.Payload, exact)
	k.none("the refused job was not stored")
}

func enqueuePayloadCopies(k *kit) {
	mine := []byte("payload")
	k.add("a", payload(mine))
	copy(mine, "XXXXXXX")
	h := k.takeID("a")
	k.sameBytes("payload after the caller changed its slice", h.Payload, []byte("payload"))
	copy(h.Payload, "YYYYYYY")
	k.look("a", func(r core.Record) {
		k.sameBytes("payload after a claimer changed its slice", r.Payload, []byte("payload"))
		copy(r.Payload, "ZZZZZZZ")
	})
	k.end(h, core.OutcomeRelease, core.StateWaiting)
	k.sameBytes("payload of the next claim", k.takeID("a").Payload, []byte("payload"))
}

func enqueueMetadataCopies(k *kit) {
	mine := request("a")
	mine.Metadata, mine.Trace = map[string]string{"k": "v"}, &core.Trace{State: "s"}
	k.ok("Enqueue", k.enqueue(mine)[0].Err)
	check := func(where string, r core.Record) {
		k.Helper()
		if len(r.Metadata) != 1 || r.Metadata["k"] != "v" {
			k.failf("metadata from %s was changed from outside: %v", where, r.Metadata)
		}
		if r.Trace == nil || r.Trace.State != "s" {
			k.failf("the trace from %s was changed from outside: %v", where, r.Trace)
		}
		r.Metadata["k"], r.Metadata["other"], r.Trace.State = "changed", "added", "changed"
	}
	look := func() {
		k.Helper()
		if k.insp != nil {
			check("Get", k.get("a"))
			check("List", k.list(core.Query{}).Jobs[0])
		}
	}
	mine.Metadata["k"], mine.Metadata["mine"], mine.Trace.State = "changed", "added", "changed"
	look()
	h := k.takeID("a")
	check("Claim", h.Record)
	for range 2 {
		check("the claim that asks what a token holds", k.claimAs(core.ClaimRequest{Token: h.lease.Token}).Jobs[0])
	}
	look()
	k.end(h, core.OutcomeRelease, core.StateWaiting)
	check("the next claim", k.takeID("a").Record)
	look()
}

func enqueueMetadataTexts(k *kit) {
	texts := map[string]string{
		"empty": "", "newline": "a\nb\tc", "quote": `"\'`, "emoji 🦊": "🦊", "json": `{"a":null}`, "percent": "%_",
		"composed": "\u00e9", "decomposed": "e\u0301", "Case": "A", "case": "a",
	}
	k.ok("Enqueue", k.enqueue(request("a", func(r *core.EnqueueRequest) { r.Metadata = texts }))[0].Err)
	got := k.takeID("a").Metadata
	eq(k, "number of pairs", len(got), len(texts))
	for key, v := range texts {
		if got[key] != v {
			k.failf("metadata %q: got %q, want %q", key, got[key], v)
		}
	}
}

func enqueueOtherHandle(k *kit) {
	o := k.other()
	k.add("a")
	h := o.takeID("a")
	k.none("another handle holds the only job")
	k.holds(h.lease)
	eq(k, "state", k.ack(core.Ack{Lease: h.lease, Outcome: core.OutcomeComplete}), core.StateCompleted)
	o.wantState("a", core.StateCompleted)
}
