package litesql

import (
	"context"
	"errors"
	"fmt"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// The result codes of SQLite that say more than "it failed", https://sqlite.org/rescode.html.
const (
	codeBusy         = 5
	codeLocked       = 6
	codeInterrupt    = 9
	codeCorrupt      = 11
	codeFull         = 13
	codeTooBig       = 18
	codeConstraint   = 19
	codeMismatch     = 20
	codeRange        = 25
	codeNotADB       = 26
	codeBusySnapshot = codeBusy | 2<<8
)

// coded is how SQLite drivers for Go show the result code.
type coded interface{ Code() int }

// code is the result code of err, the extended one if the driver has it; 0: it is not SQLite's.
func code(err error) int {
	var c coded
	if errors.As(err, &c) {
		return c.Code()
	}
	return 0
}

// Fault gives an error of a statement its meaning; the transaction was or will be rolled back. What a session
// answered itself passes as it is.
func Fault(err error) error {
	if err == nil || answered(err) {
		return err
	}
	switch code(err) & 0xff {
	case codeTooBig, codeConstraint, codeMismatch, codeRange:
		return errors.Join(&core.InvalidError{Field: "request", Reason: "was refused by the database"}, err)
	default:
		return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
}

// CommitFault gives an error of COMMIT its meaning. A COMMIT that found the database busy, the disk full or
// the caller gone was rolled back; after any other failure, the log may already hold it.
func CommitFault(err error) error {
	if err == nil {
		return nil
	}
	switch code(err) & 0xff {
	case codeBusy, codeLocked, codeInterrupt, codeFull:
		return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", core.ErrUnknown, err)
}

// TxFault gives an error in the caller's transaction its meaning. A transaction that read before it wrote, and
// was overtaken, can only begin again (Q14).
func TxFault(err error) error {
	if code(err) == codeBusySnapshot {
		return fmt.Errorf("%w: %w", core.ErrRetryTx, err)
	}
	return Fault(err)
}

// Unreadable reports whether an error says that the file is damaged or no SQLite database.
func Unreadable(err error) bool {
	c := code(err) & 0xff
	return c == codeCorrupt || c == codeNotADB
}

// Busy reports whether somebody else holds the lock.
func Busy(err error) bool {
	c := code(err) & 0xff
	return c == codeBusy || c == codeLocked
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
	var schema *core.SchemaError
	return errors.As(err, &state) || errors.As(err, &conflict) || errors.As(err, &invalid) || errors.As(err, &schema)
}
