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
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgwake"
	"github.com/stintmq/stint/internal/stdsql"
)

// DefaultSchema is where the tables are unless Options.Schema says otherwise.
const DefaultSchema = "stint"

// How many connections the store keeps: for claims, acks and heartbeats, and for the rest.
const (
	ownConns   = 3
	frontConns = 2
)

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
	// Logger hears when the wake channel goes down and comes back. nil: nobody does.
	Logger *slog.Logger
}

// Store keeps jobs in one schema of one Postgres database. It is safe for concurrent use, also by several processes.
// After Close every method returns an error that wraps core.ErrUnavailable.
type Store struct {
	db      *sql.DB // the application's
	own     *seats  // claims, acks, heartbeats
	front   *seats
	settled atomic.Bool  // own is open
	kept    *stdsql.Kept // statements of the application's transactions
	secrets *secrets     // of the DSN
	opts    Options
	schema  *pgsql.Schema
	lanes   pgsql.Lanes
	channel string // of NOTIFY
	origin  string // this store's name in notifications
	marks   pgsql.Marks
	hub     *pgwake.Hub
	teller  *pgwake.Teller

	mu        sync.Mutex
	closed    bool
	calls     sync.WaitGroup
	listening context.CancelFunc // nil: nobody waited yet, or there is no DSN
	ear       sync.WaitGroup
}

var (
	_ core.Store            = (*Store)(nil)
	_ core.Inspector        = (*Store)(nil)
	_ core.Admin            = (*Store)(nil)
	_ core.Migrator         = (*Store)(nil)
	_ core.TxStore[*sql.Tx] = (*Store)(nil)
)

// New returns a store in the database of db, a *sql.DB of lib/pq's driver, which the caller closes after the store. Its
// SetMaxOpenConns, if any, must be more than 5. The schema must have been migrated (Migrate; else *SchemaError).
func New(db *sql.DB, opts Options) (*Store, error) {
	if db == nil {
		return nil, &core.InvalidError{Field: "db", Reason: "is nil"}
	}
	if most := db.Stats().MaxOpenConnections; most > 0 && most <= ownConns+frontConns {
		return nil, &core.InvalidError{Field: "db", Reason: fmt.Sprintf("must allow more than %d connections (SetMaxOpenConns): "+
			"the store keeps that many for itself", ownConns+frontConns)}
	}
	if err := opts.Limits.Validate(); err != nil {
		return nil, err
	}
	if opts.Schema == "" {
		opts.Schema = DefaultSchema
	}
	if err := pgsql.ValidateSchema(opts.Schema); err != nil {
		return nil, err
	}
	secrets, err := secretsOf(opts.DSN)
	if err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	schema := pgsql.NewSchema(opts.Schema)
	if err := check(ctx, db, schema); err != nil {
		return nil, err
	}
	kept, err := stdsql.Keep(ctx, db, schema.InTransactions())
	if err != nil {
		return nil, pgsql.Fault(ctx, err, false)
	}
	sum := sha256.Sum256([]byte(opts.Schema))
	s := &Store{
		db: db, own: newSeats(db, ownConns, false), front: newSeats(db, frontConns, true),
		kept: kept, secrets: secrets, opts: opts, schema: schema,
		channel: "stint_" + hex.EncodeToString(sum[:8]), origin: core.NewToken()[:16],
	}
	s.hub = pgwake.NewHub(s.origin, errClosed)
	s.teller = pgwake.NewTeller(s.notify, func(err error) {
		s.opts.Logger.Warn("stint: other processes were not told of work, and will find it by polling", "error", err)
	})
	return s, nil
}

// SchemaError: the schema is not one that this release can use.
type SchemaError = pgsql.SchemaError

// Close ends waiting calls, waits for those that work, tells others what they were not told yet, and closes the
// store's own connections. db stays open. It may be repeated.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.listening != nil {
		s.listening()
	}
	s.mu.Unlock()
	s.hub.Close()
	s.calls.Wait()
	s.ear.Wait()
	s.teller.Close()
	s.own.close()
	s.front.close()
	return s.kept.Close()
}

var errClosed = fmt.Errorf("%w: the store is closed", core.ErrUnavailable)

// enter counts a call in; whoever entered calls s.calls.Done.
func (s *Store) enter(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	s.calls.Add(1)
	return nil
}

// tell says which queues have news: here at once, elsewhere as soon as the gap between notifications allows.
func (s *Store) tell(sn *session) {
	news := sn.Woken()
	s.marks.Lower(news...)
	s.hub.Ring(news...)
	if !sn.Told() {
		s.teller.Tell(news...)
	}
}

// Migrations are the numbered .sql files that Migrate runs.
func Migrations() fs.FS { return pgsql.Migrations() }

// Migrate implements core.Migrator.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return Migrate(ctx, s.db, s.opts.Schema)
}
