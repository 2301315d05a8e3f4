package pgstore

import (
	"context"
	"fmt"
	"time"
)

// leaveAfter is how long a statement whose context ended may take to say so.
const leaveAfter = 2 * time.Second

// bounded runs what the store sends in a transaction: in one of its own, for as long as a call without a deadline may
// take, unless who asked for the transaction has a deadline. Code of the caller's there has the caller's context, and the
// caller's transactions are the caller's to bound.
//
// What it leaves behind has the connection, and nobody else uses that: the rollback comes behind it.
func bounded[T any](ctx context.Context, s *Store, own *ownTx, do func(context.Context) (T, error)) (T, error) {
	if own == nil {
		return do(ctx)
	}
	if !own.bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.patience)
		defer cancel()
	}
	if !s.opts.Deaf {
		return do(ctx)
	}
	type answer struct {
		out T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		out, err := do(ctx)
		done <- answer{out, err}
	}()
	select {
	case a := <-done:
		return a.out, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(leaveAfter)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.out, a.err
	case <-timer.C:
		var zero T
		return zero, fmt.Errorf("the server does not answer: %w", ctx.Err())
	}
}
