// Package pgxstore keeps jobs in Postgres, through a *pgxpool.Pool: in a schema of its own, beside an application's
// tables, so that a job and the rows it is about are written by one transaction (WithTx).
//
// Enqueues, admin verbs and readers take connections of the application's pool. Claims, acks and heartbeats have a
// small pool of their own, three connections made as the application's are, so that handlers with transactions
// never keep a heartbeat waiting; and whoever waits for work has one connection more, which listens.
//
// Every execution mode of pgx will do. Through a pooler that shares connections between transactions use one that
// prepares nothing (pgx.QueryExecModeExec), and Options.Listen or Options.PollOnly.
package pgxstore

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/journal"
)

// DefaultSchema is where the tables are unless Options.Schema says otherwise.
const DefaultSchema = pgstore.DefaultSchema

// Options of a Store. The zero value is the default.
type Options struct {
	// Schema holds the store's tables. "": DefaultSchema. Stores of different schemas know nothing of each other.
	Schema string
	// Clock tells the time in tests; nil: the database's.
	Clock core.Clock
	// Limits move the bounds of payloads and results.
	Limits core.Limits
	// Listen is how to connect the one connection that listens for work of other processes. nil: as the pool does.
	// Where the pool goes through a pooler that shares connections between transactions, which can't listen, it is
	// for the server itself.
	Listen *pgx.ConnConfig
	// PollOnly has nobody listen: work of other processes is found by polling, their cancel requests by the next
	// heartbeat; a worker's own process still wakes it at once.
	PollOnly bool
	// QuietTx has enqueues in transactions (WithTx) tell nobody, so that their jobs are found by polling. NOTIFY holds
	// up commits: the whole cluster makes them one at a time, about 2,000 per second. For those who commit more.
	QuietTx bool
	// Logger hears when the wake channel goes down and comes back. nil: nobody does.
	Logger *slog.Logger
}

// Store keeps jobs in one schema of one Postgres database. It implements core.Store, core.Inspector, core.Admin,
// core.Retainer, core.Scheduler, core.Gauger, core.Migrator and core.TxStore[pgx.Tx]: it has Get, List, Counts, Attempts,
// Explain, Retry, Cancel, CancelByKey, Promote, Remove, Pause, Resume, Paused, Prune, Gauges, Migrate and Close, which are
// described there. It is safe for concurrent use, also by several processes. A call without a deadline is given a minute.
// Enqueue tells other processes before it returns, unless they were told less than 5 ms ago: then they are when these are
// over. Close leaves the application's pool open; after it every method returns an error that wraps core.ErrClosed.
type Store struct {
	*store
	pool *pgxpool.Pool
}

// store has the methods; an alias, so that the field is not exported.
type store = pgstore.Store

var (
	_ core.Store           = (*Store)(nil)
	_ core.Inspector       = (*Store)(nil)
	_ core.Admin           = (*Store)(nil)
	_ core.Retainer        = (*Store)(nil)
	_ core.Scheduler       = (*Store)(nil)
	_ core.Migrator        = (*Store)(nil)
	_ core.TxStore[pgx.Tx] = (*Store)(nil)
)

// SchemaError is core's: the schema is not one that this release can use.
type SchemaError = core.SchemaError

// New returns a store in the database of pool, which the caller closes after the store. The schema must have been
// migrated (Migrate; else *SchemaError).
func New(pool *pgxpool.Pool, opts Options) (*Store, error) {
	if pool == nil {
		return nil, &core.InvalidError{Field: "pool", Reason: "must not be nil"}
	}
	b, err := newBackend(pool, opts.PollOnly || opts.Listen != nil)
	if err != nil {
		return nil, err
	}
	return newOn(b, pool, opts)
}

func newOn(b pgstore.Backend, pool *pgxpool.Pool, opts Options) (*Store, error) {
	if opts.Listen != nil && opts.PollOnly {
		return nil, &core.InvalidError{Field: "Options.Listen", Reason: "is of no use with PollOnly"}
	}
	own := pgstore.Options{Schema: opts.Schema, Clock: opts.Clock, Limits: opts.Limits, Logger: opts.Logger, QuietTx: opts.QuietTx}
	if !opts.PollOnly {
		own.Listen = listen(pool, opts.Listen)
	}
	s, err := pgstore.New(b, own)
	if err != nil {
		return nil, err
	}
	return &Store{s, pool}, nil
}

// WithTx implements core.TxStore: what the view does happens when the caller commits tx, or not at all (Q14). tx must
// be of the same database. Other processes are told by its commit.
//
// At READ COMMITTED, Postgres's default, a conflict with another transaction is waited for and answered. Above it the
// database refuses what was changed meanwhile: core.ErrRetryTx, which at any level also ends a deadlock (Q14). After an
// error other than an answer about one job, the transaction can only be rolled back. How long a statement may take is for
// the context to say.
func (s *Store) WithTx(tx pgx.Tx) core.TxView {
	if tx == nil {
		return pgstore.View(s.store, nil, nil)
	}
	return pgstore.View(s.store, executor{tx}, func() any { return connOf(tx) })
}

// connOf tells a transaction from others that are open: each has a connection to itself. A savepoint of pgx is a pgx.Tx
// of its own, on the connection of the one around it.
func connOf(tx pgx.Tx) any { return tx.Conn() }

// Journal keeps a journal in this store's schema, for journal.New.
func (s *Store) Journal() journal.Store[pgx.Tx] {
	return newJournal(s, func(tx pgx.Tx) sqlexec.Executor {
		if tx == nil {
			return nil
		}
		return executor{tx}
	})
}

func newJournal(s *Store, in func(pgx.Tx) sqlexec.Executor) journal.Store[pgx.Tx] {
	return pgstore.NewLog(s.store, s, in, connOf, func(ctx context.Context, patience time.Duration, do func(context.Context, pgx.Tx) error) error {
		return inTx(ctx, s.pool, patience, do)
	})
}

// inTx is a pgstore.Begin: pgx.BeginTxFunc has one context for all, and do's is not to end with that of the commit.
func inTx(ctx context.Context, pool *pgxpool.Pool, patience time.Duration, do func(context.Context, pgx.Tx) error) error {
	step := func(f func(ctx context.Context) error) error {
		if patience == 0 {
			return f(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return f(ctx)
	}
	var tx pgx.Tx
	if err := step(func(ctx context.Context) (err error) {
		tx, err = pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		return err
	}); err != nil {
		return err
	}
	// After a commit it does nothing, and of one that fails pgx closes the connection.
	defer func() { _ = step(tx.Rollback) }()
	if err := do(ctx, tx); err != nil {
		if tx.Conn().IsClosed() {
			return pgsql.Lost(err)
		}
		return err
	}
	err := step(tx.Commit)
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return pgsql.Aborted(err)
	}
	return err
}

// Migrations are the numbered .sql files that Migrate runs.
func Migrations() fs.FS { return pgstore.Migrations() }

// Migrate makes the tables in a schema ("": DefaultSchema), or brings them up to date. It may be repeated, and run
// from several processes at once. A lock that others hold is waited for for a second at a time, so that no
// heartbeat queues behind a migration that does; after five minutes it gives up.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	if pool == nil {
		return &core.InvalidError{Field: "pool", Reason: "must not be nil"}
	}
	return pgstore.Migrate(ctx, &backend{shared: pool}, schema)
}
