package core

import (
	"context"
	"time"
)

// As finds a capability of a store: the store itself, or one of those that it wraps and names by a method
// Unwrap() Store. A wrapper that hides a capability implements the interface itself.
func As[T any](s Store) (T, bool) {
	for s != nil {
		if t, ok := s.(T); ok {
			return t, true
		}
		w, ok := s.(interface{ Unwrap() Store })
		if !ok {
			break
		}
		s = w.Unwrap()
	}
	var zero T
	return zero, false
}

// Inspector reads jobs. Without it Await and Execute return an error that wraps errors.ErrUnsupported.
type Inspector interface {
	// Get returns a job, or ErrNotFound. A delayed job that is due reads as waiting, moved or not (Q27).
	Get(ctx context.Context, id string) (Record, error)
	// Attempts returns the ledger, oldest first, at most LedgerLimit entries; empty for an unknown id (Q9).
	Attempts(ctx context.Context, id string) ([]Attempt, error)
	// List returns one page. See Query.
	List(ctx context.Context, q Query) (Page, error)
	// Counts returns a number for every state, zeros included; queue "": all queues (Q27).
	Counts(ctx context.Context, queue string) (map[State]int64, error)
	// Stranded counts pending jobs per (queue, name) whose name is not in known, ordered by queue, then name.
	Stranded(ctx context.Context, known []string) ([]Stranded, error)
	// Explain says why a job does not run now, or ErrNotFound.
	Explain(ctx context.Context, id string) (Explanation, error)
}

// Query filters and orders a List. All filters must hold.
//
// Every store serves: OrderEnqueued with any filters; OrderRun with States = {delayed} and a Queue;
// OrderFinished with terminal States, with or without Queue and Name. Beyond that a store may answer an
// UnsupportedError where it would have to scan.
type Query struct {
	Queue, Name string            // "": any
	States      []State           // nil: any; empty and not nil: none
	Metadata    map[string]string // each pair must be there
	OrderBy     OrderBy           // "": OrderEnqueued
	Ascending   bool              // default: newest first
	Cursor      string            // from the Page before, with the same query; unreadable: InvalidError
	Limit       int               // 0: 50; at most 1,000, else InvalidError
}

// OrderBy names the time that a List is ordered by. Ties are broken by the order of insertion.
type OrderBy string

// The orders.
const (
	OrderEnqueued OrderBy = "enqueued"
	OrderRun      OrderBy = "run"
	OrderFinished OrderBy = "finished"
)

// MaxPageBytes is about how many bytes of payloads and results one Page holds.
const MaxPageBytes = 16 << 20

// Page is one page of a List. It may hold fewer jobs than Limit, but one at least: it ends where payloads and
// results come to MaxPageBytes. Only Cursor "" means that there is no more.
type Page struct {
	Jobs   []Record
	Cursor string
}

// Stranded counts pending jobs that nobody known handles.
type Stranded struct {
	Queue, Name string
	Count       int64
}

// Explanation says why a job does not run now (Q27).
type Explanation struct {
	ID     string
	State  State
	Reason Reason
	DueIn  time.Duration // ReasonDelayed
	Ahead  int64         // ReasonQueued: runnable jobs of its queue that come first
	Worker string        // ReasonLeased: who has it
	// LeaseFor is how long its lease still runs; zero or less: it ended and a sweep will take it. ReasonLeased.
	LeaseFor time.Duration
}

// Reason is the one thing that a job waits for.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	ReasonFinished Reason = "finished" // it has ended
	ReasonLeased   Reason = "leased"   // it runs now
	ReasonDelayed  Reason = "delayed"  // it is not due
	ReasonPaused   Reason = "paused"   // its queue is paused
	ReasonQueued   Reason = "queued"   // it is runnable: Ahead jobs come first, then the next worker that handles its name takes it
)

// Admin changes jobs and queues on an operator's behalf. Unknown ids answer ErrNotFound, but for Remove; a job that
// merely moves between states meanwhile never does (Q8).
type Admin interface {
	// Retry makes a failed or cancelled job waiting again: budgets reset, ledger and fence kept. Else StateError.
	Retry(ctx context.Context, id string) error
	// Cancel ends a waiting or delayed job at once, and asks an active one to end: its worker is told by its next
	// heartbeat, which the wake channel brings forward. It returns the job's state now. Terminal: StateError.
	Cancel(ctx context.Context, id string) (State, error)
	// CancelByKey cancels the pending job that holds a dedupe key; false if there is none (Q12).
	CancelByKey(ctx context.Context, name, key string) (bool, error)
	// Promote makes a delayed job waiting. Any other state, due included: StateError.
	Promote(ctx context.Context, id string) error
	// Remove deletes a job and its ledger; false, and nothing happens, if it is active, parked or unknown.
	Remove(ctx context.Context, id string) (bool, error)
	// Pause durably stops every process from starting jobs of a queue. It may be repeated, and comes before or
	// after the queue's first job.
	Pause(ctx context.Context, queue string) error
	// Resume ends a pause and wakes the queue. It may be repeated.
	Resume(ctx context.Context, queue string) error
	// Paused lists the paused queues, sorted.
	Paused(ctx context.Context) ([]string, error)
}

// Migrator brings the store's schema up to date. Without it there is no schema.
type Migrator interface {
	// Migrate may be repeated, and run from several processes at once.
	Migrate(ctx context.Context) error
}

// TxView is a store seen from inside a transaction of the caller's: what it does happens by commit or not at all.
type TxView interface {
	Enqueuer
	// Complete ends a lease with OutcomeComplete. ErrLeaseLost and ErrNotFound as in Ack, but a Complete that is
	// repeated answers ErrLeaseLost, so that what else the transaction writes is not written twice. With an error
	// nothing was done, and the transaction is the caller's to commit or roll back, unless it says itself that it
	// is over (Q14). Handlers use Job.Complete.
	Complete(ctx context.Context, l Lease, result []byte) error
}

// TxStore is a store that can work inside the caller's transactions of type Tx. A store without it enqueues
// and completes in transactions of its own only.
type TxStore[Tx any] interface{ WithTx(tx Tx) TxView }
