// Package pqstore keeps jobs in Postgres, through database/sql and lib/pq: in a schema of its own, beside an
// application's tables, so that a job and the rows it is about are written by one transaction (WithTx).
//
// The store keeps connections of the *sql.DB for itself, with its statements prepared: three for claims, acks and
// heartbeats, opened by the first Claim, so that handlers with transactions never keep a heartbeat waiting; and up to
// two for everything else, which takes further ones as it needs them, for a call each. Whoever waits for work and has
// a DSN has one connection more, which listens. A pooler in between must give each client a server connection of
// its own, or know prepared statements.
//
// Nothing is ever sent twice: database/sql repeats a statement whose reply was lost on another connection, which
// makes two jobs of one, so each statement runs where no other connection can take its place.
package pqstore

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/lib/pq"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/pgstore/pgstd"
	"github.com/stintmq/stint/internal/pqlisten"
	"github.com/stintmq/stint/journal"
)

// DefaultSchema is where the tables are unless Options.Schema says otherwise.
const DefaultSchema = pgstore.DefaultSchema

// Options of a Store. The zero value is the default.
type Options struct {
	// DSN is lib/pq's connection string of the same database, for the connection that listens for work of other
	// processes. It may name another host than the *sql.DB: a pooler that shares connections between
	// transactions can't listen. It is never logged. "": nobody listens, and work of other processes is found by
	// polling; a worker's own process still wakes it at once.
	DSN string `json:"-"`
	// Schema holds the store's tables. "": DefaultSchema. Stores of different schemas know nothing of each other.
	Schema string
	// Clock tells the time in tests; nil: the database's.
	Clock core.Clock
	// Limits move the bounds of payloads and results.
	Limits core.Limits
	// QuietTx has enqueues in transactions (WithTx) tell nobody, so that their jobs are found by polling. NOTIFY holds
	// up commits: the whole cluster makes them one at a time, about 2,000 per second. For those who commit more.
	QuietTx bool
	// Logger hears when the wake channel goes down and comes back. nil: nobody does.
	Logger *slog.Logger
}

// Store keeps jobs in one schema of one Postgres database. It implements core.Store, core.Inspector, core.Admin,
// core.Retainer, core.Scheduler, core.Gauger, core.Migrator and core.TxStore[*sql.Tx]: it has Get, List, Counts, Attempts,
// Explain, Retry, Cancel, CancelByKey, Promote, Remove, Pause, Resume, Paused, Prune, Gauges, Migrate and Close, which are
// described there. It is safe for concurrent use, also by several processes. A call without a deadline is given a minute;
// one whose server says nothing ends two seconds after its deadline at the latest. Enqueue tells other processes before it
// returns, unless they were told less than 5 ms ago: then they are when these are over. Close leaves the application's
// *sql.DB open; after it every method returns an error that wraps core.ErrClosed.
type Store struct {
	*store
	db *sql.DB
}

// store has the methods; an alias, so that the field is not exported.
type store = pgstd.Store

var (
	_ core.Store            = (*Store)(nil)
	_ core.Inspector        = (*Store)(nil)
	_ core.Admin            = (*Store)(nil)
	_ core.Retainer         = (*Store)(nil)
	_ core.Scheduler        = (*Store)(nil)
	_ core.Migrator         = (*Store)(nil)
	_ core.TxStore[*sql.Tx] = (*Store)(nil)
)

// SchemaError is core's: the schema is not one that this release can use.
type SchemaError = core.SchemaError

// New returns a store in the database of db, a *sql.DB of lib/pq's driver, which the caller closes after the store. Its
// SetMaxOpenConns, if any, must be more than 5. The schema must have been migrated (Migrate; else *SchemaError).
func New(db *sql.DB, opts Options) (*Store, error) {
	if db == nil {
		return nil, &core.InvalidError{Field: "db", Reason: "must not be nil"}
	}
	b, err := pgstd.NewBackend(db)
	if err != nil {
		return nil, err
	}
	return newOn(b, db, opts)
}

func newOn(b pgstore.Backend, db *sql.DB, opts Options) (*Store, error) {
	var listen pgstore.Listen // nil: nobody does
	if opts.DSN != "" {
		var err error
		if listen, err = pqlisten.To(opts.DSN); err != nil {
			return nil, err
		}
	}
	s, err := pgstd.New(b, db, pgstore.Options{
		Schema: opts.Schema, Clock: opts.Clock, Limits: opts.Limits, Logger: opts.Logger, Listen: listen,
		QuietTx: opts.QuietTx,
	})
	if err != nil {
		return nil, err
	}
	return &Store{s, db}, nil
}

// WithTx implements core.TxStore: what the view does happens when the caller commits tx, or not at all (Q14). tx must
// be of the same database. Other processes are told by its commit.
//
// At READ COMMITTED, Postgres's default, a conflict with another transaction is waited for and answered. Above it the
// database refuses what was changed meanwhile: core.ErrRetryTx, which at any level also ends a deadlock (Q14). After an
// error other than an answer about one job, the transaction can only be rolled back. How long a statement may take is for
// the context to say.
func (s *Store) WithTx(tx *sql.Tx) core.TxView { return pgstd.View(s.store, tx) }

// Journal keeps a journal in this store's schema, for journal.New.
func (s *Store) Journal() journal.Store[*sql.Tx] {
	return pgstd.Log(s.store, s, func(tx *sql.Tx) *sql.Tx { return tx }, func(ctx context.Context, patience time.Duration, do func(context.Context, *sql.Tx) error) error {
		err := pgstd.InTx(ctx, patience, func(ctx context.Context) (*sql.Tx, error) {
			return s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		}, do, (*sql.Tx).Commit)
		if errors.Is(err, pq.ErrInFailedTransaction) {
			return pgsql.Aborted(err)
		}
		return err
	})
}

// Migrations are the numbered .sql files that Migrate runs.
func Migrations() fs.FS { return pgstore.Migrations() }

// Migrate makes the tables in a schema ("": DefaultSchema), or brings them up to date. It may be repeated, and run
// from several processes at once. A lock that others hold is waited for for a second at a time, so that no
// heartbeat queues behind a migration that does; after five minutes it gives up.
func Migrate(ctx context.Context, db *sql.DB, schema string) error {
	if db == nil {
		return &core.InvalidError{Field: "db", Reason: "must not be nil"}
	}
	return pgstd.Migrate(ctx, db, schema)
}
