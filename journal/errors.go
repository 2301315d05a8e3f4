package journal

import (
	"errors"
	"fmt"
)

// What a journal answers beside core's errors. Callers use errors.Is, or errors.As for the types.
var (
	// ErrConflict: the entity's version is not the expected one; nothing was written (J1). It is a *ConflictError.
	ErrConflict = errors.New("journal: entity was changed meanwhile")

	// ErrUnknownType: a stored event can't be decoded here, since its type, or that version of its payload, is not
	// declared (J4). It is an *UnknownTypeError.
	ErrUnknownType = errors.New("journal: unknown event type")

	// ErrAhead: a reader stands behind all that was ever in the log (J9). It is an *AheadError.
	ErrAhead = errors.New("journal: cursor is ahead of the log")

	// ErrUnknownProjection: this journal has no projection of that name (J8).
	ErrUnknownProjection = errors.New("journal: unknown projection")

	// ErrUnknownEffect: this journal has no effect of that name.
	ErrUnknownEffect = errors.New("journal: unknown effect")

	// ErrErased is what a Codec returns for a payload that nobody can read any more: the event decodes to the zero
	// payload with Erased set.
	ErrErased = errors.New("journal: payload erased")

	// ErrJobExists: the queue has a job for an event that is being recorded. It is a *JobExistsError.
	ErrJobExists = errors.New("journal: effect has a job already")

	// ErrRunning: this worker runs already (J11).
	ErrRunning = errors.New("journal: worker is running already")
)

// ConflictError is an ErrConflict: who writes next must look again.
type ConflictError struct {
	Key  EntityKey
	Want Expect
	Have int64 // the version now; 0: no entity
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("journal: %s has version %d, expected %s", e.Key, e.Have, e.Want)
}

// Is makes errors.Is(err, ErrConflict) hold.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// UnknownTypeError is an ErrUnknownType.
type UnknownTypeError struct {
	Kind, Type string
	Schema     int
	Seq        int64
	Reason     string
}

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("journal: event %d: %s/%s schema %d: %s", e.Seq, e.Kind, e.Type, e.Schema, e.Reason)
}

// Is makes errors.Is(err, ErrUnknownType) hold.
func (e *UnknownTypeError) Is(target error) bool { return target == ErrUnknownType }

// AheadError is an ErrAhead: the log was restored from an older copy than the cursor, or made anew. What is recorded now
// gets seqs that the cursor has passed, and would be missed: Reset the projection.
type AheadError struct {
	After int64 // where the reader stands
	Drawn int64 // the newest seq that was drawn
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("journal: cursor at %d is ahead of the log, which ends at %d: it is of another copy of the log; reset it", e.After, e.Drawn)
}

// Is makes errors.Is(err, ErrAhead) hold.
func (e *AheadError) Is(target error) bool { return target == ErrAhead }

// JobExistsError is an ErrJobExists: the event got a seq that was drawn before, so the log was restored from an older
// copy than the queue's jobs, or its sequence was set back. Recorded all the same, the event's effect would never run:
// set the sequence beyond all that was ever drawn, or remove these jobs.
type JobExistsError struct{ JobID string }

func (e *JobExistsError) Error() string {
	return fmt.Sprintf("journal: job %s is there already: its event's seq was drawn before", e.JobID)
}

// Is makes errors.Is(err, ErrJobExists) hold.
func (e *JobExistsError) Is(target error) bool { return target == ErrJobExists }

// DecodeError: the payload of a stored event is not what its type says (J4).
type DecodeError struct {
	Kind, Type string
	Seq        int64
	Err        error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("journal: event %d: %s/%s: decode: %v", e.Seq, e.Kind, e.Type, e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// ModeError: a projection was made inline, or async, and is now declared the other way round. Both writing would apply
// events twice: give it a new Version (J7).
type ModeError struct {
	Projection string
	Inline     bool // what it was made as
}

func (e *ModeError) Error() string {
	was := map[bool]string{true: "made inline, or retired", false: "made async"}[e.Inline]
	return fmt.Sprintf("journal: projection %s was %s: it needs a new Version", e.Projection, was)
}
