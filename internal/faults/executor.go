package faults

import (
	"context"

	"github.com/stintmq/stint/internal/sqlexec"
)

// Executor passes statements on until the At-th, which fails with Err at its Moment; from then on every statement
// fails with Err, as on a connection that broke. At 0: none does. It is no more safe for concurrent use than what it
// wraps.
type Executor struct {
	sqlexec.Executor
	At     int
	Moment Moment
	Err    error

	count int
}

// Statements is how many statements came, the one that failed and those after it included.
func (e *Executor) Statements() int { return e.count }

// Struck reports whether the At-th statement came.
func (e *Executor) Struck() bool { return e.At > 0 && e.count >= e.At }

// Exec implements sqlexec.Executor. Midway is After.
func (e *Executor) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	e.count++
	if !e.Struck() {
		return e.Executor.Exec(ctx, query, args...)
	}
	if e.count == e.At && e.Moment != Before {
		if _, err := e.Executor.Exec(ctx, query, args...); err != nil {
			return 0, err
		}
	}
	return 0, e.Err
}

// Query implements sqlexec.Executor. After a fault that is not Before, the rows end with it.
func (e *Executor) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	e.count++
	if !e.Struck() {
		return e.Executor.Query(ctx, query, args...)
	}
	if e.count > e.At || e.Moment == Before {
		return nil, e.Err
	}
	rows, err := e.Executor.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	left := 0
	if e.Moment == Midway {
		left = 1
	}
	return &brokenRows{Rows: rows, left: left, err: e.Err}, nil
}

// brokenRows are rows of which a few come, and then an error. The rest is read all the same, so that the statement
// is carried out to its end.
type brokenRows struct {
	sqlexec.Rows
	left int
	err  error
	over bool
}

func (r *brokenRows) Next() bool {
	if r.over {
		return false
	}
	if r.left > 0 && r.Rows.Next() {
		r.left--
		return true
	}
	r.over = true
	for r.Rows.Next() { // to the end
	}
	return false
}

// Err is the fault, unless the statement had one of its own.
func (r *brokenRows) Err() error {
	if err := r.Rows.Err(); err != nil || !r.over {
		return err
	}
	return r.err
}

func (r *brokenRows) Close() error {
	r.over = true
	if err := r.Rows.Close(); err != nil {
		return err
	}
	return nil
}
