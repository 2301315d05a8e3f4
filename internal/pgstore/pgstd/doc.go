// Package pgstd is the Postgres store over database/sql, whichever library speaks to the server below it.
//
// The store keeps connections of the *sql.DB for itself, with its statements prepared: three for claims, acks and
// heartbeats, opened by the first claim, so that handlers with transactions never keep a heartbeat waiting; and up to
// two for everything else, which takes further ones as it needs them, for a call each.
//
// Nothing is ever sent twice: database/sql repeats a statement whose reply was lost on another connection, which
// makes two jobs of one, so each statement runs where no other connection can take its place.
package pgstd
