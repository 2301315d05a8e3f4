package stdsql

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/stintmq/stint/internal/sqlexec"
)

// On is an executor on one connection, outside of any transaction.
func On(conn *sql.Conn) sqlexec.Executor { return pinned{conn} }

const tries = 10 // to find a connection in the pool that still works

// Working returns a connection of db that has just answered.
func Working(ctx context.Context, db *sql.DB) (conn *sql.Conn, err error) {
	for range tries {
		if conn, err = db.Conn(ctx); err != nil {
			return nil, err
		}
		if err = conn.PingContext(ctx); err == nil {
			return conn, nil
		}
		Discard(conn)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, err
}

// Conn is an executor on one connection on which each text stays prepared for as long as the connection lives. It
// serves one call at a time.
type Conn struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// KeepOn returns an executor on conn. Whoever is done with conn ends it with Discard.
func KeepOn(conn *sql.Conn) *Conn { return &Conn{conn, make(map[string]*sql.Stmt)} }

// NotSentError: the connection failed before the statement was sent.
type NotSentError struct{ Err error }

func (e *NotSentError) Error() string { return e.Err.Error() }

// Unwrap returns what went wrong.
func (e *NotSentError) Unwrap() error { return e.Err }

func (c *Conn) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := c.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := c.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, &NotSentError{err}
	}
	c.stmts[query] = stmt
	return stmt, nil
}

// Exec implements sqlexec.Executor.
func (c *Conn) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	stmt, err := c.prepared(ctx, query)
	if err != nil {
		return 0, err
	}
	res, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Query implements sqlexec.Executor.
func (c *Conn) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	stmt, err := c.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err // not rows: a nil *sql.Rows in an interface is not nil
	}
	return rows, nil
}

// Discard closes a connection instead of giving it back to its *sql.DB: nobody else may get it.
func Discard(conn *sql.Conn) {
	// The errors say that the connection is of no use, which is why it is closed. It is closed before its statements
	// are: these would ask the server, one after the other, and it may be one that does not answer.
	_ = conn.Raw(func(c any) error {
		_ = c.(driver.Conn).Close()
		return driver.ErrBadConn
	})
	_ = conn.Close()
}
