package pgsql

import (
	"context"
	"fmt"

	"github.com/stintmq/stint/core"
)

// A batch does not wait long for one id that somebody else's transaction holds and does not commit: that item alone
// gets an error (Q11). Nothing in Postgres says beforehand which it is, so a batch that waited too long is done
// again in halves, each behind a savepoint, with less patience.

// Contended reports whether Enqueue waited too long for an id. EnqueueApart is for the batch then.
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

var errContended = fmt.Errorf("%w: another transaction holds this id and has not ended", core.ErrUnavailable)

func (e *enqueueing) insertApart(ctx context.Context, at []int) (refused []int, err error) {
	if e.waits == maxContended {
		for _, i := range at {
			e.results[i].Err = errContended
		}
		return nil, nil
	}
	if _, err := e.s.x.Exec(ctx, "savepoint stint_part"); err != nil {
		return nil, err
	}
	refused, err = e.insert(ctx, at)
	if err == nil {
		_, err = e.s.x.Exec(ctx, "release savepoint stint_part")
		return refused, err
	}
	if !Contended(err) {
		return nil, err
	}
	if _, err := e.s.x.Exec(ctx, "rollback to savepoint stint_part"); err != nil {
		return nil, err
	}
	e.waits++
	if len(at) == 1 {
		e.results[at[0]].Err = errContended
		return nil, nil
	}
	for _, half := range [][]int{at[:len(at)/2], at[len(at)/2:]} {
		some, err := e.insertApart(ctx, half)
		if err != nil {
			return nil, err
		}
		refused = append(refused, some...)
	}
	return refused, nil
}

// patience is how long an insert waits for who inserts one of the same ids; nil: it cannot meet anybody, or waits as
// long as the caller's transaction does.
func (e *enqueueing) patience(ids []string) any {
	if e.patient != "" {
		for _, id := range ids {
			if id != "" {
				return e.patient
			}
		}
	}
	return nil
}
