package bunstore_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
)

// TestSlowReadsDontHoldUpTheWakeChannel (Q15).
func TestSlowReadsDontHoldUpTheWakeChannel(t *testing.T) {
	const readers = 4
	var slow atomic.Int32 // how many of the next calls hang while they have their connection
	hanging, free := make(chan struct{}), make(chan struct{})
	s := open(t, bunstore.Options{Clock: clockFunc(func() time.Time {
		if slow.Add(-1) >= 0 {
			hanging <- struct{}{}
			<-free
		}
		return time.Now()
	})})
	ctx := context.Background()
	since := claim(t, s, 1, "job").Wake
	slow.Store(readers)
	done := make(chan error, readers)
	for range readers {
		go func() { _, err := s.Counts(ctx, ""); done <- err }()
	}
	for range readers {
		<-hanging
	}
	enqueue(t, s, request("job"))
	_, err := s.AwaitWake(ctx, []string{"q"}, since)
	close(free)
	for range readers {
		require.NoError(t, <-done)
	}
	require.NoError(t, err)
}

// TestReadWaitsTooLong: it says what it waited for, which is not the write lock.
func TestReadWaitsTooLong(t *testing.T) {
	db := appDB(t, filepath.Join(t.TempDir(), "app.db"), goodSettings)
	db.SetMaxOpenConns(1)
	s := newStore(t, db, bunstore.Options{})
	conn, err := db.DB.Conn(context.Background())
	require.NoError(t, err)
	_, err = s.Counts(context.Background(), "")
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.ErrorContains(t, err, "reading connections")
	require.NotContains(t, err.Error(), "write lock")
	require.NoError(t, conn.Close())
	_, err = s.Counts(context.Background(), "")
	require.NoError(t, err)
}

// TestOpenBesideAWriter: where the schema is there, a process starts although another holds the write lock.
func TestOpenBesideAWriter(t *testing.T) {
	s := open(t)
	path := pathOf(t, s)
	tx, err := s.DB().BeginTx(context.Background(), nil)
	require.NoError(t, err)
	began := time.Now()
	other, err := bunstore.OpenSQLite(path)
	require.NoError(t, err)
	require.NoError(t, other.Migrate(context.Background()))
	require.Less(t, time.Since(began), 4*time.Second, "it waited for the lock")
	require.NoError(t, other.Close())
	require.NoError(t, tx.Rollback())
}

// TestMigrateBesideAWriter: what an ANALYZE left is tidied up when the lock is to be had, and else left.
func TestMigrateBesideAWriter(t *testing.T) {
	ctx := context.Background()
	db := appDB(t, filepath.Join(t.TempDir(), "app.db"), goodSettings)
	s := newStore(t, db, bunstore.Options{})
	enqueue(t, s, request("job"))
	_, err := db.DB.Exec("analyze")
	require.NoError(t, err)
	conn, err := db.DB.Conn(ctx)
	require.NoError(t, err)
	_, err = conn.ExecContext(ctx, "begin immediate")
	require.NoError(t, err)
	require.NoError(t, bunstore.Migrate(ctx, db))
	_, err = conn.ExecContext(ctx, "rollback")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	left := func() (n int) {
		require.NoError(t, db.DB.QueryRow("select count(*) from sqlite_stat1 where tbl glob 'stint_*'").Scan(&n))
		return n
	}
	require.NotZero(t, left())
	require.NoError(t, bunstore.Migrate(ctx, db))
	require.Zero(t, left())
}
