package pgstd

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/internal/pgsql"
)

// transactional is a *sql.Tx, or what a library makes of one.
type transactional interface{ Rollback() error }

// InTx runs do in a transaction that begin begins, and commits it unless do returns an error. It is a pgstore.Begin. A
// library may wait for a server that says nothing whatever its context does, and a *sql.Tx has none for its end. So whoever
// calls waits beside begin, commit and rollback, and leaves them behind with their connection, as Backend does.
func InTx[Tx transactional](ctx context.Context, patience time.Duration, begin func(context.Context) (Tx, error), do func(context.Context, Tx) error, commit func(Tx) error) error {
	// What is left behind ends with it where the library heeds it; and a transaction that begins too late is rolled back.
	lasting, cancel := context.WithCancel(ctx)
	defer cancel()
	tx, err := step(ctx, patience, cancel, func() (Tx, error) { return begin(lasting) })
	if err != nil {
		return err
	}
	if lasting.Err() != nil { // it came when nobody waited any more
		_ = tx.Rollback() // as database/sql does itself
		return cmp.Or(ctx.Err(), context.DeadlineExceeded)
	}
	over := false
	rollback := func() error {
		over = true
		// What waits for the transaction's end waits for the server, which learns it from the connection's end too.
		_, err := step(context.WithoutCancel(ctx), longGrace, cancel, func() (struct{}, error) { return struct{}{}, tx.Rollback() })
		return err
	}
	defer func() {
		if !over { // do panicked
			_ = rollback()
		}
	}()
	if err := do(ctx, tx); err != nil {
		if errors.Is(rollback(), driver.ErrBadConn) {
			return pgsql.Lost(err)
		}
		return err
	}
	_, err = step(ctx, patience, cancel, func() (struct{}, error) { return struct{}{}, commit(tx) })
	if err == nil {
		over = true
	}
	return err
}

// step waits for f until patience (0: none) or ctx has ended, then ends f's context, and after a grace leaves f behind.
func step[T any](ctx context.Context, patience time.Duration, end context.CancelFunc, f func() (T, error)) (T, error) {
	type answer struct {
		out T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		out, err := f()
		done <- answer{out, err}
	}()
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if patience > 0 {
		waiting, cancel = context.WithTimeout(ctx, patience)
	}
	defer cancel()
	select {
	case a := <-done:
		return a.out, a.err
	case <-waiting.Done():
	}
	end()
	grace := time.NewTimer(longGrace)
	defer grace.Stop()
	select {
	case a := <-done:
		if errors.Is(a.err, context.Canceled) { // which was ours, and not the caller's
			a.err = waiting.Err()
		}
		return a.out, a.err
	case <-grace.C:
		var none T
		return none, fmt.Errorf("the server does not answer: %w", waiting.Err())
	}
}
