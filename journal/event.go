package journal

import (
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// EntityKey names an entity: what events happen to.
type EntityKey struct {
	Kind string // 1 to 128 bytes, without colon
	ID   string // 1 to 255 bytes
}

// String is kind:id.
func (k EntityKey) String() string { return k.Kind + ":" + k.ID }

func (k EntityKey) validate() error {
	if err := core.ValidateName("Kind", k.Kind); err != nil {
		return err
	}
	switch {
	case k.ID == "":
		return &core.InvalidError{Field: "ID", Reason: "must not be empty"}
	case len(k.ID) > core.MaxKeyBytes:
		return &core.InvalidError{Field: "ID", Reason: fmt.Sprintf("has more than %d bytes", core.MaxKeyBytes)}
	}
	return validText("ID", k.ID)
}

// Expect is the version of an entity that a Record builds on: Version(n), NoEntity or AnyVersion.
type Expect int64

// What a Record may expect beside a version.
const (
	NoEntity   Expect = 0  // the entity has no events yet
	AnyVersion Expect = -1 // whatever it has: nothing is checked, and nothing conflicts
)

// Version expects exactly n events so far.
func Version(n int64) Expect { return Expect(n) }

// String is a version, "no entity" or "any version".
func (e Expect) String() string {
	switch e {
	case NoEntity:
		return "no entity"
	case AnyVersion:
		return "any version"
	}
	return fmt.Sprintf("version %d", int64(e))
}

// Holds reports whether an entity of version have is what is expected. A Store's Append asks it.
func (e Expect) Holds(have int64) bool { return e == AnyVersion || int64(e) == have }

// Header is what every event has beside its payload. Times are UTC, cut to whole microseconds.
type Header struct {
	Seq         int64 // the place in the log; grows, with holes
	Version     int64 // 1, 2, 3... of its entity, without holes
	Key         EntityKey
	Type        string
	Schema      int // the version of the payload's shape; 1 is the first
	Correlation string
	Causation   int64 // the seq of the event that an effect ran for; 0: none (J3)
	At          time.Time
	Meta        map[string]string
}

// Event is an event with its payload decoded.
type Event[P any] struct {
	Header
	Payload P
	Erased  bool // its Codec said ErrErased: Payload is zero
}

// Row is an event as a store keeps it. Payload is opaque to it, and comes back byte for byte.
type Row struct {
	Header
	Payload []byte
}

// Draft is an event to be. Ref.New makes one.
type Draft struct {
	def  *typeDef
	data func(EntityKey) ([]byte, error)
	meta map[string]string
}

// WithMeta returns the draft with metadata, which is stored in plain text: keys as core's metadata keys.
func (d Draft) WithMeta(meta map[string]string) Draft {
	d.meta = meta
	return d
}

// Recorded says what a Record wrote. Seqs grow, and may have the events of others between them.
type Recorded struct {
	Key     EntityKey
	Version int64 // of the entity now
	Seqs    []int64
	At      time.Time // of these events, by the store's clock
}

// Last is the newest seq; 0 if nothing was recorded.
func (r Recorded) Last() int64 {
	if len(r.Seqs) == 0 {
		return 0
	}
	return r.Seqs[len(r.Seqs)-1]
}
