package pqstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
	"github.com/stintmq/stint/internal/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dsn is the test database's, with one more option ("": none).
func dsn(t testing.TB, option, value string) string {
	t.Helper()
	u, err := url.Parse(pgtest.DSN(t))
	require.NoError(t, err, "a URL")
	q := u.Query()
	if q.Get("sslmode") == "" {
		q.Set("sslmode", "prefer")
	}
	if option != "" {
		q.Set(option, value)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// connect returns a database that closes with the test.
func connect(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// schemas are those that no test uses, migrated and empty: making one takes long. They are dropped with the test that
// owns them.
type schemas struct {
	owner testing.TB
	db    *sql.DB
	mu    sync.Mutex
	spare []string
}

func newSchemas(t testing.TB) *schemas {
	t.Helper()
	return &schemas{owner: t, db: connect(t, dsn(t, "", ""))}
}

// name returns the name of a schema that is not there yet.
func (s *schemas) name() string {
	s.owner.Helper()
	return pgtest.Schema(s.owner, func(ctx context.Context, sql string) error {
		_, err := s.db.ExecContext(ctx, sql)
		return err
	})
}

// take returns an empty schema, which is given back when the test ends.
func (s *schemas) take(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	name := ""
	if n := len(s.spare); n > 0 {
		name, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	s.mu.Unlock()
	ctx := context.Background()
	if name == "" {
		name = s.name()
		require.NoError(t, pqstore.Migrate(ctx, s.db, name))
	}
	t.Cleanup(func() {
		_, err := s.db.ExecContext(ctx, emptied(name))
		require.NoError(t, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.spare = append(s.spare, name)
	})
	return name
}

// emptied deletes what a test left: that is quicker than truncating, and the tables keep their pages.
func emptied(schema string) string {
	text := ""
	for _, table := range []string{"jobs", "ready", "delayed", "leases", "finished", "runs", "tallies", "lanes", "sweeps", "paused"} {
		text += fmt.Sprintf("delete from %q.%s;", schema, table)
	}
	return text
}

// fresh returns a store on a schema of its own.
func fresh(t testing.TB) (*pqstore.Store, *schemas) {
	t.Helper()
	spare := newSchemas(t)
	return open(t, spare, pqstore.Options{DSN: dsn(t, "", "")}), spare
}

// open returns a store on an empty schema.
func open(t testing.TB, s *schemas, opts pqstore.Options) *pqstore.Store {
	t.Helper()
	opts.Schema = s.take(t)
	return openAt(t, s.db, opts)
}

func openAt(t testing.TB, db *sql.DB, opts pqstore.Options) *pqstore.Store {
	t.Helper()
	s, err := pqstore.New(db, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func request(name string) core.EnqueueRequest {
	return core.EnqueueRequest{Name: name, Queue: "q", Payload: []byte(`{"n":1}`), MaxAttempts: 3, Backoff: core.DefaultBackoff()}
}

func claim(t testing.TB, s core.Store, limit int, names ...string) core.Claimed {
	t.Helper()
	got, err := s.Claim(context.Background(), core.ClaimRequest{
		Wants: []core.Want{{Queue: "q", Names: names, Limit: limit}},
		Token: core.NewToken(), Lease: time.Minute, Worker: "w",
	})
	require.NoError(t, err)
	return got
}

func enqueue(t testing.TB, s core.Enqueuer, reqs ...core.EnqueueRequest) []core.EnqueueResult {
	t.Helper()
	res, err := s.Enqueue(context.Background(), reqs)
	require.NoError(t, err)
	for _, r := range res {
		require.NoError(t, r.Err)
	}
	return res
}
