package journal

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stintmq/stint/core"
)

// Entity is a kind of entity: what its events are, and how they fold into a state S. Declare it, and its types, once as
// package variables; declaring panics on mistakes, as regexp.MustCompile does. Afterwards safe for concurrent use.
type Entity[S any] struct {
	kind  string
	opts  EntityOptions
	types map[string]*typeDef
	folds map[string]func(*S, Row) error
}

// EntityOptions of NewEntity.
type EntityOptions struct {
	// SnapshotEvery has Do store the state whenever it folded at least so many events, and RecordOn every so many, so that
	// the next Load folds few; 0: never. S must survive encoding/json.
	SnapshotEvery int
	// SnapshotVersion is raised when S or a fold changes: older snapshots are then not used.
	SnapshotVersion int
}

// NewEntity declares a kind.
func NewEntity[S any](kind string, opts ...EntityOptions) *Entity[S] {
	if err := core.ValidateName("Kind", kind); err != nil {
		panic(err)
	}
	e := &Entity[S]{kind: kind, types: map[string]*typeDef{}, folds: map[string]func(*S, Row) error{}}
	for _, o := range opts {
		e.opts = o
	}
	return e
}

// Key names one entity of the kind.
func (e *Entity[S]) Key(id string) EntityKey { return EntityKey{e.kind, id} }

// given refuses what is not there: a nil pointer would fail in the middle of a transaction.
func given(field string, is bool) error {
	if is {
		return nil
	}
	return &core.InvalidError{Field: field, Reason: "must not be nil"}
}

var errZeroRef = &core.InvalidError{Field: "Ref", Reason: "must not be zero: use one that Type returned"}

// Codec turns payloads into JSON and back. It may encrypt: what it returns must be JSON, a string will do. Decode may
// return ErrErased. Its methods are called concurrently, and more than once for one event.
type Codec interface {
	Encode(key EntityKey, payload any) ([]byte, error)
	Decode(key EntityKey, data []byte, payload any) error
}

type jsonCodec struct{}

func (jsonCodec) Encode(_ EntityKey, v any) ([]byte, error)    { return json.Marshal(v) }
func (jsonCodec) Decode(_ EntityKey, data []byte, v any) error { return json.Unmarshal(data, v) }

// typeDef is a declared event type.
type typeDef struct {
	kind, name string
	schema     int
	codec      Codec
	upcasts    map[int]func(json.RawMessage) (json.RawMessage, error)
}

// Ref is a declared type of event with payload P.
type Ref[P any] struct{ def *typeDef }

// TypeOption changes a declaration of Type.
type TypeOption func(*typeDef)

// Upcast says how a payload of schema from becomes one of schema from + 1. The newest schema is one above the highest
// from, and 1 without any. There must be one for each schema below the newest.
func Upcast(from int, f func(json.RawMessage) (json.RawMessage, error)) TypeOption {
	return func(d *typeDef) { d.upcasts[from] = f }
}

// WithCodec replaces JSON; upcasts see what it encoded.
func WithCodec(c Codec) TypeOption { return func(d *typeDef) { d.codec = c } }

// Type declares a type of event: its name, unique in the kind, and how it changes the state. fold must be
// deterministic; nil: it changes nothing.
func Type[P, S any](e *Entity[S], name string, fold func(*S, Event[P]) error, opts ...TypeOption) Ref[P] {
	if err := given("Entity", e != nil); err != nil {
		panic(err)
	}
	if err := core.ValidateName("Type", name); err != nil {
		panic(err)
	}
	if e.types[name] != nil {
		panic(fmt.Sprintf("journal: %s/%s is declared twice", e.kind, name))
	}
	d := &typeDef{kind: e.kind, name: name, codec: jsonCodec{}, upcasts: map[int]func(json.RawMessage) (json.RawMessage, error){}}
	for _, o := range opts {
		o(d)
	}
	if err := given("Codec", d.codec != nil); err != nil {
		panic(err)
	}
	d.schema = len(d.upcasts) + 1
	for from := 1; from < d.schema; from++ {
		if d.upcasts[from] == nil {
			panic(fmt.Sprintf("journal: %s/%s has no Upcast from schema %d", e.kind, name, from))
		}
	}
	ref := Ref[P]{d}
	e.types[name] = d
	e.folds[name] = func(s *S, r Row) error {
		if fold == nil {
			return nil
		}
		ev, err := ref.decode(r)
		if err != nil {
			return err
		}
		return fold(s, ev)
	}
	return ref
}

// New is an event to be recorded. The payload is encoded by Record.
func (r Ref[P]) New(payload P) Draft {
	return Draft{def: r.def, data: func(k EntityKey) ([]byte, error) { return r.def.codec.Encode(k, payload) }}
}

// Name is kind/type. A zero Ref panics with an *core.InvalidError.
func (r Ref[P]) Name() string {
	if r.def == nil {
		panic(errZeroRef)
	}
	return r.def.kind + "/" + r.def.name
}

// Decode returns a row of History or Log as an event, brought to the newest schema. One of another type is an
// *UnknownTypeError.
func (r Ref[P]) Decode(row Row) (Event[P], error) {
	if r.def == nil {
		return Event[P]{Header: row.Header}, errZeroRef
	}
	if !r.def.matches(&row.Header) {
		return Event[P]{Header: row.Header}, &UnknownTypeError{row.Key.Kind, row.Type, row.Schema, row.Seq, "it is decoded as another type"}
	}
	return r.decode(row)
}

// matches reports whether a row is of the declared type, whatever its schema.
func (d *typeDef) matches(h *Header) bool { return h.Key.Kind == d.kind && h.Type == d.name }

func (r Ref[P]) decode(row Row) (Event[P], error) {
	ev := Event[P]{Header: row.Header}
	d := r.def
	if row.Schema < 1 || row.Schema > d.schema {
		return ev, &UnknownTypeError{row.Key.Kind, row.Type, row.Schema, row.Seq, fmt.Sprintf("schemas 1 to %d are known", d.schema)}
	}
	data := json.RawMessage(row.Payload)
	for s := row.Schema; s < d.schema; s++ {
		var err error
		if data, err = d.upcasts[s](data); err != nil {
			return ev, &DecodeError{d.kind, d.name, row.Seq, fmt.Errorf("upcast from schema %d: %w", s, err)}
		}
	}
	err := d.codec.Decode(row.Key, data, &ev.Payload)
	switch {
	case errors.Is(err, ErrErased):
		var zero P
		ev.Payload, ev.Erased = zero, true
	case err != nil:
		return ev, &DecodeError{d.kind, d.name, row.Seq, err}
	}
	return ev, nil
}

// State is an entity as its events made it.
type State[S any] struct {
	Key     EntityKey
	Version int64 // 0: it has no events
	Value   S
}

// Exists reports whether the entity has events.
func (s State[S]) Exists() bool { return s.Version > 0 }

// fold applies a row to a state.
func (e *Entity[S]) fold(s *State[S], r Row) error {
	f := e.folds[r.Type]
	if f == nil {
		return &UnknownTypeError{r.Key.Kind, r.Type, r.Schema, r.Seq, "the kind has no such type here"}
	}
	if err := f(&s.Value, r); err != nil {
		return fmt.Errorf("journal: fold event %d of %s: %w", r.Seq, r.Key, err)
	}
	s.Version = r.Version
	return nil
}
