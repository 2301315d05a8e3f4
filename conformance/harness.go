package conformance

import (
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// Harness tells the suite how to get at a driver. New is required; what else is nil must be declared in Lacks.
type Harness struct {
	// New returns a fresh, empty store; the driver closes it by t.Cleanup. It is called once per case, a few
	// hundred times in all, so it should be cheap. With a clock, that is the store's time; nil: its own.
	//
	// A store that is an io.Closer, itself or below what wraps it (core.As), is closed by some cases: Close must
	// be repeatable.
	New func(t testing.TB, clock core.Clock) core.Store

	// Open returns a second handle on the data of s, a store that New returned: what another process would
	// see. The clock is the one that New got. nil: CapOpen is lacking.
	Open func(t testing.TB, s core.Store, clock core.Clock) core.Store

	// Begin starts a transaction as a user of the driver would and returns the store's view of it. Either
	// commit or rollback is called, once. nil: CapTx is lacking.
	//
	// While a transaction is open the suite may call the store from outside: such a call may wait for the
	// transaction until its context ends, but must not see what it did.
	Begin func(t testing.TB, s core.Store) (view core.TxView, commit, rollback func() error)

	// Check looks at the driver's own invariants after every case that passed, but for those that closed the
	// store, and reports by t.Error: each job in exactly one place, no orphans. nil: nothing is checked.
	Check func(t testing.TB, s core.Store)

	// CaseTimeout is how long a case may take before it is ended as hung, for stores that are slow. 0: 15 s,
	// and more where many calls race; it only raises these.
	CaseTimeout time.Duration

	// Lacks names what this driver does not have. Empty is strict: everything is demanded. The suite looks
	// for itself as well, and fails for a capability that is absent and not declared, or declared and present.
	Lacks []Capability
}

// Capability is something that a store may have beyond the six methods.
type Capability string

// The capabilities, and how the suite finds out.
const (
	CapInspector Capability = "inspect"  // core.As[core.Inspector], and it answers
	CapAdmin     Capability = "admin"    // core.As[core.Admin], and it answers
	CapTx        Capability = "tx"       // Harness.Begin
	CapOpen      Capability = "open"     // Harness.Open
	CapWake      Capability = "wake"     // AwaitWake returns because of an Enqueue, not because of a timer (Q15)
	CapDedupe    Capability = "dedupe"   // Enqueue takes EnqueueRequest.Dedupe
	CapRetain    Capability = "retain"   // core.As[core.Retainer], and it answers
	CapGauge     Capability = "gauge"    // core.As[core.Gauger], and it answers
	CapSchedule  Capability = "schedule" // core.As[core.Scheduler], and it answers
	CapMigrate   Capability = "migrate"  // core.As[core.Migrator]; optional, a store may have no schema
	CapClose     Capability = "close"    // core.As[io.Closer]; optional, a store may have nothing to close
)

// demanded lists the capabilities that are present or declared lacking, in the order of the table.
func demanded() []Capability {
	return []Capability{
		CapInspector, CapAdmin, CapTx, CapOpen, CapWake, CapGauge, CapDedupe, CapRetain, CapSchedule,
	}
}
