package core

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Store is what a driver must implement: six methods, each batched, each atomic, all safe for concurrent use.
// Everything else is an optional interface (capability.go).
//
// Rules for every method:
//   - ctx is honoured. An error says what happened: one that wraps ErrUnavailable was surely not done, one that
//     wraps ErrUnknown may have been done; InvalidError was refused before anything was stored. An error that
//     wraps none of these is treated as ErrUnknown. A call whose ctx had ended does nothing, and its error wraps
//     ctx's and ErrUnavailable.
//   - One bad item never fails its batch: it carries its own Err.
//   - Time is the store's (Options.Clock in tests, database or machine time otherwise), never the worker's.
//     What a worker must wait for is answered as a duration.
//   - The store keeps no reference to a caller's slices or maps and hands out none of its own (Q13).
//   - Bytes come back exactly as they came.
//   - A store that is an io.Closer answers ErrUnavailable once it is closed, which may be ErrClosed, ends every
//     AwaitWake, and may be closed again.
//
// The optional interfaces keep these rules, too.
type Store interface {
	Enqueuer

	// Claim leases runnable jobs to the caller and answers them in order: priority descending, then place
	// ascending within each queue (Q2, Q4).
	//
	//   - Only jobs whose queue and name a Want names, at most Limit per Want and at most
	//     MaxClaimBytes of payload per call, but one job at least; the cap ends the call, later Wants
	//     included. Nothing from a paused queue.
	//   - Each is active under req.Token until now + req.Lease, with ClaimedAt = now and Fence + 1.
	//     The claim is durable when it returns, and no other live lease on the job exists.
	//   - Delayed jobs that are due count as waiting: they join before the pick, earliest first, and draw a
	//     place as they do; at least 1,000 per Want are considered (Q3). If more become waiting than are
	//     handed out, other waiters of the queue are woken.
	//   - At most one job with Stalls >= 1 per Want; further ones are stepped over and count as left over.
	//   - NextIn, see Claimed. Wake must be read before the pick: it stands for everything the pick saw.
	//
	// Without Wants, or with every Limit 0, nothing is claimed: Jobs are those that Token still holds, in any
	// order. A Want without Names claims nothing, and is no such question.
	Claim(ctx context.Context, req ClaimRequest) (Claimed, error)

	// Extend moves the end of each lease to now + d, never to an earlier time, and clears a sweep's suspicion
	// (Q5, Q7, Q21). A negative d is an InvalidError. A lease that ended but was not taken back is extended like
	// any other. Each lease that is not the job's current one, unknown ids included, comes back in Lost; one whose
	// row is locked elsewhere in Busy, without waiting; one whose job has a pending cancel is extended and comes back in CancelRequested, each time. An Extend
	// may be repeated freely.
	Extend(ctx context.Context, leases []Lease, d time.Duration) (Extended, error)

	// Ack ends leases; answers are positional (Q5, Q6). A lease that is not current gets ErrLeaseLost, an
	// unknown id ErrNotFound, and nothing changes. Repeating an Ack with the same (id, token, outcome)
	// answers what it answered, as long as its entry is among the newest LedgerLimit, and later that or
	// ErrLeaseLost; so may a repeated Release or Snooze, which write none. One call may carry several tokens of one job, in any order. A Retry that
	// lands as cancelled, since a cancel was pending, leaves no Failure.
	Ack(ctx context.Context, acks []Ack) ([]AckResult, error)

	// RecoverStalled takes back leases that ended (until <= now), in two steps: a lease first seen ended is
	// marked suspect, and taken by a call at least Confirm later unless it was extended or acked meanwhile;
	// with Confirm 0 it is taken at once (Q7). Taken: Stalls + 1, a ledger entry `stalled`, delayed by
	// StallDelay(Stalls). Past the limit: failed, with a Failure of type "stalled". With a pending cancel:
	// cancelled, Stalls unchanged. No attempt is used. At most Limit jobs per call are taken (0: 1,000), those that
	// ended first; all that ended are marked. An ack under a token that was taken back gets ErrLeaseLost.
	RecoverStalled(ctx context.Context, req RecoverRequest) ([]Recovered, error)

	// AwaitWake returns when work may have become runnable, or due at another time, on one of the queues since
	// the token's moment: at once if that already happened, and for the token "". Control is set when a lease
	// of this store may have been asked to cancel since then, or a schedule was put; without queues only that is
	// waited for. Spurious returns are allowed, lost ones are not (Q15). It returns ctx's error when ctx ends,
	// ErrUnavailable need not be beside it.
	//
	// A store without a wake channel returns when ctx ends, or from time to time; for "" at once, too.
	AwaitWake(ctx context.Context, queues []string, since WakeToken) (Wake, error)
}

// Enqueuer is the producer's half of a Store, and of a transaction's view of one.
type Enqueuer interface {
	// Enqueue inserts jobs; results are positional, items independent, repeats inside one call behave like
	// separate calls (Q10, Q11). Each item is checked by EnqueueRequest.Validate first. An id that exists, in
	// any state, answers Duplicate and changes nothing; one held by a job of another name is a ConflictError.
	// A store without dedupe answers an item that asks for it with an error wrapping errors.ErrUnsupported.
	// Runnable and delayed inserts wake the queue.
	Enqueue(ctx context.Context, reqs []EnqueueRequest) ([]EnqueueResult, error)
}

// MaxClaimBytes bounds the payload bytes that one Claim hands out (Q4).
const MaxClaimBytes = 16 << 20

// LedgerLimit is how many of the newest ledger entries a store keeps per job (Q9).
const LedgerLimit = 100

// Clock tells a store the time in tests. A store cuts what it says to whole microseconds.
type Clock interface{ Now() time.Time }

// WakeToken is a moment of a store's wake channel; only the store reads it. "" is before everything.
type WakeToken string

// EnqueueRequest is a job to be, as a store takes it; Job.Request makes one. Name, Queue and MaxAttempts are required.
// Zero Backoff, Keep and MaxStalls are kept as they are and mean the defaults of whoever reads them.
type EnqueueRequest struct {
	ID          string // explicit; "": derived from Key, else the store assigns "#n"
	Key         string // the id becomes name:key
	Name, Queue string
	Payload     []byte
	Metadata    map[string]string
	Priority    int
	MaxAttempts int
	MaxStalls   int
	Backoff     Backoff
	Keep        Keep
	Timeout     time.Duration
	Delay       time.Duration // from the store's now; not with RunAt
	RunAt       time.Time     // in the past: now
	Dedupe      *Dedupe
	Trace       *Trace // kept for tracing middleware; nothing here sets it
}

// EnqueueResult answers one EnqueueRequest. Err: this item alone was refused.
type EnqueueResult struct {
	ID        string
	Duplicate bool
	Err       error
}

// Want asks for up to Limit jobs of the Names on Queue.
type Want struct {
	Queue string
	Names []string
	Limit int
}

// ClaimRequest: Token is NewToken(), fresh for every call.
type ClaimRequest struct {
	Wants  []Want
	Token  string
	Lease  time.Duration // 0: ends at once
	Worker string        // for operators only
}

// Claimed answers a Claim.
type Claimed struct {
	Jobs []Record

	// NextIn is how long it is until asking again, without a wake, is worthwhile: never later than that.
	// 0: no delayed job matches the Wants. 1 ns: something runnable was left over. Paused queues don't count.
	NextIn time.Duration

	Wake WakeToken
}

// Lease names one claim of one job. Ref may be 0: the store then finds the job by its id. If they disagree, since
// the job was removed and its id came back with another, the id counts.
type Lease struct {
	ID, Token string
	Ref       int64
}

// Extended answers an Extend; a lease that is in none of the lists was extended and that is all.
type Extended struct{ Lost, Busy, CancelRequested []Lease }

// Ack asks for one lease to end.
type Ack struct {
	Lease   Lease
	Outcome Outcome
	Delay   time.Duration // Retry and Snooze; 0: waiting at once
	Result  []byte        // Complete
	Failure *Failure      // Retry and Fail
}

// AckResult answers one Ack. State is where the job stands now, whatever was asked. Err is ErrLeaseLost,
// ErrNotFound, ErrUnavailable (the row is held elsewhere: try again) or the row's own fault.
type AckResult struct {
	State State
	Err   error
}

// RecoverRequest bounds a sweep. MaxStalls holds for jobs that set none of their own; 0 or less: none tolerated.
type RecoverRequest struct {
	MaxStalls, Limit int
	Confirm          time.Duration
}

// Recovered is one job that a sweep took back and where it stands now.
type Recovered struct {
	ID, Name, Queue string
	State           State
}

// Wake answers an AwaitWake. Token is the moment of the return.
type Wake struct {
	Token   WakeToken
	Control bool // heartbeat now: something may have been asked to cancel; and schedules may have changed
}

// NewToken returns a fresh random fencing token: 128 bits as 32 hexadecimal digits.
func NewToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Micros cuts t to whole microseconds in UTC, the resolution in which every store keeps time (Q13).
func Micros(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
