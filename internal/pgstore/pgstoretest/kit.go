// Package pgstoretest is what the tests of every Postgres driver have in common. For tests only.
package pgstoretest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/journal"
)

// Store is what every driver's store is.
type Store interface {
	core.Store
	core.Inspector
	core.Admin
	core.Scheduler
	core.Retainer
	core.Migrator
	io.Closer
}

// Tx is a transaction of an application's.
type Tx struct {
	Own              any // the driver's
	View             core.TxView
	X                sqlexec.Executor
	Commit, Rollback func() error
}

// DB is an application's connections, and what a driver makes of them.
type DB struct {
	// Backend runs the tests' own SQL, and most stores share it: connections, and what is prepared on them, outlive the
	// stores.
	Backend pgstore.Backend
	// On returns a store on Backend, which lets Backend be when it closes: see Lent.
	On func(schema string, clock core.Clock) (Store, error)
	// New returns a store as an application does.
	New func(schema string) (Store, error)
	// Migrate is the driver's.
	Migrate func(ctx context.Context, schema string) error
	// Begin begins a transaction at READ COMMITTED, or REPEATABLE READ, with the view of s.
	Begin func(ctx context.Context, s Store, repeatable bool) (*Tx, error)
	// Nested runs do behind a savepoint of a transaction of the journal's, as the library has them, and undoes what it did
	// when it returns an error.
	Nested func(ctx context.Context, tx *Tx, do func(*Tx) error) error
	// Journal is the journal of a store of this driver's: see JournalOf.
	Journal func(s Store) journal.Store[*Tx]
	// NilTx is the view of no transaction.
	NilTx func(s Store) core.TxView
	// Close closes the connections.
	Close func() error
}

// Lent is a backend that somebody else closes.
type Lent struct{ pgstore.Backend }

// Close does nothing.
func (Lent) Close() error { return nil }

// Kit is one driver under test, with connections and schemas that live as long as the test process does.
type Kit struct {
	connect func(t testing.TB) (*DB, error)

	mu      sync.Mutex
	db      *DB
	spare   []string // schemas that no test uses, empty: making one takes half a second
	made    []string // all schemas
	schemas map[Store]string
}

// New returns a kit that connects when a test asks.
func New(connect func(t testing.TB) (*DB, error)) *Kit {
	return &Kit{connect: connect, schemas: make(map[Store]string)}
}

// DB returns the connections.
func (k *Kit) DB(t testing.TB) *DB {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.db == nil {
		db, err := k.connect(t)
		require.NoError(t, err)
		k.db = db
	}
	return k.db
}

// Runner is a testing.M.
type Runner interface{ Run() int }

// Main is m, after which the kits are closed: for goleak, which looks then.
func Main(m Runner, kits ...*Kit) Runner { return &run{m, kits} }

type run struct {
	m    Runner
	kits []*Kit
}

func (r *run) Run() int {
	code := r.m.Run()
	for _, k := range r.kits {
		if err := k.close(); err != nil {
			fmt.Println("pgstoretest:", err)
			code = max(code, 1)
		}
	}
	return code
}

func (k *Kit) close() error {
	if k.db == nil {
		return nil
	}
	var errs []error
	for _, name := range k.made {
		errs = append(errs, k.exec(context.Background(), "drop schema if exists "+quoted(name)+" cascade"))
	}
	return errors.Join(append(errs, k.db.Backend.Close(), k.db.Close())...)
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Name returns the name of a schema that is not there yet. It goes when the process ends.
func (k *Kit) Name() string {
	name := "stint_test_" + strings.ToLower(rand.Text())
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made = append(k.made, name)
	return name
}

// Schema returns an empty schema, which is emptied and given back when the test ends.
func (k *Kit) Schema(t testing.TB) string {
	t.Helper()
	db := k.DB(t)
	k.mu.Lock()
	name := ""
	if n := len(k.spare); n > 0 {
		name, k.spare = k.spare[n-1], k.spare[:n-1]
	}
	k.mu.Unlock()
	if name == "" {
		name = k.Name()
		require.NoError(t, db.Migrate(context.Background(), name))
		// As autovacuum would in a while: until then every look at the tables passes what Migrate filled them with.
		for _, table := range tables {
			k.Exec(t, "vacuum "+quoted(name)+"."+table)
		}
	}
	t.Cleanup(func() {
		require.NoError(t, k.empty(name))
		k.mu.Lock()
		defer k.mu.Unlock()
		k.spare = append(k.spare, name)
	})
	return name
}

var tables = []string{"jobs", "ready", "delayed", "leases", "finished", "runs", "tallies", "lanes", "sweeps", "paused", "schedules", "dedupe",
	"events", "entities", "cursors", "notes"}

// empty deletes what a test left: that is quicker than truncating, and the tables keep their pages.
func (k *Kit) empty(schema string) error {
	var text strings.Builder
	for _, table := range tables {
		text.WriteString("delete from " + quoted(schema) + "." + table + "; ")
	}
	return k.exec(context.Background(), "do $$ begin "+text.String()+"end $$")
}

// Open returns a store on an empty schema and the shared connections.
func (k *Kit) Open(t testing.TB, clock core.Clock) Store {
	t.Helper()
	return k.OpenAt(t, k.Schema(t), clock)
}

// OpenAt returns a store on a schema and the shared connections.
func (k *Kit) OpenAt(t testing.TB, schema string, clock core.Clock) Store {
	t.Helper()
	s, err := k.DB(t).On(schema, clock)
	return k.opened(t, schema, s, err)
}

// Own returns a store on an empty schema and connections of its own, as an application has it.
func (k *Kit) Own(t testing.TB) Store {
	t.Helper()
	schema := k.Schema(t)
	return k.OwnAt(t, schema)
}

// OwnAt returns a store on a schema and connections of its own.
func (k *Kit) OwnAt(t testing.TB, schema string) Store {
	t.Helper()
	s, err := k.DB(t).New(schema)
	return k.opened(t, schema, s, err)
}

func (k *Kit) opened(t testing.TB, schema string, s Store, err error) Store {
	t.Helper()
	require.NoError(t, err)
	k.mu.Lock()
	k.schemas[s] = schema
	k.mu.Unlock()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.schemas, s)
	})
	return s
}

// SchemaOf names the schema of a store that the kit opened.
func (k *Kit) SchemaOf(s core.Store) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.schemas[s.(Store)]
}

// Begin begins a transaction, which ends with the test at the latest.
func (k *Kit) Begin(t testing.TB, s Store) *Tx {
	t.Helper()
	tx, err := k.DB(t).Begin(context.Background(), s, false)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() }) // for a test that failed
	return tx
}

// execPatience bounds a statement of the tests' own: one that waits for a transaction which a failed test left open would
// wait for good.
const execPatience = 2 * time.Minute

func (k *Kit) exec(ctx context.Context, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, execPatience)
	defer cancel()
	return k.db.Backend.Do(ctx, pgstore.Shared, func(ctx context.Context, x sqlexec.Executor) error {
		_, err := x.Exec(ctx, sql, args...)
		return err
	})
}

// Exec runs a statement.
func (k *Kit) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	k.DB(t)
	require.NoError(t, k.exec(context.Background(), sql, args...))
}

// Numbers runs a query of one column.
func (k *Kit) Numbers(t testing.TB, sql string, args ...any) (numbers []int64) {
	t.Helper()
	err := k.DB(t).Backend.Do(context.Background(), pgstore.Shared, func(ctx context.Context, x sqlexec.Executor) error {
		return sqlexec.Each(ctx, x, func(r sqlexec.Rows) error {
			var n int64
			err := r.Scan(&n)
			numbers = append(numbers, n)
			return err
		}, sql, args...)
	})
	require.NoError(t, err)
	return numbers
}

// CheckInvariants looks at a schema's tables themselves.
func (k *Kit) CheckInvariants(t testing.TB, schema string) {
	t.Helper()
	err := k.DB(t).Backend.Do(context.Background(), pgstore.Shared, func(ctx context.Context, x sqlexec.Executor) error {
		// Its joins are planned for the empty tables that the statistics know, and a case may have filled them.
		settings := func(value string) error {
			_, err := x.Exec(ctx, "select set_config('jit', $1::text, false), set_config('enable_nestloop', $1::text, false)", value)
			return err
		}
		return errors.Join(settings("off"), pgsql.NewSchema(schema).CheckInvariants(ctx, x), settings("on"))
	})
	require.NoError(t, err)
}
