// Package sqlexec names what the SQL packages ask of a driver: two methods, inside one transaction.
package sqlexec

import (
	"context"
	"errors"
)

// Executor runs statements on one connection. It never repeats one.
type Executor interface {
	// Exec runs a statement without rows and returns how many it changed.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	// Query runs a statement with rows. The caller closes them before the next statement.
	Query(ctx context.Context, query string, args ...any) (Rows, error)
}

// Rows are a query's rows, read one after the other.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// Each calls scan for every row of a query.
func Each(ctx context.Context, x Executor, scan func(Rows) error, query string, args ...any) error {
	rows, err := x.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := scan(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// One reads the first row of a query into dest and reports whether there was one.
func One(ctx context.Context, x Executor, dest []any, query string, args ...any) (bool, error) {
	found := false
	err := Each(ctx, x, func(r Rows) error {
		if found {
			return nil
		}
		found = true
		return r.Scan(dest...)
	}, query, args...)
	return found && err == nil, err
}
