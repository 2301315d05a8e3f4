package core

import (
	"context"
	"time"
)

// Hooks are told what a worker does, to measure it or to pass it on. Each function is optional. They hear what the store
// did, never what it was asked for (Q6).
//
// Calls come after the fact, in order and one at a time, from one goroutine per Hooks value; nothing waits for them. A
// panic, runtime.Goexit or a call that never ends harms that Hooks value alone. What more than 10,000 others wait before is
// dropped, counted and logged, see Missed. When Run or Drain ends it waits for them at most as long as for handlers; then
// their context ends, and what is left is dropped.
//
// Their context has the values of Run's. Slices, maps and pointers are shared: read only.
type Hooks struct {
	// Start: a handler was started. For each there is one Finish or one LeaseLost, unless it was missed.
	Start func(context.Context, Run)
	// Finish: a run's outcome is in the store.
	Finish func(context.Context, Finished)
	// Failure is told what WorkerOptions.OnFailure is told.
	Failure func(context.Context, Failed)
	// LeaseLost: a run ended without an outcome of its own. Its job runs again, or somebody else ended it.
	LeaseLost func(context.Context, LostLease)
	// Stall: a sweep of this worker took a job back whose lease ran out, maybe another worker's (Q7).
	Stall func(context.Context, Recovered)
	// Claim: the store was asked for jobs.
	Claim func(context.Context, ClaimCall)
	// Missed: n calls of this value's functions were dropped, since it was too slow.
	Missed func(ctx context.Context, n int)
}

// Finished is what Hooks.Finish is told.
type Finished struct {
	Run     Run
	Outcome Outcome       // what the worker asked for
	State   State         // where the job stands now, says the store; a Retry may have become cancelled
	RetryIn time.Duration // State waiting or delayed: when it is due
	Err     error         // what the handler returned, or why its outcome was refused
	Failure *Failure      // nil: no attempt failed
	// InTx: Job.Complete ended the run. The store was not asked for the state: its lease is over, as the commit makes it.
	InTx bool

	Wait  time.Duration // from when the job was due to its claim, by the store's clock
	Ran   time.Duration // the handler
	Total time.Duration // Wait, Ran, and from then until the store had taken the outcome
}

// LostLease is what Hooks.LeaseLost is told.
type LostLease struct {
	Run Run
	// Outcome is what the store was told and did not take; "": the handler was still running, or had nothing to tell.
	Outcome Outcome
	// Err says why: ErrLeaseLost or ErrNotFound, ErrStopping if the worker ended before the store could be told, or why
	// the store refused every outcome.
	Err error
}

// ClaimCall is what Hooks.Claim is told: one call of Store.Claim.
type ClaimCall struct {
	Queues []QueueClaim
	Took   time.Duration
	Err    error
}

// QueueClaim is what one ClaimCall asked of a queue, and what it got.
type QueueClaim struct {
	Queue      string
	Asked, Got int
}
