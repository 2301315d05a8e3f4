package core

import (
	"errors"
	"fmt"
	"strings"
)

// What a store answers. Stores wrap these; callers use errors.Is.
var (
	// ErrNotFound: no job with that id (Q5, Q8).
	ErrNotFound = errors.New("stint: job not found")

	// ErrLeaseLost: the (id, token) pair is not the job's current lease; nothing was changed (Q5).
	// It is also the context cause of a run whose loss the store reported (Q21).
	ErrLeaseLost = errors.New("stint: lease lost")

	// ErrUnavailable: the call was surely not done and may be repeated as it is.
	ErrUnavailable = errors.New("stint: store unavailable, nothing was done")

	// ErrClosed: the store was closed, so nothing was done and never will be: who waits stops waiting. It is an
	// ErrUnavailable, too. Stores may answer it after Close, and never before.
	ErrClosed error = closedError{}

	// ErrUnknown: the reply was lost; the call may have been done. Ack and Extend may be repeated, Claim
	// goes on under a new token, Enqueue may be repeated only if every item carries an id.
	ErrUnknown = errors.New("stint: outcome unknown, the call may have been done")

	// ErrRetryTx: the caller's transaction met a conflict that only a new transaction can resolve (Q14).
	ErrRetryTx = errors.New("stint: transaction must be retried")
)

// closedError makes ErrClosed an ErrUnavailable without saying that the call may be repeated.
type closedError struct{}

func (closedError) Error() string { return "stint: the store is closed" }
func (closedError) Unwrap() error { return ErrUnavailable }

// Why a run's context ended: context.Cause inside a handler, the first cause wins (Q19, Q21, Q23).
var (
	// ErrCancelled: somebody asked for the job to be cancelled.
	ErrCancelled = errors.New("stint: job cancelled")

	// ErrTimeout: the run took longer than the job's Timeout.
	ErrTimeout = errors.New("stint: run timed out")

	// ErrLeaseDoubtful: the store could not be reached until the lease's own deadline passed. The run may be
	// taken over; what it returns is still offered to the store.
	ErrLeaseDoubtful = errors.New("stint: lease doubtful, store unreachable past its deadline")

	// ErrStopping: the worker is shutting down and its Grace is used up.
	ErrStopping = errors.New("stint: worker stopping")
)

// ErrTxNotCommitted is the failure of a run that called Job.Complete, returned nil and did not commit (Q14).
var ErrTxNotCommitted = errors.New("stint: handler returned nil but its completing transaction was not committed")

// StateError: the job's state does not allow the operation; nothing was changed (Q8).
type StateError struct {
	ID    string
	State State
	Op    string // "retry", "cancel", "promote"
}

func (e *StateError) Error() string {
	return fmt.Sprintf("stint: cannot %s job %q: it is %s", e.Op, e.ID, e.State)
}

// ConflictError: the id is held by a job of another name, which Name says (Q10), or the dedupe key Key of jobs
// named Name by another job (Q8).
type ConflictError struct {
	Name, Key, ID string
}

func (e *ConflictError) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("stint: key %q of %q is held by job %q", e.Key, e.Name, e.ID)
	}
	return fmt.Sprintf("stint: id %q is held by a job named %q", e.ID, e.Name)
}

// ScheduleConflictError: the key is that of a schedule of another job, or of another group; nothing was changed (Q26).
type ScheduleConflictError struct {
	Key         string
	Name, Group string // of the schedule that is there: its jobs' name, and its group; "": none
}

func (e *ScheduleConflictError) Error() string {
	if e.Group == "" {
		return fmt.Sprintf("stint: the key %q is that of a schedule of %q, of no group", e.Key, e.Name)
	}
	return fmt.Sprintf("stint: the key %q is that of a schedule of %q, of group %q", e.Key, e.Name, e.Group)
}

func heldBy(r *ScheduleRecord) error {
	return &ScheduleConflictError{Key: r.Key, Name: r.Request.Name, Group: r.Group}
}

// InvalidError: refused before anything was stored (Q13). From Ack it also marks a data fault: this item, or
// one in this batch, can never be stored as it is (Q22).
type InvalidError struct {
	Field, Reason string
}

func (e *InvalidError) Error() string {
	return "stint: invalid " + e.Field + ": " + e.Reason
}

// UnsupportedError: this store cannot do that. It unwraps to errors.ErrUnsupported.
type UnsupportedError struct {
	Op, Reason string
}

func (e *UnsupportedError) Error() string {
	msg := "stint: " + e.Op + " is not supported"
	if e.Reason != "" {
		msg += ": " + e.Reason
	}
	return msg
}

// Unwrap makes errors.Is(err, errors.ErrUnsupported) hold.
func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }

// SchemaError: a database's schema is missing, or older or newer than this release can use. Nothing was changed.
type SchemaError struct {
	Schema string // where the tables are to be; "": the database has only one place for them
	Have   int    // its version; 0: it has no stint tables
	Want   int    // the version that this release speaks
}

func (e *SchemaError) Error() string {
	where := "the database"
	if e.Schema != "" {
		where = fmt.Sprintf("the schema %q", e.Schema)
	}
	switch {
	case e.Have == 0:
		return fmt.Sprintf("stint: %s has no stint tables; run Migrate", where)
	case e.Have < e.Want:
		return fmt.Sprintf("stint: %s has version %d of stint's tables, this release needs %d; run Migrate", where, e.Have, e.Want)
	default:
		return fmt.Sprintf("stint: %s has version %d of stint's tables, newer than %d, which is all this release knows; "+
			"use a newer release", where, e.Have, e.Want)
	}
}

// during says what an error happened in. It reads as one message, with one "stint: ".
func during(err error, format string, args ...any) error {
	return &duringError{fmt.Sprintf(format, args...), err}
}

type duringError struct {
	op  string
	err error
}

func (e *duringError) Error() string {
	const prefix = "stint: "
	inner := strings.TrimPrefix(e.err.Error(), prefix)
	return prefix + e.op + ": " + strings.ReplaceAll(inner, ": "+prefix, ": ")
}

func (e *duringError) Unwrap() error { return e.err }

// JobError is what Await and Execute return for a job that did not complete.
// State "" means gone: pruned, removed or never there; then errors.Is(err, ErrNotFound) holds. Of a cancelled job
// errors.Is(err, ErrCancelled) does.
type JobError struct {
	ID      string
	State   State
	Failure *Failure
}

func (e *JobError) Error() string {
	switch {
	case e.State == "":
		return fmt.Sprintf("stint: job %q is gone: pruned, removed or never there", e.ID)
	case e.Failure != nil:
		return fmt.Sprintf("stint: job %q %s: %s", e.ID, e.State, e.Failure.Message)
	default:
		return fmt.Sprintf("stint: job %q %s", e.ID, e.State)
	}
}

// Is makes the sentinels of the states found.
func (e *JobError) Is(target error) bool {
	return target == ErrNotFound && e.State == "" || target == ErrCancelled && e.State == StateCancelled
}

// ShutdownError names the leases that Worker.Run could not settle before it had to return (Q23). Their jobs
// run again once a sweep has taken the leases back.
type ShutdownError struct {
	Jobs []Lease
	// Claims is how many claims lost their reply and could not be looked after: what they may hold is not known.
	Claims int
}

func (e *ShutdownError) Error() string {
	const shown = 5
	ids := make([]string, 0, shown)
	for i, l := range e.Jobs {
		if i == shown {
			break
		}
		ids = append(ids, l.ID)
	}
	more := ""
	if n := len(e.Jobs) - len(ids); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	msg := fmt.Sprintf("stint: worker stopped with %d job(s) not settled: %s%s", len(e.Jobs), strings.Join(ids, ", "), more)
	if e.Claims > 0 {
		msg += fmt.Sprintf("; %d claim(s) with a lost reply may hold more", e.Claims)
	}
	return msg
}
