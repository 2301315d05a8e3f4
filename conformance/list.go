package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

func listCases() []testCase {
	needs := []Capability{CapInspector}
	return []testCase{
		{rule: "Q27", name: "filters", run: listFilters, needs: needs,
			demands: "List filters by queue, name, states and metadata, all together; newest first by default"},
		{rule: "Q27", name: "states", run: listStates, needs: needs,
			demands: "nil states are all; an empty list of states matches nothing"},
		{rule: "Q27", name: "pages", run: listPages, needs: needs,
			demands: "pages follow each other without a gap or a repeat, both ways, ties included; the last has no cursor"},
		{rule: "Q27", name: "pages-under-change", run: listUnderChange, needs: needs,
			demands: "a cursor stays good when jobs come, go and change between pages"},
		{rule: "Q27", name: "by-run-time", run: listByRun, needs: needs,
			demands: "delayed jobs of a queue are listed by RunAt; due ones are not delayed any more"},
		{rule: "Q27", name: "by-finish-time", run: listByFinish, needs: needs,
			demands: "finished jobs are listed by FinishedAt, with or without queue and name; others are left out"},
		{rule: "Q27", name: "limits", run: listLimits, needs: needs,
			demands: "a page has 50 jobs by default and at most 1,000"},
		{rule: "Q27", name: "get", run: listGet, needs: needs, timeless: true,
			demands: "Get of an unknown id is ErrNotFound"},
	}
}

func listFilters(k *kit) {
	for i := range 5 {
		k.add(fmt.Sprintf("t%d", i), tagged("parity", []string{"even", "odd"}[i%2]))
		k.advance(time.Millisecond)
	}
	k.add("o", named("other"))
	k.advance(time.Millisecond)
	k.ok("Enqueue", k.enqueue(request("q", onQueue("elsewhere"), func(r *core.EnqueueRequest) {
		r.Metadata = map[string]string{"parity": "even", "size": "x"}
	}))[0].Err)
	k.takeID("t0")
	for _, c := range []struct {
		q    core.Query
		want []string
	}{
		{core.Query{}, []string{"q", "o", "t4", "t3", "t2", "t1", "t0"}},
		{core.Query{Ascending: true}, []string{"t0", "t1", "t2", "t3", "t4", "o", "q"}},
		{core.Query{OrderBy: core.OrderEnqueued, Name: theName}, []string{"q", "t4", "t3", "t2", "t1", "t0"}},
		{core.Query{Queue: theQueue}, []string{"o", "t4", "t3", "t2", "t1", "t0"}},
		{core.Query{Queue: theQueue, Name: theName}, []string{"t4", "t3", "t2", "t1", "t0"}},
		{core.Query{Queue: "nowhere"}, nil},
		{core.Query{Name: "nobody"}, nil},
		{core.Query{Metadata: map[string]string{}}, []string{"q", "o", "t4", "t3", "t2", "t1", "t0"}},
		{core.Query{Metadata: map[string]string{"parity": "even"}}, []string{"q", "t4", "t2", "t0"}},
		{core.Query{Metadata: map[string]string{"parity": "even", "size": "x"}}, []string{"q"}},
		{core.Query{Metadata: map[string]string{"parity": "EVEN"}}, nil},
		{core.Query{Metadata: map[string]string{"parity": ""}}, nil},
		{core.Query{Metadata: map[string]string{"par%": "even"}}, nil},
		{core.Query{States: []core.State{core.StateActive}}, []string{"t0"}},
		{core.Query{States: []core.State{core.StateWaiting, core.StateActive}, Queue: theQueue, Name: theName,
			Metadata: map[string]string{"parity": "even"}, Ascending: true}, []string{"t0", "t2", "t4"}},
	} {
		page := k.list(c.q)
		eqs(k, fmt.Sprintf("List of %+v", c.q), recordIDs(page.Jobs), c.want)
		eq(k, "cursor of the last page", page.Cursor, "")
	}
}

func listStates(k *kit) {
	k.addAll("done", "failed", "cancelled", "active", "waiting")
	k.add("delayed", delay(time.Hour))
	k.end(k.takeID("done"), core.OutcomeComplete, core.StateCompleted)
	k.end(k.takeID("failed"), core.OutcomeFail, core.StateFailed)
	k.end(k.takeID("cancelled"), core.OutcomeCancel, core.StateCancelled)
	k.takeID("active")
	all := []string{"done", "failed", "cancelled", "active", "waiting", "delayed"}
	for _, c := range []struct {
		states []core.State
		want   []string
	}{
		{nil, all},
		{[]core.State{}, nil},
		{core.States(), all},
		{[]core.State{core.StateParked}, nil},
		{[]core.State{core.StateWaiting}, []string{"waiting"}},
		{[]core.State{core.StateDelayed, core.StateDelayed}, []string{"delayed"}},
		{[]core.State{core.StateFailed, core.StateCompleted}, []string{"done", "failed"}},
		{[]core.State{core.StateCancelled, core.StateActive}, []string{"cancelled", "active"}},
	} {
		page := k.list(core.Query{States: c.states, Ascending: true})
		eqs(k, fmt.Sprintf("List of states %v", c.states), recordIDs(page.Jobs), c.want)
		eq(k, "cursor", page.Cursor, "")
	}
}

// pages reads a query to its end and checks the size of each page.
func (k *kit) pages(q core.Query) []string {
	k.Helper()
	var ids []string
	for range 100 {
		page := k.list(q)
		ids = append(ids, recordIDs(page.Jobs)...)
		if page.Cursor == "" {
			return ids
		}
		eq(k, "jobs on a page that is not the last", len(page.Jobs), q.PageSize())
		q.Cursor = page.Cursor
	}
	k.failf("List has no end: %d jobs on 100 pages", len(ids))
	return nil
}

func listPages(k *kit) {
	want := []string{"z", "a", "m:1", "b", "é", "10", "9", "y", "c"}
	for i, id := range want {
		k.add(id, delay(time.Minute))
		if i == 3 || i == 6 { // the others share their instant
			k.advance(time.Microsecond)
		}
	}
	for _, q := range []core.Query{
		{}, {Queue: theQueue, Name: theName}, {Queue: theQueue, States: []core.State{core.StateDelayed}, OrderBy: core.OrderRun},
	} {
		for _, limit := range []int{1, 2, 3, 4, 8, 9, 10} {
			q.Limit, q.Ascending = limit, true
			up := k.pages(q)
			eqs(k, fmt.Sprintf("pages of %d by %q, ascending", limit, q.OrderBy), up, want)
			q.Ascending = false
			down := k.pages(q)
			slices.Reverse(down)
			eqs(k, fmt.Sprintf("pages of %d by %q, descending, read backwards", limit, q.OrderBy), down, want)
		}
	}
}

func listUnderChange(k *kit) {
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		k.add(id)
		k.advance(time.Millisecond)
	}
	q := core.Query{Limit: 2, Ascending: true}
	first := k.list(q)
	eqs(k, "first page", recordIDs(first.Jobs), []string{"a", "b"})
	k.end(k.takeID("a"), core.OutcomeComplete, core.StateCompleted)
	k.end(k.takeID("b"), core.OutcomeRetry, core.StateWaiting)
	if k.admin != nil {
		if _, err := k.admin.Remove(k.ctx, "b"); err != nil {
			k.failf("Remove: %v", err)
		}
	}
	k.add("f")
	q.Cursor = first.Cursor
	eqs(k, "the rest, though the cursor's own job is gone", k.pages(q), []string{"c", "d", "e", "f"})
}

func listByRun(k *kit) {
	for _, s := range []int{30, 5, 10, 1} {
		k.add(fmt.Sprint(s), delay(time.Duration(s)*time.Second))
	}
	k.add("now")
	k.add("elsewhere", onQueue("elsewhere"), delay(time.Second))
	q := core.Query{Queue: theQueue, States: []core.State{core.StateDelayed}, OrderBy: core.OrderRun, Ascending: true, Limit: 2}
	eqs(k, "delayed jobs", k.pages(q), []string{"1", "5", "10", "30"})
	k.advance(time.Second)
	eqs(k, "delayed jobs after one came due", k.pages(q), []string{"5", "10", "30"})
	q.Ascending = false
	eqs(k, "delayed jobs, latest first", k.pages(q), []string{"30", "10", "5"})
}

func listByFinish(k *kit) {
	k.add("a")
	k.add("b", named("other"))
	k.add("c")
	k.add("d", onQueue("elsewhere"))
	k.add("pending")
	both := core.Want{Queue: theQueue, Names: []string{theName, "other"}, Limit: 3}
	c := k.claim(both, wantFrom("elsewhere", 1))
	for i, outcome := range []core.Outcome{3: core.OutcomeComplete, 2: core.OutcomeFail, 1: core.OutcomeComplete, 0: core.OutcomeComplete} {
		k.advance(time.Millisecond)
		j := 3 - i // in the reverse of their insertion
		k.ack(core.Ack{Lease: c.leases()[j], Outcome: outcome})
	}
	by := core.Query{OrderBy: core.OrderFinished, States: []core.State{core.StateCompleted, core.StateFailed}}
	eqs(k, "finished jobs, newest first", recordIDs(k.list(by).Jobs), []string{"a", "b", "c", "d"})
	by.Limit = 1
	eqs(k, "finished jobs in pages", k.pages(by), []string{"a", "b", "c", "d"})
	by.Ascending = true
	eqs(k, "finished jobs, oldest first", k.pages(by), []string{"d", "c", "b", "a"})
	by.Name = theName
	eqs(k, "finished jobs of a name", k.pages(by), []string{"d", "c", "a"})
	by.Queue = theQueue
	eqs(k, "finished jobs of a queue and a name", k.pages(by), []string{"c", "a"})
	by.Name, by.States = "", []core.State{core.StateCompleted}
	completed := k.pages(by)
	for _, id := range completed {
		eq(k, "state", k.get(id).State, core.StateCompleted)
	}
	by.States = []core.State{core.StateFailed}
	eq(k, "failed and completed jobs of the queue", len(completed)+len(k.pages(by)), 3)
	by.States = []core.State{core.StateCancelled}
	eqs(k, "cancelled jobs", k.pages(by), nil)
}

func listLimits(k *kit) {
	reqs := make([]core.EnqueueRequest, 1005)
	for i := range reqs {
		reqs[i] = request("")
	}
	k.enqueue(reqs...)
	for limit, want := range map[int]int{0: core.DefaultListLimit, 1: 1, 50: 50, 1000: 1000} {
		page := k.list(core.Query{Limit: limit})
		eq(k, fmt.Sprintf("jobs on a page with limit %d", limit), len(page.Jobs), want)
		eq(k, "there is a cursor", page.Cursor != "", true)
	}
	eq(k, "jobs on all pages", len(k.pages(core.Query{Limit: 1000})), len(reqs))
}

func listGet(k *kit) {
	k.add("a")
	for _, id := range []string{"", "b", "A", "a ", "a\x00", "\xff"} {
		_, err := k.insp.Get(k.ctx, id)
		k.is(fmt.Sprintf("Get of %q", id), err, core.ErrNotFound)
	}
}
