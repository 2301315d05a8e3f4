package conformance

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/stintmq/stint/core"
)

// What an Inspector shows, wherever there is one: on a store without, these look at nothing, and the case
// rests on what Claim, Extend and Ack answer.

// wantState checks a job's state.
func (k *kit) wantState(id string, want core.State) {
	k.Helper()
	k.look(id, func(r core.Record) { eq(k, "state of "+id, r.State, want) })
}

// look hands a job's record to check.
func (k *kit) look(id string, check func(core.Record)) {
	k.Helper()
	if k.insp != nil {
		check(k.get(id))
	}
}

// get reads a job; only for cases that need the inspector.
func (k *kit) get(id string) core.Record {
	k.Helper()
	r, err := k.insp.Get(k.ctx, id)
	k.ok("Get of "+id, err)
	eq(k, "id that Get answered", r.ID, id)
	return r
}

// gone checks that there is no job with that id.
func (k *kit) gone(id string) {
	k.Helper()
	if k.insp == nil {
		return
	}
	_, err := k.insp.Get(k.ctx, id)
	k.is("Get of "+id, err, core.ErrNotFound)
	as, err := k.insp.Attempts(k.ctx, id)
	k.ok("Attempts of "+id, err)
	eq(k, "ledger entries of "+id, len(as), 0)
}

// attempts reads a job's ledger; only for cases that need the inspector.
func (k *kit) attempts(id string) []core.Attempt {
	k.Helper()
	as, err := k.insp.Attempts(k.ctx, id)
	k.ok("Attempts of "+id, err)
	return as
}

// wantLedger checks the outcomes of a job's ledger and that it counts 1, 2, 3 (Q9).
func (k *kit) wantLedger(id string, outcomes ...core.Outcome) {
	k.Helper()
	if k.insp == nil {
		return
	}
	as := k.attempts(id)
	got := make([]core.Outcome, len(as))
	for i, a := range as {
		got[i] = a.Outcome
		eq(k, "number of a ledger entry of "+id, a.Number, i+1)
		k.wantTime("FinishedAt of a ledger entry", a.FinishedAt, a.FinishedAt)
		k.wantTime("StartedAt of a ledger entry", a.StartedAt, a.StartedAt)
	}
	eqs(k, "outcomes in the ledger of "+id, got, outcomes)
	eq(k, "Runs of "+id, k.get(id).Runs, len(outcomes))
}

// wantCounts checks the number of jobs in each state; states that are not named have none.
func (k *kit) wantCounts(queue string, want map[core.State]int64) {
	k.Helper()
	if k.insp == nil {
		return
	}
	got, err := k.insp.Counts(k.ctx, queue)
	k.ok("Counts", err)
	for _, s := range core.States() {
		n, ok := got[s]
		if !ok {
			k.failf("Counts of %q left out state %q: %v", queue, s, got)
		}
		if n != want[s] {
			k.failf("Counts of %q: %d jobs are %s, want %d", queue, n, s, want[s])
		}
	}
	eq(k, "number of states in Counts", len(got), len(core.States()))
}

// total checks how many jobs there are.
func (k *kit) total(want int64) {
	k.Helper()
	if k.insp == nil {
		return
	}
	counts, err := k.insp.Counts(k.ctx, "")
	k.ok("Counts", err)
	sum := int64(0)
	for n := range maps.Values(counts) {
		sum += n
	}
	eq(k, "jobs in the store", sum, want)
}

// list reads one page.
func (k *kit) list(q core.Query) core.Page {
	k.Helper()
	p, err := k.insp.List(k.ctx, q)
	k.ok("List", err)
	return p
}

func recordIDs(rs []core.Record) []string {
	ids := make([]string, len(rs))
	for i, r := range rs {
		ids[i] = r.ID
	}
	return ids
}

// sameRecord compares two records field by field.
func (k *kit) sameRecord(what string, got, want core.Record) {
	k.Helper()
	if diff := diffRecord(got, want); diff != "" {
		k.failf("%s: %s", what, diff)
	}
}

// diffRecord names the first field that differs. An empty payload or map may come back as nil; a result may not.
func diffRecord(got, want core.Record) string {
	for _, r := range []*core.Record{&got, &want} {
		if len(r.Payload) == 0 {
			r.Payload = nil
		}
		if len(r.Metadata) == 0 {
			r.Metadata = nil
		}
	}
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if a, b := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			if f := g.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() && !w.Field(i).IsNil() {
				a, b = f.Elem().Interface(), w.Field(i).Elem().Interface()
			}
			return fmt.Sprintf("field %s: got %#v, want %#v", g.Type().Field(i).Name, a, b)
		}
	}
	return ""
}

// sameBytes compares byte slices, nil and empty alike.
func (k *kit) sameBytes(what string, got, want []byte) {
	k.Helper()
	if !bytes.Equal(got, want) {
		k.failf("%s: got %d bytes %.40q, want %d bytes %.40q", what, len(got), got, len(want), want)
	}
}

// sameResult compares results, for which nil, empty and "null" are three things (Q9).
func (k *kit) sameResult(what string, got, want []byte) {
	k.Helper()
	if (got == nil) != (want == nil) || !slices.Equal(got, want) {
		k.failf("%s: got %#v, want %#v", what, got, want)
	}
}
