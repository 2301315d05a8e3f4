package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stintmq/stint/core"
)

// Policy says what becomes of a poison event: one that a projection can't apply, alone, ProjectionOptions.Tries times in
// a row (J7).
type Policy string

// The policies for poison events.
const (
	Stall      Policy = "stall" // tried again, with longer and longer pauses up to 5 min; the projection waits. The default
	Skip       Policy = "skip"  // recorded and passed over
	ParkEntity Policy = "park"  // it and all later events of its entity are put aside in order, for Replay or Discard
)

// ProjectionOptions of NewProjection.
type ProjectionOptions struct {
	// Version is part of the cursor's name: a new one is applied from the beginning of the log, beside the old one,
	// which other processes may go on with. It should write to tables of its own. The old cursor and its tables stay
	// until they are removed by hand: docs/journal.md, Retiring a projection. 0: 1.
	Version int
	// Inline applies events in the transaction that records them, from the declaration's first Record on: no lag, and an
	// error fails the Record. Events from before are not applied; there is no Reset.
	Inline  bool
	OnError Policy        // "": Stall
	Tries   int           // Skip and ParkEntity: 0: 3
	Batch   int           // events scanned per transaction, Within bounds it too; 0: 500; at most 1,000
	Within  time.Duration // no further event is begun in a transaction afterwards; 0: 200 ms
	// Timeout ends the context of a batch, which the functions of Apply get, so that a server that says nothing does not
	// hold the projection for ever. A batch that takes longer is rolled back and tried again, with the worker's pauses: that
	// is said of no event, so none is passed over for it. What does not heed its context is waited for. 0: 5 min.
	Timeout time.Duration
}

// Projection writes what it makes of events into the journal's own database, each event exactly once: the cursor moves
// in the same transaction (J7). Make one with NewProjection, give it functions with Apply, and declare it with
// Journal.Project.
type Projection[Tx any] struct {
	name     string
	opts     ProjectionOptions
	handlers []handler[Tx]
}

type handler[Tx any] struct {
	def   *typeDef
	apply func(ctx context.Context, tx Tx, row Row) error
}

// NewProjection names a projection: 1 to 128 bytes, without @ and colon.
func NewProjection[Tx any](name string, opts ...ProjectionOptions) *Projection[Tx] {
	p := &Projection[Tx]{name: name}
	for _, o := range opts {
		p.opts = o
	}
	if p.opts.Version == 0 {
		p.opts.Version = 1
	}
	if p.opts.OnError == "" {
		p.opts.OnError = Stall
	}
	if p.opts.Tries == 0 {
		p.opts.Tries = 3
	}
	if p.opts.Batch == 0 {
		p.opts.Batch = 500
	}
	if p.opts.Within == 0 {
		p.opts.Within = 200 * time.Millisecond
	}
	if p.opts.Timeout == 0 {
		p.opts.Timeout = 5 * time.Minute
	}
	return p
}

// Apply has a projection hear a type of event: once per projection and type. All that f does in tx happens with the
// cursor's move, or not at all, and f may be called again for an event whose transaction did not commit. It should do
// nothing else, and not for long: meanwhile nobody else moves the projection. It panics where p or f is nil.
func Apply[P, Tx any](p *Projection[Tx], r Ref[P], f func(ctx context.Context, tx Tx, e Event[P]) error) {
	if err := errors.Join(given("Projection", p != nil), given("f", f != nil)); err != nil {
		panic(err)
	}
	p.handlers = append(p.handlers, handler[Tx]{r.def, func(ctx context.Context, tx Tx, row Row) error {
		ev, err := r.decode(row)
		if err != nil {
			return err
		}
		return f(ctx, tx, ev)
	}})
}

// cursor is the name of the projection's cursor.
func (p *Projection[Tx]) cursor() string { return p.name + "@" + strconv.Itoa(p.opts.Version) }

// handler returns who applies an event; nil: it does not concern the projection.
func (p *Projection[Tx]) handler(h *Header) func(context.Context, Tx, Row) error {
	for i := range p.handlers {
		if p.handlers[i].def.matches(h) {
			return p.handlers[i].apply
		}
	}
	return nil
}

func (p *Projection[Tx]) validate() error {
	if err := core.ValidateName("Projection", p.name); err != nil {
		return err
	}
	switch {
	case slices.Contains([]byte(p.name), '@'):
		return &core.InvalidError{Field: "Projection", Reason: "must not contain @"}
	case p.opts.Version < 1:
		return &core.InvalidError{Field: "Version", Reason: "must be at least 1"}
	case p.opts.OnError != Stall && p.opts.OnError != Skip && p.opts.OnError != ParkEntity:
		return &core.InvalidError{Field: "OnError", Reason: fmt.Sprintf("unknown policy %q: want %q, %q or %q", string(p.opts.OnError), Stall, Skip, ParkEntity)}
	case p.opts.Tries < 1 || p.opts.Batch < 1 || p.opts.Batch > 1000 || p.opts.Within < 0 || p.opts.Timeout < 0:
		return &core.InvalidError{Field: "Projection", Reason: "Tries, Batch (at most 1000), Within and Timeout must be positive"}
	case len(p.handlers) == 0:
		return &core.InvalidError{Field: "Projection", Reason: "hears no events: use Apply"}
	}
	for i, h := range p.handlers {
		if h.def == nil || slices.ContainsFunc(p.handlers[:i], func(o handler[Tx]) bool { return o.def == h.def }) {
			return &core.InvalidError{Field: "Projection", Reason: "hears a type twice, or one that is not declared"}
		}
	}
	return nil
}

// Project declares a projection. Two versions of one name may stand side by side.
func (j *Journal[Tx]) Project(p *Projection[Tx]) error {
	if p == nil {
		return &core.InvalidError{Field: "Projection", Reason: "must not be nil"}
	}
	if err := p.validate(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, o := range j.projections {
		if o.cursor() == p.cursor() {
			return &core.InvalidError{Field: "Projection", Reason: fmt.Sprintf("%q is declared twice", p.cursor())}
		}
	}
	j.projections = append(j.projections, p)
	return nil
}

// declared returns the projections that are applied here: inline, or by workers.
func (j *Journal[Tx]) declared(inline bool) []*Projection[Tx] {
	j.mu.RLock()
	defer j.mu.RUnlock()
	var out []*Projection[Tx]
	for _, p := range j.projections {
		if p.opts.Inline == inline {
			out = append(out, p)
		}
	}
	return out
}

// projection finds the newest version of a name.
func (j *Journal[Tx]) projection(name string) (*Projection[Tx], error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	var found *Projection[Tx]
	for _, p := range j.projections {
		if (p.name == name || p.cursor() == name) && (found == nil || p.opts.Version > found.opts.Version) {
			found = p
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknownProjection, name)
	}
	return found, nil
}

// inline applies recorded events to inline projections, in the transaction that records them.
func (j *Journal[Tx]) inline(ctx context.Context, tx Tx, rows []Row) error {
	for _, p := range j.declared(true) {
		for i := range rows {
			apply := p.handler(&rows[i].Header)
			if apply == nil {
				continue
			}
			if err := j.claimInline(ctx, tx, p); err != nil {
				return err
			}
			if err := protect(func() error { return apply(ctx, tx, rows[i]) }); err != nil {
				return fmt.Errorf("journal: projection %s: event %d: %w", p.cursor(), rows[i].Seq, err)
			}
		}
	}
	return nil
}

// inlineSpace has a note for each inline projection whose cursor says so: a note is read without a lock.
const inlineSpace = "inline"

// asyncSpace has one for each async projection that was reset.
const asyncSpace = "async"

// claimInline sees to it that no worker applies an inline projection too: its cursor says so. The row is made once, by
// the first transaction that commits, and only who does not see that yet locks it. Nothing outside of the transaction is
// asked: it may hold the only connection.
func (j *Journal[Tx]) claimInline(ctx context.Context, tx Tx, p *Projection[Tx]) error {
	name := p.cursor()
	j.mu.RLock()
	made := j.made[name]
	j.mu.RUnlock()
	if made {
		return nil
	}
	note, err := find(ctx, j.store, tx, inlineSpace, name)
	if err != nil {
		return err
	}
	if note != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		if !j.claimed[name] {
			j.made[name] = true // by another process, which committed
		}
		return nil
	}
	c, _, err := j.store.LockCursor(ctx, tx, name, true)
	switch {
	case err != nil:
		return err
	case c.Inline: // somebody was quicker
		return nil
	case c.Seq > 0 || c.FailedSeq > 0:
		return &ModeError{name, false}
	}
	if note, err = find(ctx, j.store, tx, asyncSpace, name); err != nil {
		return err
	}
	if note != nil {
		return &ModeError{name, false}
	}
	j.mu.Lock()
	j.claimed[name] = true
	j.mu.Unlock()
	c.Inline = true
	if err := j.store.SaveCursor(ctx, tx, c); err != nil {
		return err
	}
	return j.store.PutNote(ctx, tx, Note{inlineSpace, name, []byte("1")})
}

// confirmInline looks whether the claims of this process were committed: until it knows, each Record looks again. Not to be
// called within a transaction.
func (j *Journal[Tx]) confirmInline(ctx context.Context) {
	j.mu.RLock()
	unsure := len(j.claimed) > 0
	j.mu.RUnlock()
	if !unsure {
		return
	}
	cursors, err := j.store.Cursors(ctx)
	if err != nil {
		return // the next one may know
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range cursors {
		if c.Inline && j.claimed[c.Name] {
			j.made[c.Name] = true
			delete(j.claimed, c.Name)
		}
	}
}
