package core

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

type unrecoverableError struct{ err error }

func (e *unrecoverableError) Error() string { return e.err.Error() }
func (e *unrecoverableError) Unwrap() error { return e.err }

// Unrecoverable makes err end the job as failed, whatever attempts are left. nil stays nil.
func Unrecoverable(err error) error {
	if err == nil {
		return nil
	}
	return &unrecoverableError{err}
}

type retryAfterError struct {
	delay time.Duration
	err   error
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

// RetryAfter is a failed attempt whose successor, if one is left, comes in d and not when the Backoff says.
// Negative: at once.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("stint: retry requested")
	}
	return &retryAfterError{max(d, 0), err}
}

type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("stint: snoozed for %v", e.delay) }

// Snooze puts the job aside for d without using an attempt. Negative: at once.
func Snooze(d time.Duration) error { return &snoozeError{max(d, 0)} }

// SnoozedFor reports whether err asks for the job to be put aside, as what Snooze returned does, for middleware that
// would take it for a failure otherwise.
func SnoozedFor(err error) (time.Duration, bool) {
	if s, ok := errors.AsType[*snoozeError](err); ok {
		return s.delay, true
	}
	return 0, false
}

// newFailure describes err in text that every store takes (Q22). It calls err's Error method.
func newFailure(err error) *Failure {
	f := &Failure{Type: typeName(err)}
	if c, ok := errors.AsType[*crash](err); ok {
		f.Panic = true
		f.Stack = sanitise(string(c.stack))
		f.Type = "goexit"
		if c.panic {
			f.Type = "panic"
		}
	}
	f.Message = sanitise(err.Error())
	return f
}

// typeName is the type of the first error in the chain that says something of its own.
func typeName(err error) string {
	for err != nil {
		switch name := reflect.TypeOf(err).String(); name {
		case "*fmt.wrapError", "*core.unrecoverableError", "*core.retryAfterError":
			err = errors.Unwrap(err)
		default:
			return sanitise(name)
		}
	}
	return ""
}

// sanitise makes s valid UTF-8 without NUL of at most MaxFailureBytes.
func sanitise(s string) string {
	if len(s) > MaxFailureBytes {
		s = s[:MaxFailureBytes]
		for range utf8.UTFMax - 1 { // don't leave half a rune
			if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n != 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	// The replacement is no longer than what it replaces, so the bound holds.
	return strings.ToValidUTF8(s, "?")
}
