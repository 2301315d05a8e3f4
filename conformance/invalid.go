package conformance

import (
	"math"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
)

func invalidCases() []testCase {
	return []testCase{
		{rule: "Q13", name: "enqueue", run: invalidEnqueue, timeless: true,
			demands: "what is out of range is refused with an InvalidError that names the field, never clamped or stored"},
		{rule: "Q13", name: "enqueue-bounds", run: invalidEnqueueBounds,
			demands: "what is exactly at a bound is accepted and comes back as it was"},
		{rule: "Q4", name: "claim", run: invalidClaim, timeless: true,
			demands: "an invalid claim is refused as a whole with an InvalidError, and nothing is claimed"},
		{rule: "Q6", name: "ack", run: invalidAck, timeless: true,
			demands: "an invalid ack is refused alone with an InvalidError; its job stays held and its neighbours land"},
		{rule: "Q5", name: "extend", run: invalidExtend, timeless: true,
			demands: "a negative extension is refused with an InvalidError"},
		{rule: "Q7", name: "recover", run: invalidRecover, timeless: true,
			demands: "a sweep with a negative bound is refused with an InvalidError, and nothing is taken"},
		{rule: "Q8", name: "admin", run: invalidAdmin, needs: []Capability{CapAdmin}, timeless: true,
			demands: "Pause and Resume refuse what cannot be a queue; an id that cannot exist is ErrNotFound"},
		{rule: "Q27", name: "list", run: invalidList, needs: []Capability{CapInspector}, timeless: true,
			demands: "a List with an unknown order, an unknown state, a limit out of range or a bad cursor is an InvalidError"},
	}
}

func invalidEnqueue(k *kit) {
	long := func(n int) string { return strings.Repeat("x", n) }
	meta := func(key, v string) mod {
		return func(r *core.EnqueueRequest) { r.Metadata = map[string]string{key: v} }
	}
	backoff := func(b core.Backoff) mod { return func(r *core.EnqueueRequest) { r.Backoff = b } }
	keep := func(kr core.Keep) mod { return func(r *core.EnqueueRequest) { r.Keep = kr } }
	for _, c := range []struct {
		field string
		mod   mod
	}{
		{"Name", named("")},
		{"Name", named("a:b")},
		{"Name", named("a\x00b")},
		{"Name", named("a\nb")},
		{"Name", named("\xff")},
		{"Name", named("a\u0085b")},
		{"Name", named(long(core.MaxNameBytes + 1))},
		{"Queue", onQueue("")},
		{"Queue", onQueue("a\tb")},
		{"Queue", onQueue("a\xc3")},
		{"Queue", onQueue(long(core.MaxNameBytes + 1))},
		{"ID", func(r *core.EnqueueRequest) { r.ID = "#1" }},
		{"ID", func(r *core.EnqueueRequest) { r.ID = "@daily@1" }},
		{"ID", func(r *core.EnqueueRequest) { r.ID = "a\x00" }},
		{"ID", func(r *core.EnqueueRequest) { r.ID = "a\x7f" }},
		{"ID", func(r *core.EnqueueRequest) { r.ID = "\xf0\x28" }},
		{"ID", func(r *core.EnqueueRequest) { r.ID = long(core.MaxIDBytes + 1) }},
		{"Key", keyed("a\rb")},
		{"Key", keyed("\xff")},
		{"Key", keyed(long(core.MaxKeyBytes + 1))},
		{"Payload", payload(make([]byte, core.DefaultPayload+1))},
		{"Metadata", meta("", "v")},
		{"Metadata", meta("a\x00", "v")},
		{"Metadata", meta("k", "a\x00b")},
		{"Metadata", meta("k", "\xff")},
		{"Metadata", meta(long(core.MaxKeyBytes+1), "v")},
		{"Metadata", meta("k", long(core.MaxMetadataBytes))},
		{"Priority", prio(core.MaxPriority + 1)},
		{"Priority", prio(core.MinPriority - 1)},
		{"Priority", prio(math.MaxInt)},
		{"MaxAttempts", func(r *core.EnqueueRequest) { r.MaxAttempts = 0 }},
		{"MaxAttempts", func(r *core.EnqueueRequest) { r.MaxAttempts = -1 }},
		{"MaxAttempts", func(r *core.EnqueueRequest) { r.MaxAttempts = math.MaxInt32 + 1 }},
		{"MaxStalls", maxStalls(-2)},
		{"MaxStalls", maxStalls(math.MaxInt32 + 1)},
		{"Timeout", func(r *core.EnqueueRequest) { r.Timeout = -1 }},
		{"Delay", delay(-1)},
		{"RunAt", func(r *core.EnqueueRequest) { r.Delay, r.RunAt = 1, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"RunAt", runAt(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))},
		{"RunAt", runAt(time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC))},
		{"Backoff", backoff(core.Backoff{Kind: "linear"})},
		{"Backoff", backoff(core.Fixed(-1))},
		{"Backoff", backoff(core.Exponential(0, 2, time.Hour))},
		{"Backoff", backoff(core.Exponential(time.Second, 0.5, time.Hour))},
		{"Backoff", backoff(core.Exponential(time.Second, math.NaN(), time.Hour))},
		{"Backoff", backoff(core.Exponential(time.Second, math.Inf(1), time.Hour))},
		{"Backoff", backoff(core.Exponential(time.Hour, 2, time.Second))},
		{"Keep.Completed", keep(core.Keep{Completed: core.KeepRule{Count: -1}})},
		{"Keep.Failed", keep(core.Keep{Failed: core.KeepRule{Age: -1}})},
		{"Keep.Cancelled", keep(core.Keep{Cancelled: core.KeepRule{None: true, Forever: true}})},
		{"Dedupe.Key", func(r *core.EnqueueRequest) { r.Dedupe = &core.Dedupe{} }},
		{"Dedupe.TTL", func(r *core.EnqueueRequest) { r.Dedupe = &core.Dedupe{Key: "k", TTL: -1} }},
		{"Trace.Parent", func(r *core.EnqueueRequest) { r.Trace = &core.Trace{Parent: "\x00"} }},
		{"Trace.State", func(r *core.EnqueueRequest) { r.Trace = &core.Trace{State: "\xff"} }},
	} {
		res := k.enqueue(request("bad", c.mod))[0]
		e := wantError[*core.InvalidError](k, "Enqueue with a bad "+c.field, res.Err)
		eq(k, "InvalidError.Field", e.Field, c.field)
		if res.Duplicate || res.ID != "" && res.ID != request("bad", c.mod).ResolvedID() {
			k.failf("a refused item answered %+v", res)
		}
		k.gone("bad")
	}
	k.total(0)
	k.none("everything was refused")
}

func invalidEnqueueBounds(k *kit) {
	r := core.EnqueueRequest{
		ID: strings.Repeat("i", core.MaxIDBytes), Name: strings.Repeat("n", core.MaxNameBytes),
		Queue: strings.Repeat("q", core.MaxNameBytes), Priority: core.MaxPriority, MaxAttempts: math.MaxInt32,
		MaxStalls: math.MaxInt32, Timeout: math.MaxInt64, Backoff: core.Fixed(0),
		Metadata: map[string]string{strings.Repeat("k", core.MaxKeyBytes): strings.Repeat("v", core.MaxMetadataBytes-core.MaxKeyBytes)},
		Keep:     core.Keep{Failed: core.KeepRule{Count: math.MaxInt32, Age: math.MaxInt64}},
		Trace:    &core.Trace{Parent: strings.Repeat("p", core.MaxKeyBytes), State: strings.Repeat("s", core.MaxIDBytes)},
	}
	low := r
	low.ID, low.Priority, low.MaxAttempts, low.MaxStalls, low.Metadata = "low", core.MinPriority, 1, -1, nil
	for _, res := range k.enqueue(r, low) {
		k.ok("Enqueue at the bounds", res.Err)
	}
	c := k.claim(core.Want{Queue: r.Queue, Names: []string{r.Name}, Limit: 10})
	eqs(k, "jobs", c.ids(), []string{r.ID, "low"})
	now := k.now()
	for i, req := range []core.EnqueueRequest{r, low} {
		k.sameRecord("Claim", c.Jobs[i], core.Record{
			ID: req.ID, Ref: c.Jobs[i].Ref, Name: req.Name, Queue: req.Queue, State: core.StateActive, Metadata: req.Metadata,
			Priority: req.Priority, MaxAttempts: req.MaxAttempts, MaxStalls: req.MaxStalls, Fence: 1, Backoff: req.Backoff,
			Keep: req.Keep, Timeout: req.Timeout, Trace: req.Trace, EnqueuedAt: now, RunAt: now, ClaimedAt: now,
		})
	}
	k.add("", keyed(strings.Repeat("k", core.MaxKeyBytes)))
}

func invalidClaim(k *kit) {
	k.add("a")
	good := func() core.ClaimRequest {
		return core.ClaimRequest{Wants: []core.Want{want(1)}, Token: core.NewToken(), Lease: theLease, Worker: "w"}
	}
	for _, c := range []struct {
		field string
		spoil func(*core.ClaimRequest)
	}{
		{"Token", func(r *core.ClaimRequest) { r.Token = "" }},
		{"Token", func(r *core.ClaimRequest) { r.Token = "short" }},
		{"Token", func(r *core.ClaimRequest) { r.Token = strings.ToUpper(strings.Repeat("a", 32)) }},
		{"Token", func(r *core.ClaimRequest) { r.Token = strings.Repeat("g", 32) }},
		{"Lease", func(r *core.ClaimRequest) { r.Lease = -1 }},
		{"Wants.Limit", func(r *core.ClaimRequest) { r.Wants = []core.Want{want(1), wantFrom("other", -1)} }},
		{"Worker", func(r *core.ClaimRequest) { r.Worker = "a\x00b" }},
		{"Worker", func(r *core.ClaimRequest) { r.Worker = strings.Repeat("w", core.MaxKeyBytes+1) }},
	} {
		req := good()
		c.spoil(&req)
		got, err := k.store.Claim(k.ctx, req)
		e := wantError[*core.InvalidError](k, "Claim with a bad "+c.field, err)
		eq(k, "InvalidError.Field", e.Field, c.field)
		eq(k, "jobs of a refused claim", len(got.Jobs), 0)
	}
	eq(k, "fence, as no refused claim counted", k.takeID("a").Fence, 1)
}

func invalidAck(k *kit) {
	k.addAll("a", "b")
	a, b := k.take(), k.take()
	for _, c := range []struct {
		field string
		ack   core.Ack
	}{
		{"Outcome", core.Ack{Outcome: ""}},
		{"Outcome", core.Ack{Outcome: core.OutcomeStalled}},
		{"Outcome", core.Ack{Outcome: "completed"}},
		{"Delay", core.Ack{Outcome: core.OutcomeRetry, Delay: -1}},
		{"Delay", core.Ack{Outcome: core.OutcomeSnooze, Delay: math.MinInt64}},
		{"Result", core.Ack{Outcome: core.OutcomeComplete, Result: make([]byte, core.DefaultPayload+1)}},
		{"Failure", core.Ack{Outcome: core.OutcomeFail, Failure: &core.Failure{Message: "a\x00b"}}},
		{"Failure", core.Ack{Outcome: core.OutcomeRetry, Failure: &core.Failure{Stack: "\xff"}}},
		{"Failure", core.Ack{Outcome: core.OutcomeFail, Failure: &core.Failure{Type: strings.Repeat("t", core.MaxFailureBytes+1)}}},
	} {
		bad := c.ack
		bad.Lease = a.lease
		res := k.acks(bad)[0]
		e := wantError[*core.InvalidError](k, "Ack with a bad "+c.field, res.Err)
		eq(k, "InvalidError.Field", e.Field, c.field)
		k.holds(a.lease)
		k.wantState("a", core.StateActive)
	}
	res := k.acks(
		core.Ack{Lease: a.lease, Outcome: "nonsense"},
		core.Ack{Lease: b.lease, Outcome: core.OutcomeComplete, Result: make([]byte, core.DefaultPayload)},
	)
	wantError[*core.InvalidError](k, "the bad ack of a batch", res[0].Err)
	k.ok("its neighbour", res[1].Err)
	eq(k, "its neighbour's state", res[1].State, core.StateCompleted)
	k.end(a, core.OutcomeComplete, core.StateCompleted)
}

func invalidExtend(k *kit) {
	k.add("a")
	h := k.take()
	_, err := k.store.Extend(k.ctx, []core.Lease{h.lease}, -1)
	wantError[*core.InvalidError](k, "Extend by a negative duration", err)
	k.holds(h.lease)
}

func invalidRecover(k *kit) {
	k.add("a")
	h := k.takeFor(0)
	for field, req := range map[string]core.RecoverRequest{"Limit": {Limit: -1}, "Confirm": {Confirm: -1}} {
		_, err := k.store.RecoverStalled(k.ctx, req)
		e := wantError[*core.InvalidError](k, "RecoverStalled with a bad "+field, err)
		eq(k, "InvalidError.Field", e.Field, field)
	}
	k.holds(h.lease)
}

func invalidAdmin(k *kit) {
	for _, q := range []string{"", "a\x00b", "\xff", strings.Repeat("q", core.MaxNameBytes+1)} {
		wantError[*core.InvalidError](k, "Pause", k.admin.Pause(k.ctx, q))
		wantError[*core.InvalidError](k, "Resume", k.admin.Resume(k.ctx, q))
	}
	paused, err := k.admin.Paused(k.ctx)
	k.ok("Paused", err)
	eq(k, "paused queues", len(paused), 0)
	k.add("a")
	for _, id := range []string{"", "a\x00", "\xff", "A", strings.Repeat("a", core.MaxIDBytes+1), "#1", "@", "' OR 1=1 --"} {
		_, err := k.admin.Cancel(k.ctx, id)
		k.is("Cancel of an id that is not there", err, core.ErrNotFound)
		k.is("Retry of an id that is not there", k.admin.Retry(k.ctx, id), core.ErrNotFound)
		k.is("Promote of an id that is not there", k.admin.Promote(k.ctx, id), core.ErrNotFound)
		removed, err := k.admin.Remove(k.ctx, id)
		k.ok("Remove of an id that is not there", err)
		eq(k, "Remove of an id that is not there", removed, false)
		k.gone(id)
	}
	k.takeID("a")
}

func invalidList(k *kit) {
	k.addAll("a", "b", "c")
	for _, q := range []core.Query{
		{OrderBy: "size"}, {Limit: -1}, {Limit: core.MaxListLimit + 1}, {States: []core.State{"done"}}, {States: []core.State{""}},
		{Cursor: "nonsense"}, {Cursor: "\x00"}, {Cursor: "\xff"}, {Cursor: " "}, {Cursor: "0"}, {Cursor: "v1:"}, {Cursor: "' OR 1=1 --"},
	} {
		_, err := k.insp.List(k.ctx, q)
		wantError[*core.InvalidError](k, "List of a bad query", err)
	}
	cursor := k.list(core.Query{Limit: 1}).Cursor
	if cursor == "" {
		k.failf("the first of three pages has no cursor")
	}
	for _, c := range []string{cursor + "!", "!" + cursor, cursor[:len(cursor)-1] + "\x00"} {
		_, err := k.insp.List(k.ctx, core.Query{Limit: 1, Cursor: c})
		wantError[*core.InvalidError](k, "List with a spoilt cursor", err)
	}
}
