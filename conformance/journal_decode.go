package conformance

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

func decodeCases[Tx any]() []journalCase[Tx] {
	return []journalCase[Tx]{
		{rule: "J4", name: "upcast", run: decodeUpcast[Tx],
			demands: "whoever reads an event of an older schema gets it upcast step by step; the log keeps it as it was"},
		{rule: "J4", name: "future-schema", run: decodeFuture[Tx],
			demands: "an event of a schema that is not known here is ErrUnknownType: to Load, as a failed attempt, as a poison event, and as a logged skip of a tap"},
		{rule: "J4", name: "unknown-type", run: decodeUnknown[Tx],
			demands: "an entity with an event of a type that is not declared here can't be loaded: ErrUnknownType"},
		{rule: "J4", name: "bad-payload", run: decodeBad[Tx],
			demands: "a payload that is not what its type says is a DecodeError that names the event"},
		{rule: "J4", name: "erased", run: decodeErased[Tx],
			demands: "an event whose codec says ErrErased has a zero payload and says so, to whoever reads it"},
	}
}

// logger keeps what is logged, each as one line.
type logger struct {
	heard[string]
}

func (l *logger) Write(p []byte) (int, error) {
	l.add(string(p))
	return len(p), nil
}

func (l *logger) log() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logger) has(part ...string) bool {
	for _, line := range l.list() {
		all := true
		for _, p := range part {
			all = all && strings.Contains(line, p)
		}
		if all {
			return true
		}
	}
	return false
}

// worker is one of all that a journal declares.
func (k *jkit[Tx]) worker(j *journal.Journal[Tx], opts ...journal.WorkerOptions) *journal.Worker[Tx] {
	k.Helper()
	o := journal.WorkerOptions{Core: core.WorkerOptions{Concurrency: 4}}
	if len(opts) > 0 {
		o = opts[0]
	}
	w, err := j.Worker(o)
	k.ok("Worker", err)
	return w
}

// work does what is due, without waiting.
func (k *jkit[Tx]) work(w *journal.Worker[Tx]) (effects, events int) {
	k.Helper()
	for range 2 { // as catchUp
		ran, scanned, err := w.Drain(k.ctx, core.DrainOptions{})
		k.ok("Drain", err)
		effects, events = effects+ran, events+scanned
	}
	return effects, events
}

// renamed is the payload of a later schema.
type renamed struct {
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}

func decodeUpcast[Tx any](k *jkit[Tx]) {
	old := k.journal()
	k.record(old, "a", k.deposits(2)...)
	e := journal.NewEntity[balance]("account")
	in := journal.Type(e, "in", func(b *balance, ev journal.Event[renamed]) error {
		if ev.Payload.Currency == "EUR" {
			b.Sum += ev.Payload.Amount
		}
		b.Events++
		return nil
	}, journal.Upcast(1, func(m json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(strings.Replace(string(m), `"n"`, `"amount"`, 1)), nil
	}), journal.Upcast(2, func(m json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(strings.Replace(string(m), `}`, `,"currency":"EUR"}`, 1)), nil
	}))
	j := k.journal()
	var applied, tapped, ran heard[int]
	p := journal.NewProjection[Tx]("p")
	journal.Apply(p, in, func(_ context.Context, _ Tx, ev journal.Event[renamed]) error {
		applied.add(ev.Payload.Amount*10 + ev.Schema)
		return nil
	})
	k.ok("Project", j.Project(p))
	k.ok("On", journal.On(j, "e", in, func(_ context.Context, ev journal.Event[renamed], _ journal.Call[Tx]) error {
		ran.add(ev.Payload.Amount)
		return nil
	}))
	k.ok("Tap", journal.Tap(j, "t", in, func(_ context.Context, ev journal.Event[renamed]) error {
		tapped.add(ev.Payload.Amount)
		return nil
	}))
	w := k.worker(j)
	k.work(w) // from here on the tap hears
	k.record(old, "a", k.inRef.New(amount{3}))
	k.record(j, "a", in.New(renamed{4, "EUR"}))
	_, err := j.Backfill(k.ctx, "e", 0, 0)
	k.ok("Backfill", err)
	k.work(w)
	eqs(k.kit, "projection", applied.list(), []int{11, 21, 31, 43})
	eqs(k.kit, "tap", tapped.list(), []int{3, 4})
	eq(k.kit, "runs of the effect", ran.len(), 4)
	var s journal.State[balance]
	k.in("Load", func(ctx context.Context, tx Tx) (err error) {
		s, err = journal.Load(ctx, j, tx, e, "a")
		return err
	})
	eq(k.kit, "state", s.Value, balance{10, 4})
	rows := k.all()
	eq(k.kit, "the oldest, in the log", string(rows[0].Payload), `{"n":1}`)
	eq(k.kit, "its schema", rows[0].Schema, 1)
	eq(k.kit, "schema of the newest", rows[3].Schema, 3)
}

func decodeFuture[Tx any](k *jkit[Tx]) {
	e := journal.NewEntity[balance]("account")
	later := journal.Type[amount](e, "in", nil, journal.Upcast(1, func(m json.RawMessage) (json.RawMessage, error) { return m, nil }))
	other := k.journal() // of a later release

	var out logger
	j := k.journal(journal.Options{Logger: out.log()})
	var tapped heard[int64]
	effect := k.effect(j, "e", k.inRef)
	k.ok("On", journal.On(other, "e", later, func(context.Context, journal.Event[amount], journal.Call[Tx]) error { return nil }))
	p := journal.NewProjection[Tx]("p")
	journal.Apply(p, k.inRef, func(context.Context, Tx, journal.Event[amount]) error { return nil })
	k.ok("Project", j.Project(p))
	k.ok("Tap", journal.Tap(j, "t", k.inRef, func(_ context.Context, ev journal.Event[amount]) error {
		tapped.add(ev.Seq)
		return nil
	}))
	w := k.worker(j)
	k.work(w)
	future := k.record(other, "a", later.New(amount{1})).Last()
	known := k.record(j, "b", k.deposits(1)...).Last()

	err := k.store.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
		_, err := journal.Load(ctx, j, tx, k.entity, "a")
		return err
	})
	k.is("Load", err, journal.ErrUnknownType)
	unknown := wantError[*journal.UnknownTypeError](k.kit, "Load", err)
	eq(k.kit, "seq of the error", unknown.Seq, future)
	eq(k.kit, "schema of the error", unknown.Schema, 2)

	effects, _, err := w.Drain(k.ctx, core.DrainOptions{})
	k.is("CatchUp", err, journal.ErrUnknownType)
	eq(k.kit, "effects that ran", effects, 2)
	eqs(k.kit, "effects that got their event", effect.list(), []int64{known})
	if k.insp != nil {
		eq(k.kit, "attempts of the other", k.get(journal.JobID("e", future)).Attempts, 1)
	}
	s := k.status(j, "p")
	eq(k.kit, "failed seq", s.FailedSeq, future)
	if !strings.Contains(s.LastError, "unknown event type") && !strings.Contains(s.LastError, "schema 2") {
		k.failf("LastError is %q", s.LastError)
	}
	eqs(k.kit, "tap", tapped.list(), []int64{known})
	eq(k.kit, "the tap's failure is logged", out.has("tap", "schema 2"), true)
}

func decodeUnknown[Tx any](k *jkit[Tx]) {
	j := k.journal()
	k.record(j, "a", k.deposits(1)...)
	k.record(j, "a", k.out.New(amount{1}))
	e := journal.NewEntity[balance]("account")
	journal.Type[amount](e, "in", nil)
	load := func(ctx context.Context, tx Tx) error {
		_, err := journal.Load(ctx, j, tx, e, "a")
		return err
	}
	err := k.store.InTx(k.ctx, load)
	k.is("Load", err, journal.ErrUnknownType)
	eq(k.kit, "type of the error", wantError[*journal.UnknownTypeError](k.kit, "Load", err).Type, "out")
	_, err = journal.Do(k.ctx, j, e, "a", func(context.Context, Tx, journal.State[balance]) ([]journal.Draft, error) {
		k.Error("J4: decide was called with a state that can't be known")
		return nil, nil
	})
	k.is("Do", err, journal.ErrUnknownType)
}

func decodeBad[Tx any](k *jkit[Tx]) {
	rows := raw(1)
	rows[0].Payload = []byte(`{"n":"one"}`)
	k.in("Append", func(ctx context.Context, tx Tx) error {
		_, err := k.store.Append(ctx, tx, key("a"), journal.NoEntity, rows)
		return err
	})
	err := k.store.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
		_, err := journal.Load(ctx, k.journal(), tx, k.entity, "a")
		return err
	})
	eq(k.kit, "seq of the error", wantError[*journal.DecodeError](k.kit, "Load", err).Seq, k.all()[0].Seq)
}

// shredder is a codec whose payloads are gone for one entity.
type shredder struct{ id string }

func (s shredder) Encode(_ journal.EntityKey, v any) ([]byte, error) { return json.Marshal(v) }

func (s shredder) Decode(k journal.EntityKey, data []byte, v any) error {
	if k.ID == s.id {
		return journal.ErrErased
	}
	return json.Unmarshal(data, v)
}

func decodeErased[Tx any](k *jkit[Tx]) {
	e := journal.NewEntity[balance]("person")
	erased := 0
	named := journal.Type(e, "named", func(b *balance, ev journal.Event[amount]) error {
		if ev.Erased {
			erased++
		}
		b.Sum += ev.Payload.N
		return nil
	}, journal.WithCodec(shredder{"gone"}))
	j := k.journal()
	var seen heard[string]
	p := journal.NewProjection[Tx]("p")
	journal.Apply(p, named, func(_ context.Context, _ Tx, ev journal.Event[amount]) error {
		if ev.Erased {
			seen.add("erased " + ev.Key.ID)
		} else {
			seen.add(ev.Key.ID)
		}
		return nil
	})
	k.ok("Project", j.Project(p))
	for _, id := range []string{"gone", "here"} {
		k.ok("Record", j.InTx(k.ctx, func(ctx context.Context, tx Tx) error {
			_, err := j.Record(ctx, tx, e.Key(id), journal.NoEntity, named.New(amount{5}))
			return err
		}))
	}
	sums := map[string]int{}
	k.in("Load", func(ctx context.Context, tx Tx) error {
		for _, id := range []string{"gone", "here"} {
			s, err := journal.Load(ctx, j, tx, e, id)
			if err != nil {
				return err
			}
			sums[id] = s.Value.Sum
		}
		return nil
	})
	eq(k.kit, "sum of what is gone", sums["gone"], 0)
	eq(k.kit, "sum of what is not", sums["here"], 5)
	eq(k.kit, "erased events that were folded", erased, 1)
	k.catchUp(j)
	eqs(k.kit, "projection", seen.list(), []string{"erased gone", "here"})
}
