package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

func recordCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J1", name: "one-commit", run: recordCommit[Tx],
			demands: "Record writes in the caller's transaction: events, effect jobs and whatever else is there by its commit"},
		{rule: "J1", name: "rollback-leaves-nothing", run: recordRollback[Tx],
			demands: "a rolled back transaction leaves no event, no job, no note and no cursor"},
		{rule: "J1", name: "conflict-writes-nothing", run: recordConflict[Tx],
			demands: "a Record that meets a conflict writes nothing, no effect job either, and the transaction goes on"},
		{rule: "J1", name: "numbers-and-key-order", run: recordExact[Tx],
			demands: "payloads are kept byte for byte: numbers of 20 digits, and keys in their order"},
		{rule: "J1", name: "job-exists", run: recordExists[Tx],
			demands: "a Record whose effect has a job for the event's seq already is an ErrJobExists; Backfill counts that as done"},
		{rule: "J3", name: "correlation", run: recordCorrelation[Tx],
			demands: "a Record has one correlation id: the journal's, or a new one; Caused gives that of the cause, and its seq"},
	}
}

// effect declares one that only counts.
func (k *jkit[Tx]) effect(j *journal.Journal[Tx], name string, r journal.Ref[amount], opts ...journal.EffectOptions) *heard[int64] {
	k.Helper()
	h := &heard[int64]{}
	k.ok("On "+name, journal.On(j, name, r, func(_ context.Context, e journal.Event[amount], _ journal.Call[Tx]) error {
		h.add(e.Seq)
		return nil
	}, opts...))
	return h
}

// wantJobs compares the number of jobs that there are.
func (k *jkit[Tx]) wantJobs(what string, want int64) {
	k.Helper()
	if k.insp == nil {
		return
	}
	counts, err := k.insp.Counts(k.ctx, "")
	k.ok("Counts", err)
	n := int64(0)
	for _, c := range counts {
		n += c
	}
	eq(k.kit, what+": jobs", n, want)
}

func recordCommit[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.effect(j, "e1", k.inRef)
	k.effect(j, "e2", k.inRef)
	k.effect(j, "e3", k.out)
	t := k.begin()
	k.ok("mark", k.mark(k.ctx, t.tx, "before"))
	rec, err := j.Record(k.ctx, t.tx, key("a"), journal.NoEntity, k.inRef.New(amount{1}), k.out.New(amount{2}), k.inRef.New(amount{3}))
	k.ok("Record", err)
	k.ok("mark", k.mark(k.ctx, t.tx, "after"))
	eq(k.kit, "version", rec.Version, 3)
	eq(k.kit, "seqs", len(rec.Seqs), 3)
	k.wantTime("At", rec.At, k.now())
	t.commit()
	j.Announce(k.ctx)
	eqs(k.kit, "events", seqs(k.all()), rec.Seqs)
	k.wantJobs("one per effect and event", 5)
	k.wantUser("beside the events", "", map[string]string{"before": "1", "after": "1"})
	if k.insp != nil {
		for _, id := range []string{
			journal.JobID("e1", rec.Seqs[0]), journal.JobID("e2", rec.Seqs[2]), journal.JobID("e3", rec.Seqs[1]),
		} {
			k.get(id)
		}
	}
}

func recordRollback[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.effect(j, "e", k.inRef)
	inline := journal.NewProjection[Tx]("inline", journal.ProjectionOptions{Inline: true})
	journal.Apply(inline, k.inRef, func(ctx context.Context, tx Tx, e journal.Event[amount]) error {
		return k.mark(ctx, tx, fmt.Sprint("inline ", e.Seq))
	})
	k.ok("Project", j.Project(inline))
	t := k.begin()
	_, err := j.Record(k.ctx, t.tx, key("a"), journal.NoEntity, k.deposits(2)...)
	k.ok("Record", err)
	t.rollback()
	eq(k.kit, "events", len(k.all()), 0)
	k.wantJobs("after a rollback", 0)
	k.wantUser("after a rollback", "", map[string]string{})
	all, err := k.store.Cursors(k.ctx)
	k.ok("Cursors", err)
	eq(k.kit, "cursors", len(all), 0)
	head, err := k.store.Head(k.ctx)
	k.ok("Head", err)
	eq(k.kit, "head", head.Seq, 0)
	k.record(j, "a", k.deposits(1)...)
	eqs(k.kit, "versions", versions(k.history("a")), []int64{1})
	k.wantJobs("after a commit", 1)
	eq(k.kit, "inline is claimed", k.cursor("inline@1").Inline, true)
}

func recordConflict[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.effect(j, "e", k.inRef)
	k.record(j, "a", k.deposits(1)...)
	k.ok("a transaction that meets a conflict", j.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
		if err := k.mark(ctx, tx, "before"); err != nil {
			return err
		}
		rec, err := j.Record(ctx, tx, key("a"), journal.NoEntity, k.deposits(2)...)
		k.is("Record", err, journal.ErrConflict)
		c := wantError[*journal.ConflictError](k.kit, "Record", err)
		eq(k.kit, "the conflict", *c, journal.ConflictError{Key: key("a"), Want: journal.NoEntity, Have: 1})
		eq(k.kit, "seqs of a conflict", len(rec.Seqs), 0)
		_, err = j.Record(ctx, tx, key("b"), journal.NoEntity, k.deposits(1)...)
		return err
	}))
	eq(k.kit, "events", len(k.all()), 2)
	k.wantJobs("after a conflict", 2)
	k.wantUser("after a conflict", "", map[string]string{"before": "1"})
}

func recordExact[Tx any](k *jkit[Tx]) {
	const text = `{"z":12345678901234567890,"a":[1.10,{"k":0.30000000000000000001}],"m":{"b":null,"a":true}}`
	e := journal.NewEntity[balance]("exact")
	r := journal.Type[json.RawMessage](e, "raw", nil)
	j := k.journal()
	meta := map[string]string{"who": "é", "": ""}
	delete(meta, "")
	var rec journal.Recorded
	k.ok("Record", j.InTx(k.ctx, func(ctx context.Context, tx Tx) (err error) {
		rec, err = j.Record(ctx, tx, e.Key("1"), journal.NoEntity, r.New(json.RawMessage(text)).WithMeta(meta), r.New(json.RawMessage("[]")))
		return err
	}))
	meta["who"] = "changed"
	rows := k.all()
	want := journal.Row{Payload: []byte(text), Header: journal.Header{
		Seq: rec.Seqs[0], Version: 1, Key: e.Key("1"), Type: "raw", Schema: 1, Correlation: rows[0].Correlation, At: rec.At,
		Meta: map[string]string{"who": "é"},
	}}
	k.sameRow("with metadata", rows[0], want)
	eq(k.kit, "metadata of the second", len(rows[1].Meta), 0)
}

func recordExists[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.effect(j, "e", k.inRef)
	seq := k.record(j, "a", k.deposits(1)...).Last()
	var reqs []core.EnqueueRequest
	for n := seq + 1; n <= seq+5; n++ { // whatever is drawn next
		reqs = append(reqs, request(journal.JobID("e", n), func(r *core.EnqueueRequest) {
			r.Name, r.Queue = journal.EffectPrefix+"e", journal.EffectQueue
		}))
	}
	k.enqueue(reqs...)
	t := k.begin()
	_, err := j.Record(k.ctx, t.tx, key("a"), journal.AnyVersion, k.deposits(1)...)
	k.is("Record with a seq that has a job", err, journal.ErrJobExists)
	t.rollback()
	eqs(k.kit, "versions", versions(k.history("a")), []int64{1})
	k.backfill(j, 0, 0, 0)
}

func recordCorrelation[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.record(j, "a", k.deposits(2)...)
	k.record(j, "a", k.deposits(1)...)
	k.record(j.Correlated("mine"), "a", k.deposits(2)...)
	rows := k.all()
	k.record(j.Caused(rows[1].Header), "b", k.deposits(1)...)
	k.record(j.Caused(rows[1].Header).Correlated("other"), "b", k.deposits(1)...)
	k.record(j, "b", k.deposits(1)...)
	rows = k.all()
	if rows[0].Correlation == "" || rows[0].Correlation != rows[1].Correlation || rows[2].Correlation == rows[0].Correlation {
		k.failf("correlations of three events, the first two of one Record: %q, %q, %q", rows[0].Correlation, rows[1].Correlation, rows[2].Correlation)
	}
	eq(k.kit, "correlation of Correlated", rows[3].Correlation, "mine")
	eq(k.kit, "correlation of what is caused", rows[5].Correlation, rows[1].Correlation)
	eq(k.kit, "causation of what is caused", rows[5].Causation, rows[1].Seq)
	eq(k.kit, "correlation set", rows[6].Correlation, "other")
	eq(k.kit, "causation kept", rows[6].Causation, rows[1].Seq)
	for _, i := range []int{0, 3, 7} {
		eq(k.kit, "causation of what nothing caused", rows[i].Causation, 0)
	}
}

func refusedCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J1", name: "invalid", run: refusedInvalid[Tx],
			demands: "what is invalid, or of a type that the kind does not declare, is an InvalidError, and nothing is sent"},
		{rule: "J1", name: "declarations", run: refusedDeclarations[Tx],
			demands: "an invalid declaration, or a second of one name, is an InvalidError"},
	}
}

// refusing fails the case if anything is written through it.
type refusing[Tx any] struct {
	journal.Store[Tx]
	sent *heard[string]
}

func (r refusing[Tx]) Append(ctx context.Context, tx Tx, key journal.EntityKey, want journal.Expect, rows []journal.Row) (journal.Recorded, error) {
	r.sent.add(key.String())
	return r.Store.Append(ctx, tx, key, want, rows)
}

// badCodec encodes as it is told.
type badCodec struct {
	data []byte
	err  error
}

func (c badCodec) Encode(journal.EntityKey, any) ([]byte, error) { return c.data, c.err }
func (c badCodec) Decode(journal.EntityKey, []byte, any) error   { return c.err }

func refusedInvalid[Tx any](k *jkit[Tx]) {
	sent := &heard[string]{}
	j, err := journal.New[Tx](refusing[Tx]{k.store, sent}, journal.Options{Limits: core.Limits{Payload: 100}})
	k.ok("New", err)
	k.effect(j, "e", k.inRef)
	e := k.entity
	one := k.inRef.New(amount{1})
	bad := journal.Type[any](e, "bad", nil)
	text := journal.Type[any](e, "text", nil, journal.WithCodec(badCodec{[]byte("{"), nil}))
	none := journal.Type[any](e, "none", nil, journal.WithCodec(badCodec{}))
	failing := journal.Type[any](e, "failing", nil, journal.WithCodec(badCodec{nil, errors.New("no key")}))
	long := strings.Repeat("x", core.MaxKeyBytes+1)
	many := k.deposits(journal.MaxEvents + 1)
	for what, c := range map[string]struct {
		j      *journal.Journal[Tx]
		key    journal.EntityKey
		want   journal.Expect
		drafts []journal.Draft
	}{
		"no events":             {j, key("a"), 0, nil},
		"too many events":       {j, key("a"), 0, many},
		"a negative version":    {j, key("a"), -2, []journal.Draft{one}},
		"no kind":               {j, journal.EntityKey{ID: "a"}, 0, []journal.Draft{one}},
		"kind with a colon":     {j, journal.EntityKey{Kind: "a:b", ID: "a"}, 0, []journal.Draft{one}},
		"no id":                 {j, key(""), 0, []journal.Draft{one}},
		"a long id":             {j, key(long), 0, []journal.Draft{one}},
		"an id with NUL":        {j, key("a\x00"), 0, []journal.Draft{one}},
		"an id that is no text": {j, key("a\xff"), 0, []journal.Draft{one}},
		"no draft":              {j, key("a"), 0, []journal.Draft{one, {}}},
		"another kind's type":   {j, key("a"), 0, []journal.Draft{one, k.inOther.New(amount{1})}},
		"no JSON value":         {j, key("a"), 0, []journal.Draft{one, bad.New(func() {})}},
		"no JSON":               {j, key("a"), 0, []journal.Draft{one, text.New(1)}},
		"nothing":               {j, key("a"), 0, []journal.Draft{one, none.New(1)}},
		"a codec that fails":    {j, key("a"), 0, []journal.Draft{one, failing.New(1)}},
		"over the limit":        {j, key("a"), 0, []journal.Draft{one, bad.New(strings.Repeat("x", 99))}},
		"metadata without key":  {j, key("a"), 0, []journal.Draft{one.WithMeta(map[string]string{"": "x"})}},
		"a long metadata key":   {j, key("a"), 0, []journal.Draft{one.WithMeta(map[string]string{long: "x"})}},
		"metadata with NUL":     {j, key("a"), 0, []journal.Draft{one.WithMeta(map[string]string{"x": "\x00"})}},
		"too much metadata":     {j, key("a"), 0, []journal.Draft{one.WithMeta(map[string]string{"x": strings.Repeat("x", core.MaxMetadataBytes)})}},
		"a long correlation":    {j.Correlated(long), key("a"), 0, []journal.Draft{one}},
	} {
		k.ok("the transaction of "+what, j.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
			_, err := c.j.Record(ctx, tx, c.key, c.want, c.drafts...)
			wantError[*core.InvalidError](k.kit, what, err)
			return nil
		}))
	}
	eq(k.kit, "Appends that were sent", sent.len(), 0)
	eq(k.kit, "events", len(k.all()), 0)
	k.wantJobs("of what is invalid", 0)
	k.record(j, strings.Repeat("i", core.MaxKeyBytes), bad.New(strings.Repeat("x", 98)), one.WithMeta(map[string]string{strings.Repeat("m", core.MaxKeyBytes): "x"}))
	eq(k.kit, "events at the limits", len(k.all()), 2)
}

func refusedDeclarations[Tx any](k *jkit[Tx]) {
	j := k.journal()
	refuse := func(what string, err error) {
		k.Helper()
		wantError[*core.InvalidError](k.kit, what, err)
	}
	run := func(context.Context, journal.Event[amount], journal.Call[Tx]) error { return nil }
	hear := func(context.Context, journal.Event[amount]) error { return nil }
	k.ok("On", journal.On(j, "e", k.inRef, run))
	refuse("a second effect of one name", journal.On(j, "e", k.out, run))
	refuse("an effect without name", journal.On(j, "", k.out, run))
	refuse("an effect with a colon", journal.On(j, "a:b", k.out, run))
	refuse("an effect without function", journal.On[amount, Tx](j, "f", k.out, nil))
	refuse("an effect of no type", journal.On(j, "f", journal.Ref[amount]{}, run))
	refuse("an effect of negative attempts", journal.On(j, "f", k.out, run, journal.EffectOptions{MaxAttempts: -1}))
	k.ok("Tap", journal.Tap(j, "t", k.inRef, hear))
	refuse("a second tap of one name", journal.Tap(j, "t", k.out, hear))
	refuse("a tap of no type", journal.Tap(j, "u", journal.Ref[amount]{}, hear))

	project := func(name string, o journal.ProjectionOptions, refs ...journal.Ref[amount]) error {
		p := journal.NewProjection[Tx](name, o)
		for _, r := range refs {
			journal.Apply(p, r, func(context.Context, Tx, journal.Event[amount]) error { return nil })
		}
		return j.Project(p)
	}
	k.ok("Project", project("p", journal.ProjectionOptions{}, k.inRef))
	k.ok("Project a new version", project("p", journal.ProjectionOptions{Version: 2}, k.inRef))
	refuse("a second projection of one name and version", project("p", journal.ProjectionOptions{Version: 1}, k.inRef))
	refuse("a projection with @", project("p@2", journal.ProjectionOptions{}, k.inRef))
	refuse("a projection without name", project("", journal.ProjectionOptions{}, k.inRef))
	refuse("a projection of nothing", project("q", journal.ProjectionOptions{}))
	refuse("a projection that hears twice", project("q", journal.ProjectionOptions{}, k.inRef, k.inRef))
	refuse("a projection of no type", project("q", journal.ProjectionOptions{}, journal.Ref[amount]{}))
	refuse("a projection of an unknown policy", project("q", journal.ProjectionOptions{OnError: "x"}, k.inRef))
	refuse("a projection of large batches", project("q", journal.ProjectionOptions{Batch: 1001}, k.inRef))
	refuse("no projection", j.Project(nil))
	_, err := j.Worker(journal.WorkerOptions{Poll: 1})
	refuse("a worker that polls all the time", err)
	_, err = journal.New[Tx](nil, journal.Options{})
	refuse("a journal without store", err)
	_, err = journal.New(k.store, journal.Options{Limits: core.Limits{Payload: -1}})
	refuse("a journal with a negative limit", err)
}
