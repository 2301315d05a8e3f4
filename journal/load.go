package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stintmq/stint/core"
)

// pageSize is how many events are read at a time.
const pageSize = 500

// Load folds an entity's events into its state, in the caller's transaction. An entity without events has Version 0 and
// a zero Value. Events of types that are not declared here are an *UnknownTypeError.
func Load[S, Tx any](ctx context.Context, j *Journal[Tx], tx Tx, e *Entity[S], id string) (State[S], error) {
	s, _, err := load(ctx, j, tx, e, id)
	return s, err
}

// Read is Load in a transaction of its own, for those who only look.
func Read[S, Tx any](ctx context.Context, j *Journal[Tx], e *Entity[S], id string) (s State[S], err error) {
	err = j.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		s, err = Load(ctx, j, tx, e, id)
		return err
	})
	return s, err
}

// load also returns how many events were folded.
func load[S, Tx any](ctx context.Context, j *Journal[Tx], tx Tx, e *Entity[S], id string) (State[S], int, error) {
	if err := given("Entity", e != nil); err != nil {
		return State[S]{}, 0, err
	}
	s := State[S]{Key: e.Key(id)}
	if err := s.Key.validate(); err != nil {
		return s, 0, err
	}
	if err := restore(ctx, j, tx, e, &s); err != nil {
		return s, 0, err
	}
	folded := 0
	for {
		rows, err := j.store.ReadEntity(ctx, tx, s.Key, s.Version, pageSize)
		if err != nil {
			return s, folded, err
		}
		bytes := 0
		for _, r := range rows {
			if err := e.fold(&s, r); err != nil {
				return s, folded, err
			}
			bytes += len(r.Payload)
		}
		folded += len(rows)
		if len(rows) < pageSize && bytes < MaxPageBytes {
			return s, folded, nil
		}
	}
}

// DoOptions of Do.
type DoOptions struct {
	Attempts int // how often decide may be called in all; 0: 10
}

// Do loads an entity, asks decide what happens to it, and records that: in one transaction of its own (J2). If somebody
// else was quicker, or the database had to give the transaction up, it does all of it again after a short, random
// pause; decide may thus be called several times, and should have no effect but through tx. Its error ends Do, and is
// returned as it is or wrapped. It returns the state after what was recorded; with no drafts, as it was loaded.
func Do[S, Tx any](ctx context.Context, j *Journal[Tx], e *Entity[S], id string,
	decide func(ctx context.Context, tx Tx, s State[S]) ([]Draft, error), opts ...DoOptions,
) (State[S], error) {
	if err := errors.Join(given("Entity", e != nil), given("decide", decide != nil)); err != nil {
		return State[S]{}, err
	}
	var after State[S]
	wrote := false
	err := j.retry(ctx, opts, func(ctx context.Context, tx Tx) error {
		wrote = false
		s, folded, err := load(ctx, j, tx, e, id)
		if err != nil {
			return err
		}
		if every := e.opts.SnapshotEvery; every > 0 && folded >= every {
			if err := keep(ctx, j, tx, e, s); err != nil {
				return err
			}
		}
		drafts, err := decide(ctx, tx, s)
		after = s
		if err != nil || len(drafts) == 0 {
			return err
		}
		wrote = true
		after, err = recordOn(ctx, j, tx, e, s, drafts)
		return err
	})
	if err != nil {
		return State[S]{Key: e.Key(id)}, err
	}
	if wrote {
		j.Announce(ctx)
	}
	return after, nil
}

// Transact is Do for more than one entity: it runs do in a transaction of its own, again after a short, random pause
// when somebody else was quicker or the database had to give the transaction up, and then wakes those who wait for
// events. In do use Load, and RecordOn for one entity after the other, always in the same order, sorted say: whoever
// records in another one may have to begin again (J2).
func (j *Journal[Tx]) Transact(ctx context.Context, do func(ctx context.Context, tx Tx) error, opts ...DoOptions) error {
	if err := j.retry(ctx, opts, do); err != nil {
		return err
	}
	j.Announce(ctx)
	return nil
}

// retry runs do in transactions until one is not given up for others.
func (j *Journal[Tx]) retry(ctx context.Context, opts []DoOptions, do func(context.Context, Tx) error) error {
	if err := given("do", do != nil); err != nil {
		return err
	}
	attempts := 10
	for _, o := range opts {
		if o.Attempts > 0 {
			attempts = o.Attempts
		}
	}
	for n := 1; ; n++ {
		err := j.store.InTx(ctx, do)
		if err == nil || n >= attempts || !errors.Is(err, ErrConflict) && !errors.Is(err, core.ErrRetryTx) {
			return err
		}
		if err := pause(ctx, n); err != nil {
			return err
		}
	}
}

// RecordOn is Record on a state that Load returned in the same transaction, or RecordOn: it expects the state's version,
// and returns the state after the events. Of an entity with snapshots it stores one whenever the version passes a
// multiple of SnapshotEvery.
func RecordOn[S, Tx any](ctx context.Context, j *Journal[Tx], tx Tx, e *Entity[S], s State[S], drafts ...Draft) (State[S], error) {
	if err := given("Entity", e != nil); err != nil {
		return s, err
	}
	after, err := recordOn(ctx, j, tx, e, s, drafts)
	if err != nil {
		return s, err
	}
	if every := int64(e.opts.SnapshotEvery); every > 0 && after.Version/every > s.Version/every {
		if err := keep(ctx, j, tx, e, after); err != nil {
			return s, err
		}
	}
	return after, nil
}

// recordOn records drafts on a state and returns the state after them.
func recordOn[S, Tx any](ctx context.Context, j *Journal[Tx], tx Tx, e *Entity[S], s State[S], drafts []Draft) (State[S], error) {
	_, rows, err := j.record(ctx, tx, s.Key, Version(s.Version), drafts)
	if err != nil {
		return s, err
	}
	for _, r := range rows {
		if err := e.fold(&s, r); err != nil {
			return s, err
		}
	}
	return s, nil
}

// pause waits a random time of up to 2^n ms, at most 200 ms.
func pause(ctx context.Context, n int) error {
	timer := time.NewTimer(rand.N(min(time.Millisecond<<min(n, 8), 200*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const snapshots = "snapshot" // the space of notes

// snapshot is what the note of an entity holds.
type snapshot struct {
	Version int64           `json:"version"`
	Schema  int             `json:"schema"`
	State   json.RawMessage `json:"state"`
}

// keep stores a state for later loads.
func keep[S, Tx any](ctx context.Context, j *Journal[Tx], tx Tx, e *Entity[S], s State[S]) error {
	state, err := json.Marshal(s.Value)
	if err != nil {
		return fmt.Errorf("journal: snapshot of %s: %w", s.Key, err)
	}
	value, err := json.Marshal(snapshot{s.Version, e.opts.SnapshotVersion, state})
	if err != nil {
		return fmt.Errorf("journal: snapshot of %s: %w", s.Key, err)
	}
	return j.store.PutNote(ctx, tx, Note{snapshots, s.Key.String(), value})
}

// restore starts a state from its snapshot, if there is one that fits.
func restore[S, Tx any](ctx context.Context, j *Journal[Tx], tx Tx, e *Entity[S], s *State[S]) error {
	if e.opts.SnapshotEvery <= 0 {
		return nil
	}
	note, err := find(ctx, j.store, tx, snapshots, s.Key.String())
	if err != nil || note == nil {
		return err
	}
	var kept snapshot
	if err := json.Unmarshal(note.Value, &kept); err != nil || kept.Schema != e.opts.SnapshotVersion {
		return nil //nolint:nilerr // the events say it too
	}
	var value S
	if err := json.Unmarshal(kept.State, &value); err != nil {
		return nil //nolint:nilerr // the events say it too
	}
	s.Version, s.Value = kept.Version, value
	return nil
}

// find returns one note, or nil.
func find[Tx any](ctx context.Context, store Store[Tx], tx Tx, space, key string) (*Note, error) {
	notes, err := store.Notes(ctx, tx, space, key, "", 1)
	if err != nil || len(notes) == 0 || notes[0].Key != key {
		return nil, err
	}
	return &notes[0], nil
}
