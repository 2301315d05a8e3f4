package stdsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/internal/sqlexec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broken is a driver whose connections lose the reply of every statement but BEGIN and COMMIT. It counts the
// connections on which a statement arrived.
type broken struct {
	opened int
	ran    map[int]int
}

func (b *broken) Connect(context.Context) (driver.Conn, error) {
	b.opened++
	return &brokenConn{b, b.opened}, nil
}
func (b *broken) Driver() driver.Driver { return nil }

type brokenConn struct {
	b *broken
	n int
}

func (c *brokenConn) Prepare(query string) (driver.Stmt, error) { return brokenStmt{c, query}, nil }
func (c *brokenConn) Close() error                              { return nil }
func (c *brokenConn) Begin() (driver.Tx, error)                 { return brokenTx{}, nil }

type brokenTx struct{}

func (brokenTx) Commit() error   { return nil }
func (brokenTx) Rollback() error { return nil }

type brokenStmt struct {
	c     *brokenConn
	query string
}

func (s brokenStmt) Close() error  { return nil }
func (s brokenStmt) NumInput() int { return -1 }
func (s brokenStmt) Exec([]driver.Value) (driver.Result, error) {
	if s.query == "begin immediate" || s.query == "rollback" {
		return driver.ResultNoRows, nil
	}
	s.c.b.ran[s.c.n]++
	return nil, driver.ErrBadConn
}

func (s brokenStmt) Query([]driver.Value) (driver.Rows, error) {
	s.c.b.ran[s.c.n]++
	return nil, driver.ErrBadConn
}

// TestNothingRunsAgainElsewhere: a statement whose reply was lost is not run on a second connection, where it
// would be done twice. (On the first, which is broken, nothing happens any more.)
func TestNothingRunsAgainElsewhere(t *testing.T) {
	ctx := context.Background()
	for name, run := range map[string]func(*sql.DB) error{
		"exec": func(db *sql.DB) error {
			tx, err := db.Begin()
			require.NoError(t, err)
			_, err = In(tx).Exec(ctx, "insert")
			return errors.Join(err, tx.Rollback())
		},
		"kept": func(db *sql.DB) error {
			kept, err := Keep(ctx, db, []string{"insert", "select"})
			require.NoError(t, err)
			tx, err := db.Begin()
			require.NoError(t, err)
			_, err = kept.In(tx).Exec(ctx, "insert")
			rows, err2 := kept.In(tx).Query(ctx, "select")
			require.Nil(t, rows)
			return errors.Join(err, err2, tx.Rollback(), kept.Close())
		},
		"immediate": func(db *sql.DB) error {
			return Immediate(ctx, db, func(err error) error { return err }, func(x sqlexec.Executor) error {
				_, err := x.Query(ctx, "select")
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &broken{ran: map[int]int{}}
			db := sql.OpenDB(b)
			require.ErrorIs(t, run(db), driver.ErrBadConn)
			require.Len(t, b.ran, 1)
			require.NoError(t, db.Close())
		})
	}

	// Without a connection of its own it is.
	b := &broken{ran: map[int]int{}}
	db := sql.OpenDB(b)
	_, err := db.ExecContext(ctx, "insert")
	require.ErrorIs(t, err, driver.ErrBadConn)
	require.Greater(t, len(b.ran), 1)
	require.NoError(t, db.Close())
}
