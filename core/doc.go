// Package core is a job queue over any store: typed jobs, the contract that a store keeps, and the worker.
//
// It imports the standard library only. A program adds one driver (memstore, bunstore, ...) and has a queue.
//
// # Guarantees
//
// At least once: a job that was enqueued and committed runs until one run is acknowledged, through crashes of
// workers, of the network and of the database. Never twice at the same time, unless a holder outlives its lease
// and a sweep took it back; then its late Extend and Ack change nothing. Every run leaves a trace. Nothing waits
// for a poll while the wake channel works; nothing is lost when it does not.
//
// # A job's life
//
//	from               by                          to                      notes
//	-                  Enqueue                     waiting | delayed       due already: RunAt = now, waiting
//	waiting            Claim                       active                  Fence+1, ClaimedAt = now
//	delayed            time, Promote               waiting                 draws a new place; Promote sets RunAt = now
//	active             Ack complete                completed               Attempts+1; wins over a pending cancel
//	active             Ack fail                    failed                  Attempts+1; wins over a pending cancel
//	active             Ack retry                   delayed | waiting       Attempts+1, RunAt = now+Delay, new place
//	active             Ack snooze                  delayed | waiting       Snoozes+1, RunAt = now+Delay, new place, no ledger entry
//	active             Ack release                 waiting                 keeps its place and RunAt, no ledger entry
//	active             Ack cancel                  cancelled               no attempt
//	active, cancel     Ack retry|snooze|release    cancelled               no attempt, no snooze; ledger: cancel
//	requested
//	active             RecoverStalled              delayed                 Stalls+1, ledger: stalled, new place when due
//	active             RecoverStalled past limit   failed                  Stalls+1, ledger: stalled with the reason
//	active, cancel     RecoverStalled              cancelled               Stalls unchanged; ledger: cancel
//	requested
//	waiting, delayed   Cancel                      cancelled               ledger: cancel, StartedAt zero
//	active             Cancel                      active                  CancelRequested until the run ends
//	failed, cancelled  Retry                       waiting                 Attempts, Stalls = 0; new place; Fence, Runs, Snoozes and ledger kept
//	not active         Remove                      -                       parked jobs stay too
//	finished           Prune                       -                       once its Keep ran out
//
// Whatever leaves active loses its token. ClaimedAt is cleared by everything that makes a job pending again;
// CancelRequested by every end and by Retry; Result, Failure and FinishedAt by Retry. A job's Result and Failure
// are those of its end; what earlier runs gave is in the ledger. Every end of a job writes exactly one ledger entry,
// run or not.
//
// # What stays
//
// Finished jobs are kept for a while, so that Await, List and the ledger can tell of them: completed ones a day, failed
// and cancelled ones a week, unless JobOptions.Keep, WithKeep or WorkerOptions.Keep say otherwise. Every worker deletes
// what is kept no longer, once a minute, in small batches, of the whole store: the jobs of others and of names that it
// does not know, too. WorkerOptions.PruneInterval below zero has a worker leave that to others. To keep everything, give
// every worker a Keep of KeepRule{Forever: true}.
//
// The finished jobs of one name and state are one group, whatever their queues, and the newest one's Keep rules it: a
// release that changes a job's Keep changes what stays of those that ended before.
//
// # Schedules
//
// A schedule is a row of the store: a key, a cadence, and what each of its slots enqueues (Job.Schedule, ApplySchedules).
// Every worker plans the schedules of its whole store, those of others and of names that it does not know, too: it sleeps
// until the next slot of any, and the first to wake makes the job. The store sees to it that a slot has one job, once ever,
// whoever else tries, and whatever becomes of the job's record. A job usually is there within 0.1 s of its slot, by the
// store's clock. Without a running worker no slot is made; Drain makes none.
//
// A cron expression counts in its zone, UTC unless another is named, never the host's. Where clocks are put forward, what
// the gap swallowed runs once, right after it; where they are put back, what comes twice runs the first time only. One that
// admits every hour, as */15 * * * *, goes on by elapsed time instead. Every is a grid of its own from the first
// Job.Schedule on, and knows no days.
//
// Slots that nobody was there for come together to one late run of the newest, unless the schedule's Misfire says that none
// or all of them run. With OverlapSkip a slot makes no job while the one before still has a pending job; of many that were
// missed then one runs. LastSlot tells where a schedule is.
//
// A change of Cron, Zone or Every starts a new cadence: its first slot is the first after now. Any other change, of the
// payload say, moves nothing, and slots that were missed are not forgotten by it.
//
// A schedule whose job can't be made, say because its zone is unknown where it is planned, is put off: tried again after
// 1 s, then ever more rarely, at last every 5 minutes. ScheduleRecord.LastError says why, and so does the log. Other
// schedules go on meanwhile, and once it is mended its Misfire decides about what it missed.
//
// # Rules
//
// Comments and tests cite rules by number (Q1 to Q28); docs/contract.md lists them.
package core
