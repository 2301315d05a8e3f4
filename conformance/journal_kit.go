package conformance

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// amount is the payload of the suite's events.
type amount struct {
	N int `json:"n"`
}

// balance is what they fold into.
type balance struct {
	Sum    int
	Events int
}

// bank is what the cases write about, declared anew for each.
type bank struct {
	entity     *journal.Entity[balance]
	inRef, out journal.Ref[amount]
	other      *journal.Entity[balance] // of another kind, with a type of the same name
	inOther    journal.Ref[amount]
}

func newBank(opts ...journal.EntityOptions) bank {
	add := func(sign int) func(*balance, journal.Event[amount]) error {
		return func(b *balance, e journal.Event[amount]) error {
			b.Sum += sign * e.Payload.N
			b.Events++
			return nil
		}
	}
	b := bank{entity: journal.NewEntity[balance]("account", opts...), other: journal.NewEntity[balance]("safe")}
	b.inRef = journal.Type(b.entity, "in", add(1))
	b.out = journal.Type(b.entity, "out", add(-1))
	b.inOther = journal.Type(b.other, "in", add(1))
	return b
}

// key names an account.
func key(id string) journal.EntityKey { return journal.EntityKey{Kind: "account", ID: id} }

// deposits are n drafts.
func (b bank) deposits(n int) []journal.Draft {
	var out []journal.Draft
	for i := range n {
		out = append(out, b.inRef.New(amount{i + 1}))
	}
	return out
}

// jkit is what a case of a journal works with. Like kit's, its methods belong to the case's own goroutine.
type jkit[Tx any] struct {
	*kit
	bank
	h     *JournalHarness[Tx]
	store journal.Store[Tx]
}

func newJkit[Tx any](k *kit, h *JournalHarness[Tx]) *jkit[Tx] {
	store, jobs := h.New(k.TB, k.clock)
	return jkitOn(k, h, store, jobs)
}

func jkitOn[Tx any](k *kit, h *JournalHarness[Tx], store journal.Store[Tx], jobs core.Store) *jkit[Tx] {
	k.use(jobs)
	k.insp, _ = core.As[core.Inspector](jobs)
	k.admin, _ = core.As[core.Admin](jobs)
	return &jkit[Tx]{kit: k, bank: newBank(), h: h, store: store}
}

// second is a kit on another handle, with the same declarations.
func (k *jkit[Tx]) second() *jkit[Tx] {
	k.Helper()
	store, jobs := k.h.Open(k.TB, k.kit.store, k.clock)
	own := *k.kit
	o := jkitOn(&own, k.h, store, jobs)
	o.bank = k.bank
	return o
}

// journal is an engine on the store.
func (k *jkit[Tx]) journal(opts ...journal.Options) *journal.Journal[Tx] {
	k.Helper()
	var o journal.Options
	if len(opts) > 0 {
		o = opts[0]
	}
	j, err := journal.New(k.store, o)
	k.ok("journal.New", err)
	return j
}

// openTx is a transaction of the user's own.
type openTx[Tx any] struct {
	tx               Tx
	commit, rollback func()
}

// begin starts one. A case that fails before it ends it leaves that to undo.
func (k *jkit[Tx]) begin() openTx[Tx] {
	k.Helper()
	tx, commit, rollback := k.h.Begin(k.TB, k.kit.store)
	at := len(k.pending)
	k.pending = append(k.pending, rollback)
	end := func(what string, how func() error) func() {
		return func() {
			k.Helper()
			k.pending[at] = nil
			k.ok(what, how())
		}
	}
	return openTx[Tx]{tx, end("commit", commit), end("rollback", rollback)}
}

// in does something in a transaction of its own, which must commit.
func (k *jkit[Tx]) in(what string, do func(ctx context.Context, tx Tx) error) {
	k.Helper()
	k.ok(what, k.store.InTx(k.ctx, do))
}

// raw are n rows for Append, as the engine would make them.
func raw(n int) []journal.Row {
	rows := make([]journal.Row, n)
	for i := range rows {
		rows[i] = journal.Row{
			Header:  journal.Header{Type: "in", Schema: 1, Correlation: "c"},
			Payload: fmt.Appendf(nil, `{"n":%d}`, i+1),
		}
	}
	return rows
}

// appendIn appends in an open transaction.
func (k *jkit[Tx]) appendIn(tx Tx, id string, want journal.Expect, n int) journal.Recorded {
	k.Helper()
	rec, err := k.store.Append(k.ctx, tx, key(id), want, raw(n))
	k.ok("Append to "+id, err)
	return rec
}

// append appends in a transaction of its own.
func (k *jkit[Tx]) append(id string, n int) journal.Recorded {
	k.Helper()
	var rec journal.Recorded
	k.in("Append to "+id, func(ctx context.Context, tx Tx) (err error) {
		rec, err = k.store.Append(ctx, tx, key(id), journal.AnyVersion, raw(n))
		return err
	})
	return rec
}

// record records in a transaction of its own.
func (k *jkit[Tx]) record(j *journal.Journal[Tx], id string, drafts ...journal.Draft) journal.Recorded {
	k.Helper()
	var rec journal.Recorded
	k.ok("Record for "+id, j.InTx(k.ctx, func(ctx context.Context, tx Tx) (err error) {
		rec, err = j.Record(ctx, tx, key(id), journal.AnyVersion, drafts...)
		return err
	}))
	return rec
}

// all is the whole log, in order.
func (k *jkit[Tx]) all() []journal.Row {
	k.Helper()
	var out []journal.Row
	for after := int64(0); ; after = out[len(out)-1].Seq {
		rows, err := k.store.ReadLog(k.ctx, journal.Filter{After: after, Limit: 1000})
		k.ok("ReadLog", err)
		out = append(out, rows...)
		if len(rows) < 1000 {
			return out
		}
	}
}

// settledFrom reads on from a seq, page by page, until there is no more.
func (k *jkit[Tx]) settledFrom(after int64, page int) []journal.Row {
	k.Helper()
	var out []journal.Row
	for {
		var rows []journal.Row
		k.in("ReadSettled", func(ctx context.Context, tx Tx) (err error) {
			rows, err = k.store.ReadSettled(ctx, tx, after, page)
			return err
		})
		if len(rows) == 0 {
			return out
		}
		if len(rows) > page {
			k.failf("ReadSettled answered %d events, asked for %d", len(rows), page)
		}
		for _, r := range rows {
			if r.Seq <= after {
				k.failf("ReadSettled beyond %d answered seq %d: it must be in order, and beyond", after, r.Seq)
			}
			after = r.Seq
		}
		out = append(out, rows...)
	}
}

// history reads an entity's events.
func (k *jkit[Tx]) history(id string) []journal.Row {
	k.Helper()
	var rows []journal.Row
	k.in("ReadEntity", func(ctx context.Context, tx Tx) (err error) {
		rows, err = k.store.ReadEntity(ctx, tx, key(id), 0, 1000)
		return err
	})
	return rows
}

func seqs(rows []journal.Row) []int64 {
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.Seq
	}
	return out
}

func versions(rows []journal.Row) []int64 {
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.Version
	}
	return out
}

// upward are the numbers from..to.
func upward(from, to int64) []int64 {
	var out []int64
	for ; from <= to; from++ {
		out = append(out, from)
	}
	return out
}

// The user's own data are notes in a space that the engine does not know.
const userSpace = "user"

// count adds to a number that is kept in a note, in the transaction.
func (k *jkit[Tx]) count(ctx context.Context, tx Tx, name string, n int) error {
	notes, err := k.store.Notes(ctx, tx, userSpace, name, "", 1)
	if err != nil {
		return err
	}
	if len(notes) > 0 && notes[0].Key == name {
		before, err := strconv.Atoi(string(notes[0].Value))
		if err != nil {
			return err
		}
		n += before
	}
	return k.store.PutNote(ctx, tx, journal.Note{Space: userSpace, Key: name, Value: strconv.AppendInt(nil, int64(n), 10)})
}

// mark writes a note of the user's in the transaction. One that is there already is an error: it happened twice.
func (k *jkit[Tx]) mark(ctx context.Context, tx Tx, name string) error {
	notes, err := k.store.Notes(ctx, tx, userSpace, name, "", 1)
	if err != nil {
		return err
	}
	if len(notes) > 0 && notes[0].Key == name {
		return fmt.Errorf("%q happened twice", name)
	}
	return k.store.PutNote(ctx, tx, journal.Note{Space: userSpace, Key: name, Value: []byte("1")})
}

// space reads all notes of a space whose keys begin with prefix.
func (k *jkit[Tx]) space(space, prefix string) map[string]string {
	k.Helper()
	out := map[string]string{}
	after := ""
	for {
		var notes []journal.Note
		k.in("Notes", func(ctx context.Context, tx Tx) (err error) {
			notes, err = k.store.Notes(ctx, tx, space, prefix, after, 500)
			return err
		})
		for _, n := range notes {
			out[n.Key] = string(n.Value)
			after = n.Key
		}
		if len(notes) < 500 {
			return out
		}
	}
}

// wantUser compares the user's own data.
func (k *jkit[Tx]) wantUser(what, prefix string, want map[string]string) {
	k.Helper()
	if got := k.space(userSpace, prefix); !maps.Equal(got, want) {
		k.failf("%s: what was written is %v, want %v", what, got, want)
	}
}

// cursor finds a stored cursor; one that is not there is zero.
func (k *jkit[Tx]) cursor(name string) journal.Cursor {
	k.Helper()
	all, err := k.store.Cursors(k.ctx)
	k.ok("Cursors", err)
	for _, c := range all {
		if c.Name == name {
			return c
		}
	}
	return journal.Cursor{}
}

// catchUp lets projections go on until there is nothing left to do, and returns how many events were scanned. A store
// may need a second look to see that a gap is dead.
func (k *jkit[Tx]) catchUp(j *journal.Journal[Tx]) int {
	k.Helper()
	total := 0
	for idle := 0; idle < 2; idle++ {
		n, err := j.CatchUp(k.ctx)
		k.ok("CatchUp", err)
		if total += n; n > 0 {
			idle = -1
		}
	}
	return total
}

// fails has a pass of projections, which must fail, and returns why.
func (k *jkit[Tx]) fails(j *journal.Journal[Tx]) error {
	k.Helper()
	for idle := 0; idle < 2; idle++ {
		n, err := j.CatchUp(k.ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			idle = -1
		}
	}
	k.failf("CatchUp: no error, and nothing left to do")
	return nil
}

// status finds a declared projection's.
func (k *jkit[Tx]) status(j *journal.Journal[Tx], name string) journal.Status {
	k.Helper()
	all, _, err := j.Cursors(k.ctx)
	k.ok("Cursors", err)
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	k.failf("Cursors lists no %q", name)
	return journal.Status{}
}

// sameRow compares a stored event with what is expected of it.
func (k *jkit[Tx]) sameRow(what string, got, want journal.Row) {
	k.Helper()
	if !bytes.Equal(got.Payload, want.Payload) {
		k.failf("%s: payload came back as %q, want %q", what, got.Payload, want.Payload)
	}
	if !maps.Equal(got.Meta, want.Meta) {
		k.failf("%s: metadata came back as %v, want %v", what, got.Meta, want.Meta)
	}
	k.wantTime(what+": At", got.At, want.At)
	got.Meta, want.Meta, got.At, want.At = nil, nil, time.Time{}, time.Time{}
	if g, w := fmt.Sprintf("%+v", got.Header), fmt.Sprintf("%+v", want.Header); g != w {
		k.failf("%s: got %s, want %s", what, g, w)
	}
}
