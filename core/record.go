package core

import "time"

// State says where a job stands. At every moment a job is in exactly one (Q1).
type State string

// The states. The first four are pending, the last three terminal.
const (
	StateWaiting   State = "waiting"   // runnable now
	StateDelayed   State = "delayed"   // runnable at RunAt
	StateActive    State = "active"    // leased to a worker
	StateParked    State = "parked"    // reserved for parents that wait for their children
	StateCompleted State = "completed" // a run succeeded
	StateFailed    State = "failed"    // attempts or stalls used up, or not worth another try
	StateCancelled State = "cancelled" // ended on request
)

// States lists every state in the order of a job's life.
func States() []State {
	return []State{
		StateWaiting, StateDelayed, StateActive, StateParked, StateCompleted, StateFailed, StateCancelled,
	}
}

// Terminal reports whether the job has ended.
func (s State) Terminal() bool {
	return s == StateCompleted || s == StateFailed || s == StateCancelled
}

// Pending reports whether the job has not ended.
func (s State) Pending() bool {
	return s == StateWaiting || s == StateDelayed || s == StateActive || s == StateParked
}

// Outcome is what a worker asks of a lease's end, and what the ledger says became of a run (Q6).
type Outcome string

// The outcomes.
const (
	OutcomeComplete Outcome = "complete" // -> completed; wins over a pending cancel
	OutcomeRetry    Outcome = "retry"    // -> delayed or waiting, one attempt used; with a pending cancel: cancelled
	OutcomeFail     Outcome = "fail"     // -> failed; wins over a pending cancel
	OutcomeCancel   Outcome = "cancel"   // -> cancelled, no attempt used
	OutcomeRelease  Outcome = "release"  // -> back to its place, as if never claimed; with a pending cancel: cancelled
	OutcomeSnooze   Outcome = "snooze"   // -> delayed, no attempt used; with a pending cancel: cancelled
	OutcomeStalled  Outcome = "stalled"  // ledger only: a sweep took the lease back
)

// Record is a job as a store knows it. Slices and maps are the receiver's own (Q13).
// All times are UTC, cut to whole microseconds.
type Record struct {
	ID, Name, Queue string
	Ref             int64 // the driver's own handle; opaque to the worker
	State           State
	Payload         []byte
	Metadata        map[string]string
	Priority        int // -9..9, higher first
	MaxAttempts     int // runs allowed, the first included
	MaxStalls       int // 0: the sweeper's limit; negative: none tolerated

	Attempts int   // budget used; reset by Admin.Retry
	Stalls   int   // leases that ran out and were taken back; reset by Admin.Retry
	Snoozes  int   // times snoozed
	Runs     int   // entries ever written to the ledger; never reset (Q9)
	Fence    int64 // claims ever made; grows by one with each (Q4)

	Backoff         Backoff // zero: DefaultBackoff
	Keep            Keep
	Timeout         time.Duration // per run; 0: none
	DedupeKey       string
	Trace           *Trace
	CancelRequested bool

	EnqueuedAt time.Time
	RunAt      time.Time // not claimable before
	ClaimedAt  time.Time // of the last run, while active and after an end by ack or sweep; else zero
	FinishedAt time.Time // zero unless terminal

	Result  []byte   // of a completed job; nil: none ("null" is a result)
	Failure *Failure // of a failed job
}

// Attempt is one entry of a job's ledger: what became of one run, or of a job that ended without one (Q9). A store
// without Inspector needs to remember as much of it as answers a repeated Ack (Q5).
type Attempt struct {
	Number     int // 1, 2, 3... for the life of the record
	Outcome    Outcome
	StartedAt  time.Time // the claim; zero: ended without running
	FinishedAt time.Time
	Result     []byte // nil: none
	Failure    *Failure
	Worker     string
}

// Failure says why a run or a job failed. The worker cuts each text to 64 KiB of valid UTF-8 without NUL (Q22).
type Failure struct {
	Message string
	Type    string // the Go type of the error, or a word of stint's own such as "stalled"
	Stack   string
	Panic   bool
	Timeout bool
}

// Keep says how long a finished job's record stays, per terminal state (Q28). Zero rules: what whoever prunes says, as
// WorkerOptions.Keep. Only a store that is a Retainer deletes anything; the others store it.
type Keep struct{ Completed, Failed, Cancelled KeepRule }

// KeepRule bounds a group of finished jobs of one (name, state). What is beyond Count goes, and so does what is as old
// as Age: either is enough. Zero: the default.
type KeepRule struct {
	Count   int           // the newest Count stay; 0: no bound
	Age     time.Duration // those younger than Age stay; 0: no bound
	None    bool          // none stay
	Forever bool          // all stay
}

// Trace is the producer's W3C trace context.
type Trace struct {
	Parent, State string // traceparent, tracestate
	Delayed       bool   // the job was enqueued with a delay: link, do not nest
}
