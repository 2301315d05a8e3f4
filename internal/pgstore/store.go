package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgwake"
)

// DefaultSchema is where the tables are unless Options.Schema says otherwise.
const DefaultSchema = "stint"

// SchemaError: the schema is not one that this release can use.
type SchemaError = pgsql.SchemaError

// Options of a Store; see the drivers'.
type Options struct {
	Schema string
	Clock  core.Clock
	Limits core.Limits
	Logger *slog.Logger
	// Listen hears other processes. nil: nobody listens, and their work is found by polling.
	Listen Listen
	// QuietTx has enqueues in transactions notify nobody.
	QuietTx bool
	// Deaf: statements in transactions may go on when their context has ended, as those of some libraries do. Whoever
	// waits for one then leaves it behind.
	Deaf bool
}

// withDefaults refuses what makes no sense.
func (o Options) withDefaults() (Options, error) {
	if o.Schema == "" {
		o.Schema = DefaultSchema
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := o.Limits.Validate(); err != nil {
		return o, err
	}
	return o, pgsql.ValidateSchema(o.Schema)
}

// Store implements core.Store, core.Inspector, core.Admin, core.Retainer, core.Scheduler, core.Gauger and core.Migrator. It is safe for
// concurrent use. After Close every method returns an error that wraps core.ErrClosed.
type Store struct {
	backend Backend
	opts    Options
	schema  *pgsql.Schema
	lanes   pgsql.Lanes
	channel string // of NOTIFY
	origin  string // this store's name in notifications
	marks   pgsql.Marks
	hub     *pgwake.Hub
	teller  *pgwake.Teller

	patience time.Duration // callTimeout, but in tests

	settled  pgsql.Settled // of the journal
	keepsLog atomic.Bool   // the schema can keep one

	mu        sync.Mutex
	closed    bool
	calls     sync.WaitGroup
	listening context.CancelFunc // nil: nobody waited yet, or nobody listens
	ear       sync.WaitGroup
	deaf      sync.Once // nobody listens, and somebody was told
	prunedTo  pgsql.Pruned
	sweptTo   keyplan.Key // the dedupe key up to which Prune has looked
}

const startTimeout = 30 * time.Second

// New returns a store in a schema that was migrated (else *SchemaError). It takes b over: Close closes it, and so does
// New when there is an error.
func New(b Backend, opts Options) (*Store, error) {
	s, err := open(b, opts)
	if err != nil {
		_ = b.Close() // err says more
		return nil, err
	}
	return s, nil
}

// Channel is what the stores of a schema notify and listen to.
func Channel(schema string) string {
	sum := sha256.Sum256([]byte(schema))
	return "stint_" + hex.EncodeToString(sum[:8])
}

func open(b Backend, opts Options) (*Store, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{
		backend: b, opts: opts, schema: pgsql.NewSchema(opts.Schema),
		channel: Channel(opts.Schema), origin: core.NewToken()[:16], patience: callTimeout,
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	s.hub = pgwake.NewHub(s.origin, core.ErrClosed)
	s.teller = pgwake.NewTeller(s.notify, func(err error) {
		s.opts.Logger.Warn("stint: other processes were not told of work, and will find it by polling", "error", err)
	})
	return s, nil
}

// SchemaOf names the schema that holds a store's tables. It is no method, since drivers' stores have all of Store's.
func SchemaOf(s *Store) string { return s.opts.Schema }

// SetPatience has calls of a store without a deadline give up after d instead of a minute. For tests, before the first.
func SetPatience(s *Store, d time.Duration) { s.patience = d }

// Close ends waiting calls, waits for those that work, tells others what they were not told yet, and closes the
// store's own connections; the application's stay open. It may be repeated.
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
	return s.backend.Close()
}

// enter counts a call in; whoever entered calls s.calls.Done.
func (s *Store) enter(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return core.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	s.calls.Add(1)
	return nil
}

// Migrations are the numbered .sql files that Migrate runs.
func Migrations() fs.FS { return pgsql.Migrations() }
