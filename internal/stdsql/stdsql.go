// Package stdsql lends a database/sql transaction to the SQL packages.
//
// Every statement runs inside a *sql.Tx or on a *sql.Conn, so on one pinned connection: database/sql answers a
// connection that broke by running the statement again on another one, which makes two jobs of one insert.
package stdsql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/stintmq/stint/internal/sqlexec"
)

// Kept is a set of statements that stay prepared for as long as their connections live. It is safe for
// concurrent use.
type Kept struct {
	stmts map[string]*sql.Stmt
}

// Keep prepares texts on db.
func Keep(ctx context.Context, db *sql.DB, texts []string) (*Kept, error) {
	k := &Kept{stmts: make(map[string]*sql.Stmt, len(texts))}
	for _, text := range texts {
		stmt, err := db.PrepareContext(ctx, text)
		if err != nil {
			return nil, errors.Join(err, k.Close())
		}
		k.stmts[text] = stmt
	}
	return k, nil
}

// Close lets the statements go; the database stays open.
func (k *Kept) Close() error {
	var err error
	for _, s := range k.stmts {
		err = errors.Join(err, s.Close())
	}
	return err
}

// In is an executor inside tx. Texts that are kept are not parsed again, unless tx is of another *sql.DB.
func (k *Kept) In(tx *sql.Tx) sqlexec.Executor { return executor{tx, k.stmts} }

// In is an executor inside any transaction.
func In(tx *sql.Tx) sqlexec.Executor { return executor{tx, nil} }

// Immediate runs f inside a transaction that holds SQLite's write lock from its first moment, whatever the data
// source name says about transactions. commit gives an error of COMMIT its meaning.
func Immediate(ctx context.Context, db *sql.DB, commit func(error) error, f func(sqlexec.Executor) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	// Back to the pool; an error says that it was closed already.
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "begin immediate"); err != nil {
		return err
	}
	err = f(pinned{conn})
	if err == nil {
		_, err = conn.ExecContext(ctx, "commit")
		err = commit(err)
	}
	if err != nil {
		// What this returns says nothing: SQLite may have rolled back already. ctx may be what failed.
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "rollback")
	}
	return err
}

// pinned is an executor on one connection.
type pinned struct{ conn *sql.Conn }

func (p pinned) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := p.conn.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (p pinned) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	rows, err := p.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return rows, nil
}

type executor struct {
	tx   *sql.Tx
	kept map[string]*sql.Stmt
}

func (e executor) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	var res sql.Result
	err := errForeign
	if stmt, ok := e.kept[query]; ok {
		res, err = e.tx.StmtContext(ctx, stmt).ExecContext(ctx, args...)
	}
	if foreign(err) {
		res, err = e.tx.ExecContext(ctx, query, args...)
	}
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (e executor) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	var rows *sql.Rows
	err := errForeign
	if stmt, ok := e.kept[query]; ok {
		rows, err = e.tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
	}
	if foreign(err) {
		rows, err = e.tx.QueryContext(ctx, query, args...)
	}
	if err != nil {
		return nil, err // not rows: a nil *sql.Rows in an interface is not nil
	}
	return rows, nil
}

// errForeign is what database/sql says of a statement that was prepared on another *sql.DB, before it sends
// anything. It has no value for it, and no way to ask beforehand.
var errForeign = errors.New("sql: Tx.Stmt: statement from different database used")

func foreign(err error) bool { return err != nil && err.Error() == errForeign.Error() }
