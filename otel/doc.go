// Package stintotel traces and measures jobs with OpenTelemetry. It uses the API alone: which SDK there is, and where it
// sends what, is the program's business.
//
//	tel, err := stintotel.New(stintotel.Options{})
//	traced := tel.Store(store)                                       // producers: a span per enqueue, its context in the job
//	worker, err := core.NewWorker(traced, core.WorkerOptions{
//		Middleware: []core.Middleware{tel.Middleware()},             // a span per run
//		Hooks:      []core.Hooks{tel.Hooks()},                       // metrics of what the store really did
//	})
//	reg, err := tel.Gauges(store)                                    // depth and age of queues, in one process of many
//
// The store itself keeps its methods: traced is a core.Store and no more. Enqueues inside a transaction go through View,
// or through TxStore once and for all; a journal's effects through Journal.
//
// # Spans
//
// "enqueue NAME" around each Enqueue call (kind producer; "enqueue" for a batch of several names), and "process NAME" around
// each run of a handler (kind consumer). NAME is the job's, which says more than the queue's, and is as few. Claims and
// acks have none. Ids are in spans only, never in metrics.
//
// A run is a child of its producer's span if the job was enqueued without a delay, else the root of its own trace that
// links to it (Options.Edge). All attempts of a job have the same edge.
//
// # Metrics
//
// Those of the messaging conventions, which are in development and may still change, have system "stint", the queue as
// destination and the job's name as stint.job.name:
//
//	messaging.client.sent.messages       counter    jobs that were to be enqueued; error.type if refused, stint.duplicate
//	messaging.client.consumed.messages   counter    runs that were started
//	messaging.client.operation.duration  histogram  s, calls of the store: enqueue, claim, extend, ack
//	messaging.process.duration           histogram  s, the handler; stint.outcome: completed, retried, failed, cancelled,
//	                                                released, snoozed; error.type
//	stint.job.wait.duration              histogram  s, from when a job was due to its claim
//	stint.job.lost_leases                counter    runs whose lease was lost
//	stint.job.stalls                     counter    jobs that a sweep took back; stint.state: where they are now
//	stint.claims                         counter    claims per queue; stint.result: claimed, empty, error
//	stint.hooks.missed                   counter    events that were not measured, since the meter was too slow
//	stint.queue.depth                    gauge      per queue and stint.state: waiting, delayed, active
//	stint.queue.waiting.age              gauge      s, for how long the job that waits longest has been due
//
// What is enqueued in a transaction counts when it is sent, whatever becomes of the transaction.
package stintotel
