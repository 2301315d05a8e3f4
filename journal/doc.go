// Package journal is an event log on a stint store: what happened to entities, in order, and who reacts to it.
//
// An entity (kind, id) has append-only events. Journal.Record appends them in the caller's own transaction, together
// with one job per effect that hears one: either all of it happens or nothing. There are three ways to react:
//
//   - an effect (On) runs as a job of the queue: at least once, with retries, leases, and all of core's tools. Effects
//     of one entity are in no order across retries, unless EffectOptions.Ordered asks for it.
//   - a projection (NewProjection, Apply, Journal.Project) writes to the journal's own database, and has each event
//     exactly once there, in order of seq: its cursor moves in the same transaction. Async ones follow the log,
//     inline ones are part of Record.
//   - a tap (Tap) is called live, at most once per worker, and fails nothing.
//
// # Order
//
// Every event has a Seq, its place in the log, and a Version, its place in its entity's history. Seqs have holes, where
// a transaction rolled back, and become visible in another order than they were drawn in. Async projections and taps
// read behind a settled horizon: never past a hole that an open transaction may still fill, so they miss no event, and
// see each entity's events in the order of their versions, and each event after those that caused it (J9).
//
// # Rules
//
// J1, J2 and so on are the rules of docs/journal.md, which conformance.RunJournal holds every store to.
package journal
