package conformance

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

func appendCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J1", name: "dense", run: appendDense[Tx],
			demands: "versions of an entity go on from its own without holes, seqs grow, and both are answered"},
		{rule: "J1", name: "exact", run: appendExact[Tx],
			demands: "an event comes back as it was written, byte for byte, with the store's time in whole microseconds"},
		{rule: "J1", name: "expect", run: appendExpect[Tx],
			demands: "a version that is not as expected is a ConflictError that says what it is; what is expected holds"},
		{rule: "J1", name: "conflict-leaves-the-transaction", run: appendConflict[Tx],
			demands: "a conflict writes nothing and leaves the transaction as it was"},
		{rule: "J1", name: "many", run: appendMany[Tx],
			demands: "1,000 events of one Append are stored in order"},
		{rule: "J1", name: "rollback", run: appendRollback[Tx],
			demands: "what a transaction wrote is not there when it was rolled back, and its versions are free"},
		{rule: "J1", name: "unseen-until-commit", run: appendUnseen[Tx],
			demands: "what is appended is seen in its transaction, and elsewhere from the commit on"},
		{rule: "J1", name: "twice-in-one-transaction", run: appendTwice[Tx],
			demands: "two Appends of one transaction to one entity, and to two, go on from one another"},
		{rule: "J13", name: "in-tx", run: inTx[Tx],
			demands: "InTx runs once, commits if do returns nil, rolls back otherwise, and returns do's error"},
		{rule: "J13", name: "ended-context", run: journalEnded[Tx],
			demands: "a call whose context had ended does nothing, and its error wraps the context's"},
	}
}

func appendDense[Tx any](k *jkit[Tx]) {
	var last int64
	have := map[string]int64{}
	for i, id := range []string{"a", "b", "a", "a", "b"} {
		n := i%2 + 1
		rec := k.append(id, n)
		have[id] += int64(n)
		eq(k.kit, "version of "+id, rec.Version, have[id])
		eq(k.kit, "key", rec.Key, key(id))
		eq(k.kit, "number of seqs", len(rec.Seqs), n)
		for _, seq := range rec.Seqs {
			if seq <= last {
				k.failf("seq %d was answered after %d: seqs grow", seq, last)
			}
			last = seq
		}
		k.wantTime("At", rec.At, k.now())
	}
	for id, n := range have {
		eqs(k.kit, "versions of "+id, versions(k.history(id)), upward(1, n))
	}
	eq(k.kit, "events of nobody", len(k.history("c")), 0)
}

func appendExact[Tx any](k *jkit[Tx]) {
	payloads := []string{
		`{"z":1,"a":2,"z":3}`, `{"n":12345678901234567890.0100}`, " [1 ,\t2 ]\n", `"\u0000\ud83d\ude00 é"`, `null`, `"` + strings.Repeat("x", 100_000) + `"`,
	}
	rows := make([]journal.Row, len(payloads))
	for i, p := range payloads {
		rows[i] = journal.Row{Payload: []byte(p), Header: journal.Header{
			Type: "type/é" + string(rune('a'+i)), Schema: i + 1, Correlation: strings.Repeat("c", core.MaxKeyBytes), Causation: 7,
			Meta: map[string]string{"b": "2 é\n", "a": "", "c:d": `{"x":1}`},
		}}
	}
	rows[0].Meta = nil
	id := `an "id": 'quoted' \ / % é ` + strings.Repeat("i", 100)
	mine := rows[1].Payload
	k.advance(time.Second + 789*time.Nanosecond)
	var rec journal.Recorded
	k.in("Append", func(ctx context.Context, tx Tx) (err error) {
		rec, err = k.store.Append(ctx, tx, key(id), journal.NoEntity, rows)
		return err
	})
	at := k.now()
	k.advance(time.Hour)
	mine[1] = '!' // the store keeps no reference
	rows[1].Meta["b"] = "changed"
	for what, got := range map[string][]journal.Row{
		"ReadEntity": k.history(id), "ReadSettled": k.settledFrom(0, 100), "ReadLog": k.all(),
	} {
		eq(k.kit, what+": number of events", len(got), len(rows))
		for i, r := range got {
			want := rows[i]
			want.Payload = []byte(payloads[i])
			if i > 0 {
				want.Meta = map[string]string{"b": "2 é\n", "a": "", "c:d": `{"x":1}`}
			}
			want.Seq, want.Version, want.Key, want.At = rec.Seqs[i], int64(i+1), key(id), at
			k.sameRow(what, r, want)
		}
	}
}

// conflict is the ConflictError of an Append.
func (k *jkit[Tx]) conflict(ctx context.Context, tx Tx, id string, want journal.Expect, have int64) {
	k.Helper()
	_, err := k.store.Append(ctx, tx, key(id), want, raw(1))
	k.is("Append of a wrong version", err, journal.ErrConflict)
	c := wantError[*journal.ConflictError](k.kit, "Append of a wrong version", err)
	eq(k.kit, "the conflict", *c, journal.ConflictError{Key: key(id), Want: want, Have: have})
}

func appendExpect[Tx any](k *jkit[Tx]) {
	k.in("Append", func(ctx context.Context, tx Tx) error {
		k.appendIn(tx, "a", journal.NoEntity, 2)
		k.conflict(ctx, tx, "a", journal.NoEntity, 2)
		k.conflict(ctx, tx, "b", journal.Version(1), 0)
		return nil
	})
	k.in("Append", func(ctx context.Context, tx Tx) error {
		k.conflict(ctx, tx, "a", journal.NoEntity, 2)
		k.conflict(ctx, tx, "a", journal.Version(1), 2)
		k.conflict(ctx, tx, "a", journal.Version(3), 2)
		k.conflict(ctx, tx, "b", journal.Version(1), 0)
		eq(k.kit, "version", k.appendIn(tx, "a", journal.Version(2), 1).Version, 3)
		eq(k.kit, "version", k.appendIn(tx, "a", journal.AnyVersion, 1).Version, 4)
		eq(k.kit, "version", k.appendIn(tx, "b", journal.NoEntity, 1).Version, 1)
		eq(k.kit, "version", k.appendIn(tx, "c", journal.AnyVersion, 1).Version, 1)
		return nil
	})
	eqs(k.kit, "versions", versions(k.history("a")), upward(1, 4))
}

func appendConflict[Tx any](k *jkit[Tx]) {
	k.append("a", 1)
	k.in("a transaction that met a conflict", func(ctx context.Context, tx Tx) error {
		if err := k.mark(ctx, tx, "before"); err != nil {
			return err
		}
		k.conflict(ctx, tx, "a", journal.NoEntity, 1)
		k.conflict(ctx, tx, "b", journal.Version(7), 0)
		return k.mark(ctx, tx, "after")
	})
	eq(k.kit, "events", len(k.all()), 1)
	eq(k.kit, "version after a conflict", k.append("a", 1).Version, 2)
	eq(k.kit, "version of an entity that only a conflict named", k.append("b", 1).Version, 1)
	k.wantUser("beside the conflict", "", map[string]string{"before": "1", "after": "1"})
}

func appendMany[Tx any](k *jkit[Tx]) {
	rec := k.append("a", 1000)
	got := k.history("a")
	eqs(k.kit, "versions", versions(got), upward(1, 1000))
	eqs(k.kit, "seqs", seqs(got), rec.Seqs)
	eqs(k.kit, "settled", seqs(k.settledFrom(0, 300)), rec.Seqs)
	eq(k.kit, "the last payload", string(got[999].Payload), `{"n":1000}`)
}

func appendRollback[Tx any](k *jkit[Tx]) {
	k.append("a", 1)
	t := k.begin()
	k.appendIn(t.tx, "a", journal.Version(1), 2)
	k.appendIn(t.tx, "b", journal.NoEntity, 1)
	k.ok("mark", k.mark(k.ctx, t.tx, "m"))
	t.rollback()
	eq(k.kit, "events", len(k.all()), 1)
	k.wantUser("after the rollback", "", map[string]string{})
	eq(k.kit, "version of a", k.append("a", 1).Version, 2)
	eq(k.kit, "version of b", k.append("b", 1).Version, 1)
	eqs(k.kit, "versions of a", versions(k.history("a")), upward(1, 2))
}

func appendUnseen[Tx any](k *jkit[Tx]) {
	t := k.begin()
	rec := k.appendIn(t.tx, "a", journal.NoEntity, 2)
	own, err := k.store.ReadEntity(k.ctx, t.tx, key("a"), 0, 10)
	k.ok("ReadEntity in the transaction", err)
	eqs(k.kit, "seqs in the transaction", seqs(own), rec.Seqs)
	own, err = k.store.ReadEntity(k.ctx, t.tx, key("a"), 1, 10)
	k.ok("ReadEntity in the transaction", err)
	eqs(k.kit, "beyond version 1", versions(own), []int64{2})

	// A store may have whoever reads wait for the writer.
	ctx, cancel := context.WithTimeout(k.ctx, 50*time.Millisecond)
	defer cancel()
	if rows, err := k.store.ReadLog(ctx, journal.Filter{Limit: 10}); err == nil {
		eq(k.kit, "events before the commit", len(rows), 0)
	}
	if head, err := k.store.Head(ctx); err == nil {
		eq(k.kit, "head before the commit", head.Seq, 0)
	}
	t.commit()
	eqs(k.kit, "seqs after the commit", seqs(k.all()), rec.Seqs)
	eqs(k.kit, "settled after the commit", seqs(k.settledFrom(0, 10)), rec.Seqs)
	head, err := k.store.Head(k.ctx)
	k.ok("Cursors", err)
	eq(k.kit, "head", head.Seq, rec.Last())
}

func appendTwice[Tx any](k *jkit[Tx]) {
	k.in("Appends", func(ctx context.Context, tx Tx) error {
		eq(k.kit, "version of a", k.appendIn(tx, "a", journal.NoEntity, 2).Version, 2)
		eq(k.kit, "version of b", k.appendIn(tx, "b", journal.NoEntity, 1).Version, 1)
		eq(k.kit, "version of a", k.appendIn(tx, "a", journal.Version(2), 1).Version, 3)
		k.conflict(ctx, tx, "a", journal.Version(2), 3)
		return nil
	})
	eqs(k.kit, "versions of a", versions(k.history("a")), upward(1, 3))
	rows := k.settledFrom(0, 10)
	eqs(k.kit, "versions by seq", versions(rows), []int64{1, 2, 1, 3})
}

func inTx[Tx any](k *jkit[Tx]) {
	mine := errors.New("mine")
	calls := 0
	err := k.store.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
		calls++
		k.appendIn(tx, "a", journal.NoEntity, 1)
		if err := k.mark(ctx, tx, "m"); err != nil {
			return err
		}
		return mine
	})
	k.is("InTx whose do failed", err, mine)
	eq(k.kit, "calls of do", calls, 1)
	k.wantUser("after a failure", "", map[string]string{})
	eq(k.kit, "events after a failure", len(k.all()), 0)
	k.append("a", 1)
	eq(k.kit, "events", len(k.all()), 1)
}

func journalEnded[Tx any](k *jkit[Tx]) {
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	err := k.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		_, err := k.store.Append(ctx, tx, key("a"), journal.AnyVersion, raw(1))
		return err
	})
	k.is("InTx", err, context.Canceled)
	_, err = k.store.ReadLog(ctx, journal.Filter{Limit: 1})
	k.is("ReadLog", err, context.Canceled)
	_, err = k.store.Cursors(ctx)
	k.is("Cursors", err, context.Canceled)
	k.is("Announce", k.store.Announce(ctx), context.Canceled)
	eq(k.kit, "events", len(k.all()), 0)
}
