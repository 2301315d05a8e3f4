package pgsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// SQLState is the code that Postgres gave an error, https://www.postgresql.org/docs/current/errcodes-appendix.html; ""
// if the error is not Postgres's.
func SQLState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	var fields interface{ Field(kind byte) string } // pgdriver's
	if errors.As(err, &fields) {
		return fields.Field('C')
	}
	return ""
}

// The codes that need a name.
const (
	stateSerialization = "40001"
	stateDeadlock      = "40P01"
	stateUnknownEnd    = "40003"
	stateReadOnly      = "25006"
	stateAborted       = "25P02"
	stateLockTimeout   = "55P03"
)

// Again reports whether an error says that a transaction of ours was rolled back because of others, so that it can
// be done again as it is.
func Again(err error) bool {
	code := SQLState(err)
	return code == stateSerialization || code == stateDeadlock
}

// Spent reports whether an error says that its connection is of no use any more: to a server that shuts down, or
// that became a standby.
func Spent(err error) bool {
	switch code := SQLState(err); {
	case code == stateReadOnly, class(code) == "08":
		return true
	default:
		return len(code) == 5 && code[:4] == "57P0"
	}
}

func class(code string) string {
	if len(code) != 5 {
		return ""
	}
	return code[:2]
}

// InAborted reports whether an error says that its transaction was aborted before.
func InAborted(err error) bool { return SQLState(err) == stateAborted }

// Aborted is the error of a commit that the database, or the library, made a rollback of: an earlier error had aborted
// the transaction, and nobody returned it.
func Aborted(err error) error {
	return errors.Join(&core.InvalidError{Field: "tx", Reason: "was aborted by an earlier error that was not returned, and rolled back"}, err)
}

// Fault gives an error of a statement its meaning. sent says that the statement may have been carried out if
// nothing else is known: it was a write, of its own transaction or a COMMIT. What a session answered itself
// passes as it is.
func Fault(ctx context.Context, err error, sent bool) error {
	if err == nil || answered(err) {
		return err
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	code := SQLState(err)
	switch class(code) {
	case "22", "23", "54":
		return errors.Join(&core.InvalidError{Field: "request", Reason: "was refused by the database"}, err)
	case "":
		// Not the server's word: the connection broke, or ctx ended.
	default:
		// What the server refused it did not do, but for the moments in which it goes down.
		sent = sent && (code == stateUnknownEnd || code != stateReadOnly && Spent(err))
	}
	if sent {
		return fmt.Errorf("%w: %w", core.ErrUnknown, err)
	}
	return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
}

// TxFault gives an error in the caller's transaction its meaning: that is the caller's to roll back (Q14).
func TxFault(ctx context.Context, err error) error {
	switch {
	case Again(err):
		return fmt.Errorf("%w: %w", core.ErrRetryTx, err)
	case InAborted(err):
		return errors.Join(&core.InvalidError{Field: "tx", Reason: "was aborted by an earlier error, and can only be rolled back"}, err)
	case errors.Is(err, sql.ErrTxDone):
		return errors.Join(&core.InvalidError{Field: "tx", Reason: "was committed or rolled back before"}, err)
	}
	return Fault(ctx, err, false)
}

// answered reports whether an error is an answer of the contract and not a failure.
func answered(err error) bool {
	for _, answer := range []error{core.ErrNotFound, core.ErrLeaseLost, core.ErrUnavailable, core.ErrUnknown,
		core.ErrRetryTx, errors.ErrUnsupported, journal.ErrConflict, journal.ErrAhead} {
		if errors.Is(err, answer) {
			return true
		}
	}
	var state *core.StateError
	var conflict *core.ConflictError
	var invalid *core.InvalidError
	var schema *SchemaError
	return errors.As(err, &state) || errors.As(err, &conflict) || errors.As(err, &invalid) || errors.As(err, &schema)
}
