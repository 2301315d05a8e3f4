package bunstore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
)

const goodSettings = "?_pragma=journal_mode(wal)&_pragma=busy_timeout(100)&_pragma=foreign_keys(1)"

// appDB is an application's own handle on a file.
func appDB(t testing.TB, path, settings string) *bun.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+settings)
	require.NoError(t, err)
	b := bun.NewDB(db, sqlitedialect.New())
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// newStore is a store of New on a migrated file.
func newStore(t testing.TB, db *bun.DB, opts bunstore.Options) *bunstore.Store {
	t.Helper()
	require.NoError(t, bunstore.Migrate(context.Background(), db))
	s, err := bunstore.New(db, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestNewTellsAllThatIsMissing(t *testing.T) {
	db := appDB(t, filepath.Join(t.TempDir(), "app.db"), "")
	_, err := bunstore.New(db, bunstore.Options{})
	for _, part := range []string{"journal_mode is delete", "busy_timeout", "foreign keys", "no stint tables"} {
		require.ErrorContains(t, err, part)
	}
	var schema *core.SchemaError
	require.ErrorAs(t, err, &schema)
	require.Equal(t, 0, schema.Have)
}

// TestNewLooksAtEveryConnection: a pragma that was run once is on one connection.
func TestNewLooksAtEveryConnection(t *testing.T) {
	db := appDB(t, filepath.Join(t.TempDir(), "app.db"), "?_pragma=journal_mode(wal)&_pragma=foreign_keys(1)")
	require.NoError(t, bunstore.Migrate(context.Background(), db))
	_, err := db.DB.Exec("pragma busy_timeout = 5000")
	require.NoError(t, err)
	_, err = bunstore.New(db, bunstore.Options{})
	require.ErrorContains(t, err, "busy_timeout")
	require.NotContains(t, err.Error(), "foreign")
}

// otherDialect is neither SQLite's nor Postgres's.
type otherDialect struct{ *sqlitedialect.Dialect }

func (otherDialect) Name() dialect.Name { return dialect.MySQL }

func TestNewRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	var invalid *core.InvalidError
	_, err := bunstore.New(nil, bunstore.Options{})
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, &core.InvalidError{Field: "db", Reason: "must not be nil"}, invalid)
	_, err = bunstore.New(appDB(t, path, goodSettings), bunstore.Options{Synchronous: "FULL"})
	require.ErrorAs(t, err, &invalid)
	_, err = bunstore.New(appDB(t, path, goodSettings), bunstore.Options{Limits: core.Limits{Payload: -1}})
	require.ErrorAs(t, err, &invalid)

	_, err = bunstore.New(appDB(t, path, goodSettings), bunstore.Options{Schema: "x"})
	require.ErrorAs(t, err, &invalid)
	require.ErrorAs(t, bunstore.Migrate(context.Background(), appDB(t, path, goodSettings), bunstore.Options{Schema: "x"}), &invalid)
	require.ErrorAs(t, bunstore.Migrate(context.Background(), nil), &invalid)

	other := bun.NewDB(appDB(t, path, goodSettings).DB, otherDialect{sqlitedialect.New()})
	_, err = bunstore.New(other, bunstore.Options{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, bunstore.Migrate(context.Background(), other), errors.ErrUnsupported)
}

// TestNewOnOneConnection: the usual advice for SQLite; all calls then share it.
func TestNewOnOneConnection(t *testing.T) {
	db := appDB(t, filepath.Join(t.TempDir(), "app.db"), goodSettings)
	db.SetMaxOpenConns(1)
	s := newStore(t, db, bunstore.Options{})
	ctx := context.Background()
	first, err := s.AwaitWake(ctx, nil, "")
	require.NoError(t, err)
	enqueue(t, s, request("job"))
	woken, err := s.AwaitWake(ctx, []string{"q"}, first.Token)
	require.NoError(t, err)
	require.False(t, woken.Control)
	require.Len(t, claim(t, s, 1, "job").Jobs, 1)
	checkInvariants(t, s)
}

// TestCallBesideAnOpenTransaction: who forgets WithTx gets an error and no deadlock.
func TestCallBesideAnOpenTransaction(t *testing.T) {
	for name, connections := range map[string]int{"one connection": 1, "several": 4} {
		t.Run(name, func(t *testing.T) {
			db := appDB(t, filepath.Join(t.TempDir(), "app.db"), goodSettings+"&_txlock=immediate")
			db.SetMaxOpenConns(connections)
			s := newStore(t, db, bunstore.Options{})
			ctx := context.Background()
			tx, err := db.BeginTx(ctx, nil)
			require.NoError(t, err)
			began := time.Now()
			_, err = s.Enqueue(ctx, []core.EnqueueRequest{request("job")})
			require.ErrorIs(t, err, core.ErrUnavailable)
			require.NotErrorIs(t, err, context.Canceled, "nobody cancelled")
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.Less(t, time.Since(began), 5*time.Second)
			if connections == 1 {
				_, err = s.Counts(ctx, "")
				require.ErrorIs(t, err, core.ErrUnavailable)
			}
			require.NoError(t, tx.Rollback())
			enqueue(t, s, request("job"))
		})
	}
}

// TestOvertakenTransaction: a transaction that read first and was overtaken can only begin again (Q14).
func TestOvertakenTransaction(t *testing.T) {
	db := appDB(t, filepath.Join(t.TempDir(), "app.db"), goodSettings)
	s := newStore(t, db, bunstore.Options{})
	ctx := context.Background()
	tx, err := db.BeginTx(ctx, nil) // deferred: this data source name says nothing of _txlock
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRowContext(ctx, "select count(*) from stint_jobs").Scan(&n))
	enqueue(t, s, request("job"))
	_, err = s.WithTx(tx).Enqueue(ctx, []core.EnqueueRequest{request("job")})
	require.ErrorIs(t, err, core.ErrRetryTx)
	require.NoError(t, tx.Rollback())
	tx, err = db.BeginTx(ctx, nil)
	require.NoError(t, err)
	enqueue(t, s.WithTx(tx), request("job"))
	require.NoError(t, tx.Commit())
	require.Len(t, claim(t, s, 10, "job").Jobs, 2)
}
