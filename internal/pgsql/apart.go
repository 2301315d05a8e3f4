package pgsql

import (
	"context"
	"fmt"

	"github.com/stintmq/stint/core"
)

// A batch does not wait long for one id or key that somebody else's transaction holds and does not commit: that item alone
// gets an error (Q11). Nothing in Postgres says beforehand which it is, so a batch that waited too long is done
// again in halves, each behind a savepoint, with less patience.

// Contended reports whether Enqueue waited too long for an id or a key. EnqueueApart is for the batch then.
func Contended(err error) bool { return SQLState(err) == stateLockTimeout }

// maxContended bounds how often EnqueueApart waits; the items that it did not come to are contended as well.
const maxContended = 50

// EnqueueApart is Enqueue inside a transaction of the store's own: contended items get core.ErrUnavailable each, and
// their neighbours land.
func (s *Session) EnqueueApart(ctx context.Context, reqs []core.EnqueueRequest, notify Notify) ([]core.EnqueueResult, error) {
	e := enqueueing{s: s, reqs: reqs, results: make([]core.EnqueueResult, len(reqs)), notify: notify, first: map[string]int{},
		patient: "50ms", apart: true}
	return e.run(ctx)
}

var errContended = fmt.Errorf("%w: another transaction holds this id or key and has not ended", core.ErrUnavailable)

// each does something for the items at these positions: all at once, or apart.
func (e *enqueueing) each(ctx context.Context, at []int, do func([]int) error, contended func(i int)) error {
	switch {
	case !e.apart:
		return do(at)
	case e.waits == maxContended:
		for _, i := range at {
			contended(i)
		}
		return nil
	}
	if _, err := e.s.x.Exec(ctx, "savepoint stint_part"); err != nil {
		return err
	}
	err := do(at)
	if err == nil {
		_, err = e.s.x.Exec(ctx, "release savepoint stint_part")
		return err
	}
	if !Contended(err) {
		return err
	}
	if _, err := e.s.x.Exec(ctx, "rollback to savepoint stint_part"); err != nil {
		return err
	}
	e.waits++
	if len(at) == 1 {
		contended(at[0])
		return nil
	}
	for _, half := range [][]int{at[:len(at)/2], at[len(at)/2:]} {
		if err := e.each(ctx, half, do, contended); err != nil {
			return err
		}
	}
	return nil
}

// waiting is how long a statement waits for who holds an id or a key; nil: as long as the caller's transaction does.
func (e *enqueueing) waiting() any {
	if e.patient == "" {
		return nil
	}
	return e.patient
}

// patience is how long an insert waits for who inserts one of the same ids; nil: it cannot meet anybody, or waits as
// long as the caller's transaction does.
func (e *enqueueing) patience(ids []string) any {
	for _, id := range ids {
		if id != "" {
			return e.waiting()
		}
	}
	return nil
}
