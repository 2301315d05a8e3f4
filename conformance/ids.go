package conformance

import (
	"strings"

	"github.com/stintmq/stint/core"
)

func idCases() []testCase {
	return []testCase{
		{rule: "Q10", name: "duplicate", run: idDuplicate, timeless: true,
			demands: "an id that exists answers Duplicate with that id, and nothing of the job changes"},
		{rule: "Q10", name: "duplicate-in-any-state", run: idDuplicateAnyState, timeless: true,
			demands: "an id that exists in any state, finished ones included, answers Duplicate"},
		{rule: "Q10", name: "derived", run: idDerived, timeless: true,
			demands: "a key makes the id name:key; an explicit id wins over a key"},
		{rule: "Q10", name: "conflict", run: idConflict, timeless: true,
			demands: "an id held by a job of another name is a ConflictError that names the holder, and nothing changes"},
		{rule: "Q10", name: "store-assigned", run: idAssigned, timeless: true,
			demands: "ids that the store assigns begin with # and never repeat"},
		{rule: "Q10", name: "odd-texts", run: idOddTexts, timeless: true,
			demands: "ids are bytes: colons, slashes, quotes, case and non-ASCII all tell jobs apart, up to 512 bytes"},
		{rule: "Q10", name: "odd-names", run: idOddNames, timeless: true,
			demands: "names and queues are bytes, up to 128 of them, and match exactly"},
	}
}

func idDuplicate(k *kit) {
	k.add("a", payload([]byte("first")), prio(1))
	second := request("a", payload([]byte("second")), prio(9), onQueue("other"), delay(1))
	res := k.enqueue(second)[0]
	k.ok("second Enqueue", res.Err)
	if !res.Duplicate || res.ID != "a" {
		k.failf("second Enqueue of an id answered %+v, want Duplicate", res)
	}
	k.total(1)
	if jobs := k.claim(wantFrom("other", 1)).Jobs; len(jobs) != 0 {
		k.failf("a duplicate moved the job to its own queue")
	}
	h := k.takeID("a")
	k.sameBytes("payload", h.Payload, []byte("first"))
	eq(k, "priority", h.Priority, 1)
	k.none("there is one job with that id")
}

func idDuplicateAnyState(k *kit) {
	again := func(id, state string) {
		res := k.enqueue(request(id, payload([]byte("again"))))[0]
		if res.Err != nil || !res.Duplicate || res.ID != id {
			k.failf("Enqueue of the id of a %s job answered %+v, want Duplicate", state, res)
		}
	}
	for _, outcome := range []core.Outcome{core.OutcomeComplete, core.OutcomeFail, core.OutcomeCancel} {
		id := string(outcome)
		k.add(id)
		again(id, "waiting")
		h := k.takeID(id)
		again(id, "active")
		k.ack(core.Ack{Lease: h.lease, Outcome: outcome})
		again(id, "finished")
	}
	k.add("later", delay(theLease))
	again("later", "delayed")
	k.none("duplicates of finished jobs are not run")
	k.total(4)
}

func idDerived(k *kit) {
	eq(k, "id made from a key", k.add("", keyed("k1")), theName+":k1")
	eq(k, "id made from a key with colons", k.add("", keyed("a:b/c")), theName+":a:b/c")
	eq(k, "id of the same key under another name", k.add("", keyed("k1"), named("other")), "other:k1")
	eq(k, "explicit id beside a key", k.add("", func(r *core.EnqueueRequest) { r.ID, r.Key = "own", "k1" }), "own")
	for _, r := range []core.EnqueueRequest{request("", keyed("k1")), request(theName + ":k1")} {
		res := k.enqueue(r)[0]
		if res.Err != nil || !res.Duplicate || res.ID != theName+":k1" {
			k.failf("Enqueue of a key that exists answered %+v, want Duplicate", res)
		}
	}
	k.drain("jobs", "job:k1", "job:a:b/c", "own")
}

func idConflict(k *kit) {
	k.add("a", named("holder"))
	res := k.enqueue(request("a", payload([]byte("other"))), request("b"))
	e := wantError[*core.ConflictError](k, "Enqueue of an id that another name holds", res[0].Err)
	eq(k, "ConflictError.ID", e.ID, "a")
	eq(k, "ConflictError.Name, the holder's", e.Name, "holder")
	eq(k, "ConflictError.Key", e.Key, "")
	if res[0].Duplicate {
		k.failf("a conflict is not a duplicate: %+v", res[0])
	}
	k.ok("its neighbour", res[1].Err)
	k.drain("jobs of the other name", "b")
	got := k.claim(core.Want{Queue: theQueue, Names: []string{"holder"}, Limit: 5})
	eqs(k, "the holder", got.ids(), []string{"a"})
	k.sameBytes("the holder's payload", got.Jobs[0].Payload, []byte(`{"n":1}`))
}

func idAssigned(k *kit) {
	seen := map[string]bool{}
	for range 3 {
		reqs := make([]core.EnqueueRequest, 40)
		for i := range reqs {
			reqs[i] = request("")
		}
		for _, res := range k.enqueue(reqs...) {
			switch {
			case res.Err != nil || res.Duplicate:
				k.failf("Enqueue without an id answered %+v", res)
			case !strings.HasPrefix(res.ID, "#") || len(res.ID) < 2:
				k.failf("the store assigned the id %q, which does not begin with #", res.ID)
			case seen[res.ID]:
				k.failf("the store assigned the id %q twice", res.ID)
			}
			seen[res.ID] = true
		}
	}
	for _, id := range k.claim(want(1000)).ids() {
		if !seen[id] {
			k.failf("claimed the unknown id %q", id)
		}
		delete(seen, id)
	}
	eq(k, "jobs that were not claimed", len(seen), 0)
}

func idOddTexts(k *kit) {
	ids := []string{
		"a", "A", " a", "a ", "a:b", "a/b", "a\\b", "a'b", `a"b`, "a%b", "a_b", "a#b", "a@b", "a$1", "a?b", "null", "0", "007", "7",
		"\u00e9", "e\u0301", "日本語", "🦊", "'; DROP TABLE jobs; --", "{a,b}", strings.Repeat("x", core.MaxIDBytes),
		strings.Repeat("ä", core.MaxIDBytes/2),
	}
	k.addAll(ids...)
	c := k.drain("jobs", ids...)
	for i, l := range c.leases() {
		k.wantState(ids[i], core.StateActive)
		eq(k, "state", k.ack(core.Ack{Lease: l, Outcome: core.OutcomeComplete, Result: []byte(l.ID)}), core.StateCompleted)
		k.wantState(ids[i], core.StateCompleted)
		k.look(ids[i], func(r core.Record) { k.sameBytes("result", r.Result, []byte(ids[i])) })
		k.wantLedger(ids[i], core.OutcomeComplete)
	}
}

func idOddNames(k *kit) {
	long := strings.Repeat("n", core.MaxNameBytes)
	texts := []string{"a", "A", "a ", "a/b", "a'b", "a%", "日本", long, "e\u0301", "\u00e9"}
	for _, s := range texts {
		k.add("name "+s, named(s))
		k.add("queue "+s, onQueue(s))
	}
	for _, s := range texts {
		got := k.claim(core.Want{Queue: theQueue, Names: []string{s}, Limit: 100})
		eqs(k, "jobs named "+s, got.ids(), []string{"name " + s})
		got = k.claim(wantFrom(s, 100))
		eqs(k, "jobs on queue "+s, got.ids(), []string{"queue " + s})
	}
	got := k.claim(wantFrom("with:colon", 1), core.Want{Queue: "a", Names: []string{"A"}, Limit: 1})
	eq(k, "jobs that nobody enqueued", len(got.Jobs), 0)
	k.add("colon", onQueue("with:colon"))
	eqs(k, "a queue may have a colon", k.claim(wantFrom("with:colon", 1)).ids(), []string{"colon"})
}
