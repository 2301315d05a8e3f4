// Package pgxstore keeps jobs in Postgres, through a *pgxpool.Pool: in a schema of its own, beside an application's
// tables, so that a job and the rows it is about are written by one transaction (WithTx).
//
// Enqueues, admin verbs and readers take connections of the application's pool. Claims, acks and heartbeats have a
// small pool of their own, three connections made as the application's are, so that handlers with transactions
// never keep a heartbeat waiting; and whoever waits for work has one connection more, which listens.
package pgxstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgwake"
)

// DefaultSchema is where the tables are unless Options.Schema says otherwise.
const DefaultSchema = "stint"

// ownConns is how many connections claims, acks and heartbeats share.
const ownConns = 3

// Options of a Store. The zero value is the default.
type Options struct {
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
	pool    *pgxpool.Pool // the application's
	own     *pgxpool.Pool
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
	listening context.CancelFunc // nil: nobody waited yet
	ear       sync.WaitGroup
}

var (
	_ core.Store           = (*Store)(nil)
	_ core.Inspector       = (*Store)(nil)
	_ core.Admin           = (*Store)(nil)
	_ core.Migrator        = (*Store)(nil)
	_ core.TxStore[pgx.Tx] = (*Store)(nil)
)

// New returns a store in the database of pool, which the caller closes after the store. The schema must have been
// migrated (Migrate; else *SchemaError).
func New(pool *pgxpool.Pool, opts Options) (*Store, error) {
	if pool == nil {
		return nil, &core.InvalidError{Field: "pool", Reason: "is nil"}
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
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	schema := pgsql.NewSchema(opts.Schema)
	if err := check(ctx, pool, schema); err != nil {
		return nil, err
	}
	cfg := pool.Config()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = ownConns, 0, 0
	own, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("stint: a pool for claims and heartbeats: %w", err)
	}
	sum := sha256.Sum256([]byte(opts.Schema))
	s := &Store{
		pool: pool, own: own, opts: opts, schema: schema,
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
// store's own connections. The application's pool stays open. It may be repeated.
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
	s.own.Close()
	return nil
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
	return Migrate(ctx, s.pool, s.opts.Schema)
}
