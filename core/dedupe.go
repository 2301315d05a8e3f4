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
// without one. Admin.Remove frees the key of its job.
type Dedupe struct {
	Key     string        // 1 to 255 bytes
	TTL     time.Duration // 0: while a job with the key is pending; else: for that long, whatever becomes of it
	Extend  bool          // a dropped enqueue moves the end of the window to now + TTL; needs one
	Replace bool          // while the job is delayed, the newer content replaces the older
}
