// Package pgstore is the Postgres store but for its driver: calls and their errors, retries, who is told and woken,
// migrations and the views of transactions, once for every driver.
//
// A driver lends a Backend, which runs SQL on connections. Everything that a store can do is written here, so that all
// drivers can do it.
package pgstore

import (
	"context"

	"github.com/stintmq/stint/internal/pgwake"
	"github.com/stintmq/stint/internal/sqlexec"
)

// Conns says whose connections work runs on.
type Conns int

const (
	// Own connections are the store's: claims, acks and heartbeats wait for nobody's transactions there.
	Own Conns = iota
	// Shared connections are the application's: enqueues, admin verbs and readers.
	Shared
)

// OwnConns is how many connections claims, acks and heartbeats share.
const OwnConns = 3

// Backend runs SQL. It is safe for concurrent use, knows no schema, and sends nothing twice.
//
// An error of work is returned as it is, or wrapped. When ctx ends nothing more is sent, and Do and Atomic return
// soon after, whatever the server does; work may then still be running, with a connection that nobody else gets.
type Backend interface {
	// Do runs work on one connection on which every statement is a transaction of its own.
	Do(ctx context.Context, on Conns, work func(ctx context.Context, x sqlexec.Executor) error) error
	// Atomic runs work in one transaction at READ COMMITTED, committed when work returns nil and rolled back otherwise.
	Atomic(ctx context.Context, on Conns, work func(ctx context.Context, tx Tx) error) error
	// Settle opens what connections of Own have to be there before handlers run. It is called before each claim.
	Settle(ctx context.Context) error
	// Unsent reports whether an error of Do says for sure that no statement was sent.
	Unsent(err error) bool
	// Close closes Own. Nothing runs any more, and nothing is run afterwards.
	Close() error
}

// Tx is a transaction of a Backend.
type Tx interface {
	sqlexec.Executor
	// Script runs several statements without arguments.
	Script(ctx context.Context, sql string) error
}

// Listen opens a connection that listens to a channel.
type Listen func(ctx context.Context, channel string) (pgwake.Listener, error)
