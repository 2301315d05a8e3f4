// Package bunstore keeps jobs in SQLite or in Postgres, through bun: beside an application's tables in its *bun.DB
// (New), so that a job and the rows it is about are written by one transaction (WithTx), or in a SQLite file of its own
// (OpenSQLite).
//
// It has everything that core knows of, and passes the conformance suite. Statements go to the *sql.DB and *sql.Tx inside
// bun's types, with placeholders that the database sees: bun formats arguments into the text. So bun's query hooks don't
// see them. For an application's own queries there are JobStatus and SelectJobs.
//
// # SQLite
//
// Other processes on the same file are woken within about 20 ms.
//
// SQLite has one writer at a time, whoever it is. A transaction of the application holds everybody's writes
// while it is open: keep it short, and never wait for a job, or call the store without WithTx, inside one.
//
// The file is SQLite's while a store is open, the -wal and -shm beside it too. Deleting, replacing, truncating or
// copying them over loses jobs, and nobody notices: an open store goes on with files that no longer have a name, and
// of a log that was cut SQLite takes what is left for all there was. Nor may the process itself open and close the
// file other than through SQLite, not even to read it: the system then drops its locks. For a copy use SQLite's own
// means ("vacuum into", its backup interface) or close every store first.
//
// # Postgres
//
// The *bun.DB may be over pgdriver, pgx/stdlib or lib/pq. The tables are in a schema of their own. The store keeps
// connections of the *sql.DB for itself, with its statements prepared: three for claims, acks and heartbeats, opened by
// the first Claim, so that handlers with transactions never keep a heartbeat waiting; up to two for everything else,
// which takes further ones as it needs them, for a call each; and one that listens, see Options.Listen. A pooler in
// between must give each client a server connection of its own. Nothing is ever sent twice: database/sql repeats a
// statement whose reply was lost on another connection, which makes two jobs of one, so each statement runs where no
// other connection can take its place.
//
// Over pgdriver three things are as pgdriver is. It does not notice that a context is cancelled, only that its deadline
// passed: a call of the store returns two seconds after the cancellation, and one of WithTx when its statement ends. A
// statement may take ReadTimeout, 10 s unless configured otherwise; give Migrate of a large database more. And Commit
// of a transaction that an error has ended returns nil, though Postgres rolls it back: who goes on after an error of a
// WithTx view loses the transaction and is not told.
package bunstore

import (
	"database/sql"
	"io"
	"io/fs"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/litesql"
	"github.com/stintmq/stint/internal/pgstore"
)

// Store keeps jobs in one SQLite database, or one schema of one Postgres database. It implements core.Store, core.Inspector,
// core.Admin, core.Retainer, core.Scheduler, core.Gauger, core.Migrator and core.TxStore[bun.Tx]: it has Get, List, Counts,
// Attempts, Explain, Retry, Cancel, CancelByKey, Promote, Remove, Pause, Resume, Paused, Prune, Gauges, Migrate and Close,
// which are described there. It is safe for concurrent use, also by several processes with handles of their own. After
// Close, which may be repeated and leaves a *bun.DB that New was given open, every method returns an error that wraps
// core.ErrClosed.
type Store struct {
	engine
	db   *bun.DB
	view bun.Safe // the view of all jobs, quoted
}

// engine is what a kind of database makes of the contract.
type engine interface {
	core.Store
	core.Inspector
	core.Admin
	core.Retainer
	core.Scheduler
	core.Gauger
	core.Migrator
	io.Closer
	// inTx is the contract inside a transaction; nil: every call is refused.
	inTx(tx *sql.Tx) core.TxView
}

var (
	_ core.Store           = (*Store)(nil)
	_ core.Inspector       = (*Store)(nil)
	_ core.Admin           = (*Store)(nil)
	_ core.Retainer        = (*Store)(nil)
	_ core.Scheduler       = (*Store)(nil)
	_ core.Migrator        = (*Store)(nil)
	_ core.TxStore[bun.Tx] = (*Store)(nil)
)

func onLite(s *lite, db *bun.DB) *Store { return &Store{s, db, "stint_job_status"} }

// DB is the database as bun knows it: for tables of the application's own, and for the transactions that WithTx
// takes. A store of OpenSQLite has one writing connection, so a transaction on DB waits for the store's calls and
// they for it.
func (s *Store) DB() *bun.DB { return s.db }

// WithTx implements core.TxStore: what the view does happens when the caller commits tx, or not at all (Q14). tx may be
// nested: then it happens when all around it commit.
//
// On SQLite tx may come from any handle on the same file. One that reads before it writes can be overtaken by another
// writer: its next write then returns core.ErrRetryTx. Those of a store made by OpenSQLite take the write lock as they
// begin and never do. With an error nothing was done, and tx may go on, unless SQLite has undone all of it, as it does
// when the disk is full or broken: then Commit says so.
//
// On Postgres tx must be of the same database; other processes are told by its commit. At READ COMMITTED, the default, a
// conflict with another transaction is waited for and answered. Above it the database refuses what was changed
// meanwhile: core.ErrRetryTx. After an error other than an answer about one job, tx can only be rolled back; a nested
// one leaves what is around it as it was.
func (s *Store) WithTx(tx bun.Tx) core.TxView { return s.inTx(tx.Tx) }

// DefaultSchema is where the tables are on Postgres unless Options.Schema says otherwise.
const DefaultSchema = pgstore.DefaultSchema

// SchemaError: the schema, on Postgres, is not one that this release can use. SQLite's is *core.SchemaError.
type SchemaError = pgstore.SchemaError

// Migrations are the numbered .sql files that Migrate runs on SQLite.
func Migrations() fs.FS { return litesql.Migrations() }

// PostgresMigrations are the numbered .sql files that Migrate runs on Postgres.
func PostgresMigrations() fs.FS { return pgstore.Migrations() }
