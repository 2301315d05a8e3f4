package conformance

import (
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func batchCases() []testCase {
	return []testCase{
		{rule: "Q11", name: "empty", run: batchEmpty, timeless: true,
			demands: "an empty batch of anything does nothing and answers nothing"},
		{rule: "Q11", name: "order", run: batchOrder, timeless: true,
			demands: "results come in the order of the request, and jobs are placed in it"},
		{rule: "Q11", name: "repeats", run: batchRepeats, timeless: true,
			demands: "repeats inside one batch behave like separate enqueues: the first inserts, the rest are duplicates"},
		{rule: "Q11", name: "existing", run: batchExisting, timeless: true,
			demands: "an id that existed before the batch is a duplicate there, and its neighbours land"},
		{rule: "Q11", name: "bad-items", run: batchBadItems, timeless: true,
			demands: "a bad item carries its own error, and the others land"},
		{rule: "Q11", name: "same-as-single", run: batchSameAsSingle, needs: []Capability{CapInspector},
			demands: "a job enqueued in a batch is the job that a single enqueue makes, in every field"},
		{rule: "Q11", name: "large", run: batchLarge, limit: 60 * time.Second,
			demands: "10,000 items are one call, in order, each stored once"},
		{rule: "Q11", name: "large-payloads", run: batchLargePayloads, limit: 60 * time.Second,
			demands: "a batch of many megabytes is one call"},
	}
}

func batchEmpty(k *kit) {
	for _, reqs := range [][]core.EnqueueRequest{nil, {}} {
		eq(k, "results of an empty Enqueue", len(k.enqueue(reqs...)), 0)
	}
	eq(k, "results of an empty Ack", len(k.acks()), 0)
	x := k.extend(time.Minute)
	eq(k, "leases in the answer to an empty Extend", len(x.Lost)+len(x.Busy)+len(x.CancelRequested), 0)
	eq(k, "jobs taken from an empty store", len(k.sweep(core.RecoverRequest{})), 0)
	k.total(0)
}

func batchOrder(k *kit) {
	reqs := []core.EnqueueRequest{
		request("z"), request(""), request("a"), request("m", onQueue("other")), request("", keyed("k")), request("b", prio(5)),
		request("late", delay(time.Hour)),
	}
	res := k.enqueue(reqs...)
	for i, r := range res {
		if want := reqs[i].ResolvedID(); r.Err != nil || r.Duplicate || want != "" && r.ID != want {
			k.failf("result %d is %+v, want id %q", i, r, want)
		}
	}
	k.drain("jobs in the order of the batch", "b", "z", res[1].ID, "a", "job:k")
}

func batchRepeats(k *kit) {
	res := k.enqueue(
		request("a", payload([]byte("1"))), request("a", payload([]byte("2"))), request("b"),
		request("", keyed("k")), request("a", payload([]byte("3"))), request("", keyed("k")), request("job:k"),
	)
	want := []core.EnqueueResult{
		{ID: "a"}, {ID: "a", Duplicate: true}, {ID: "b"}, {ID: "job:k"}, {ID: "a", Duplicate: true}, {ID: "job:k", Duplicate: true},
		{ID: "job:k", Duplicate: true},
	}
	for i := range res {
		if res[i] != want[i] {
			k.failf("result %d is %+v, want %+v", i, res[i], want[i])
		}
	}
	c := k.drain("jobs", "a", "b", "job:k")
	k.sameBytes("payload of the first", c.Jobs[0].Payload, []byte("1"))
}

func batchExisting(k *kit) {
	k.add("b", payload([]byte("old")))
	res := k.enqueue(request("a"), request("b", payload([]byte("new"))), request("c"))
	for i, dup := range []bool{false, true, false} {
		if res[i].Err != nil || res[i].Duplicate != dup {
			k.failf("result %d is %+v, want Duplicate %v", i, res[i], dup)
		}
	}
	c := k.drain("jobs", "b", "a", "c")
	k.sameBytes("payload of the existing job", c.Jobs[0].Payload, []byte("old"))
}

func batchBadItems(k *kit) {
	k.add("held", named("holder"))
	res := k.enqueue(
		request("a"), request("bad", prio(99)), request("held"), request("b"),
		request("worse", func(r *core.EnqueueRequest) { r.MaxAttempts = 0 }), request("c"),
		request("c", named("rival")), // conflicts with its own neighbour
	)
	for _, i := range []int{0, 3, 5} {
		k.ok(fmt.Sprintf("item %d", i), res[i].Err)
	}
	eq(k, "field", wantError[*core.InvalidError](k, "item 1", res[1].Err).Field, "Priority")
	eq(k, "holder", wantError[*core.ConflictError](k, "item 2", res[2].Err).Name, "holder")
	eq(k, "field", wantError[*core.InvalidError](k, "item 4", res[4].Err).Field, "MaxAttempts")
	eq(k, "holder", wantError[*core.ConflictError](k, "item 6", res[6].Err).Name, theName)
	k.gone("bad")
	k.gone("worse")
	k.total(4)
	k.drain("jobs", "a", "b", "c")
}

func batchSameAsSingle(k *kit) {
	k.ok("single", k.enqueue(fullRequest("single"))[0].Err)
	for _, res := range k.enqueue(request("x"), fullRequest("batched"), request("y")) {
		k.ok("batch", res.Err)
	}
	single, batched := k.get("single"), k.get("batched")
	batched.ID, batched.Ref = single.ID, single.Ref
	k.sameRecord("a batched job", batched, single)
}

func batchLarge(k *kit) {
	const n = 10_000
	reqs := make([]core.EnqueueRequest, n)
	for i := range reqs {
		reqs[i] = request(fmt.Sprintf("job-%d", i), payload([]byte(fmt.Sprint(i))))
	}
	reqs[5000].Priority = 100
	for i, r := range k.enqueue(reqs...) {
		switch {
		case i == 5000:
			wantError[*core.InvalidError](k, "the bad item", r.Err)
		case r.Err != nil || r.Duplicate || r.ID != reqs[i].ID:
			k.failf("result %d is %+v, want id %q", i, r, reqs[i].ID)
		}
	}
	k.total(n - 1)
	next := 0
	for next < n {
		c := k.claim(want(2500))
		if len(c.Jobs) == 0 {
			k.failf("claims ended after %d of %d jobs", next, n)
		}
		for _, j := range c.Jobs {
			if next == 5000 {
				next++
			}
			if j.ID != reqs[next].ID || string(j.Payload) != string(reqs[next].Payload) {
				k.failf("job %d of the batch came back as %q %q", next, j.ID, j.Payload)
			}
			next++
		}
	}
	for i, r := range k.enqueue(reqs[:3000]...) {
		if r.Err != nil || !r.Duplicate {
			k.failf("the repeated batch answered %+v for item %d, want Duplicate", r, i)
		}
	}
}

func batchLargePayloads(k *kit) {
	reqs := make([]core.EnqueueRequest, 24)
	big := make([]byte, core.DefaultPayload)
	for i := range big {
		big[i] = byte(i * 7)
	}
	for i := range reqs {
		reqs[i] = request(fmt.Sprintf("big-%d", i), payload(big))
	}
	for i, r := range k.enqueue(reqs...) {
		if r.Err != nil || r.Duplicate || r.ID != reqs[i].ID {
			k.failf("result %d is %+v", i, r)
		}
	}
	c := k.claim(want(1))
	k.sameBytes("payload", c.Jobs[0].Payload, big)
}
