package core

import "time"

// Dedupe keeps a second job with the same (name, Key) from being enqueued (Q12). A store has one entry per name and key:
// the job that took it, and with a TTL the end of a window.
//
// An Enqueue looks in this order, in one atomic step:
//
//  1. An explicit id that exists decides alone: Duplicate, or a ConflictError. The key is not looked at.
//  2. Replace, and the entry's job is delayed (and not due): its Payload, Metadata, Priority, MaxAttempts, MaxStalls,
//     Backoff, Keep, Timeout, Trace and RunAt become those of the request; its id, queue, key, counters, ledger and
//     EnqueuedAt stay. A request without a delay makes it waiting, with a new place. With a TTL the window then ends at
//     now + TTL. Its queue is woken. Duplicate, with the id of the entry's job.
//  3. The window is open (now is before its end) and the entry's job was neither cancelled nor removed: Duplicate, with
//     the id of that job, even if that has finished, or was pruned. With Extend the window then ends at now + TTL.
//  4. There is no window, and the entry's job is pending: Duplicate. What the request says of a TTL has no effect.
//  5. Otherwise the key is free: the job is inserted and takes it, with a window of its own if TTL is set.
//
// So a window that ends frees its key even while the first job is pending. Admin.Retry of a job whose key another job
// holds by 3 or 4 is a ConflictError; else the job takes its key again: within its own open window as it was, otherwise
// without one. Admin.Remove frees the key of its job. Admin.CancelByKey asks no window: the entry's job, if it is pending.
//
// Nothing else writes an entry: whether it is alive is found out when somebody looks. For those who write a store, Decide
// is the order from 2 on.
type Dedupe struct {
	Key     string        // 1 to 255 bytes
	TTL     time.Duration // 0: while a job with the key is pending; else: for that long, whatever becomes of it
	Extend  bool          // a dropped enqueue moves the end of the window to now + TTL; needs one
	Replace bool          // while the job is delayed, also between attempts, the newer content replaces the older, its time included
}

// KeyHolder is what a store knows of a key that was taken.
type KeyHolder struct {
	State State     // of the job that took it, a delayed one that is due being waiting; "": the job was pruned
	End   time.Time // of the window; zero: there is none
}

// Holds reports whether the key is not free: rules 3 and 4 of Dedupe.
func (h KeyHolder) Holds(now time.Time) bool {
	if h.End.IsZero() {
		return h.State.Pending()
	}
	return now.Before(h.End) && h.State != StateCancelled
}

// Dead reports whether the entry makes no difference to anybody any more, so that a janitor may delete it. An entry
// of a job that is pending does, even after its window: to Replace and to CancelByKey; and so does a window that is open,
// to Retry of its cancelled job. Who deletes the record of a cancelled job deletes its entry with it.
func (h KeyHolder) Dead(now time.Time) bool {
	return !h.State.Pending() && !now.Before(h.End)
}

// KeyDecision is what an Enqueue does about a key.
type KeyDecision int

// The decisions, in the order in which they are looked for.
const (
	KeyReplace   KeyDecision = iota + 1 // rule 2; if the job was claimed meanwhile: look again
	KeyExtend                           // rule 3: a duplicate, and the window ends at WindowEnd
	KeyDuplicate                        // rules 3 and 4
	KeyFree                             // rule 5
)

// Decide says what an Enqueue does that finds a key taken. A key that nobody took is free.
func (d Dedupe) Decide(h KeyHolder, now time.Time) KeyDecision {
	switch {
	case d.Replace && h.State == StateDelayed:
		return KeyReplace
	case !h.Holds(now):
		return KeyFree
	case d.Extend && !h.End.IsZero():
		return KeyExtend
	default:
		return KeyDuplicate
	}
}

// WindowEnd is when a window ends that begins now, in whole microseconds; zero without a TTL.
func (d Dedupe) WindowEnd(now time.Time) time.Time {
	if d.TTL == 0 {
		return time.Time{}
	}
	return Micros(now.Add(d.TTL).Add(time.Microsecond - 1)) // rounded up: a window of a nanosecond is one
}
