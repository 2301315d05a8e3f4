package main

import (
	"context"
	"database/sql"
	"path/filepath"

	_ "modernc.org/sqlite" // database/sql's name for it
)

// openSQLite opens a database with the settings that stint uses, for everybody else: write-ahead log, synchronous
// NORMAL, transactions that begin with the write lock. One connection is best for all of them: with more, they
// meet at the lock, where who waits sleeps.
func openSQLite(folder string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "jobs.db")+"?_txlock=immediate"+
		"&_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_pragma=foreign_keys(1)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// within runs f in a transaction.
func within(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// count answers a query of one number.
func count(ctx context.Context, db *sql.DB, query string) (n int, err error) {
	err = db.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}
