package pqstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/internal/stdsql"
)

// session is what an operation works in.
type session = pgsql.Session

func (s *Store) session(x sqlexec.Executor) *session {
	return pgsql.NewSession(s.schema.In(arrays{x}), s.opts.Clock, s.opts.Limits).WithMarks(&s.marks)
}

const (
	// again is how often what the database rolled back because of others is done again.
	again = 10
	// callTimeout bounds every call: what comes after it is told that nobody knows.
	callTimeout = time.Minute
	// cancelGrace is how long a statement whose context ended may take to say so.
	cancelGrace = 2 * time.Second
)

// op is something to do in a session.
type op = func(ctx context.Context, sn *session) error

// work is an operation on a connection; the session is nil if none was begun.
type work = func(ctx context.Context, at *seat) (*session, error)

// plain runs an operation on a connection on which every statement is a transaction of its own.
func (s *Store) plain(ctx context.Context, from *seats, writes bool, do op) error {
	return s.run(ctx, from, writes, func(ctx context.Context, at *seat) (*session, error) {
		sn := s.session(at.x)
		return sn, do(ctx, sn)
	})
}

// atomic runs an operation in one transaction.
func (s *Store) atomic(ctx context.Context, from *seats, do op) error {
	return s.run(ctx, from, true, func(ctx context.Context, at *seat) (*session, error) {
		tx, err := at.conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return nil, &stdsql.NotSentError{Err: err}
		}
		sn := s.session(stdsql.In(tx)).Whole()
		if err := do(ctx, sn); err != nil {
			_ = tx.Rollback() // the error says more; a connection that can't is closed
			if !pgsql.Again(err) {
				err = pgsql.Fault(ctx, err, false) // never committed
			}
			return nil, err
		}
		return sn, tx.Commit()
	})
}

// run lends a connection, and spreads the news once the operation is done.
func (s *Store) run(ctx context.Context, from *seats, writes bool, do work) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for try := 1; ; try++ {
		sn, err := s.lend(ctx, from, do)
		if sn != nil {
			s.tell(sn) // what was done before an error was done
		}
		if err == nil {
			return nil
		}
		if try < again && pgsql.Again(err) && !errors.Is(err, core.ErrUnknown) && ctx.Err() == nil {
			continue
		}
		var unsent *stdsql.NotSentError
		err = pgsql.Fault(ctx, err, writes && !errors.As(err, &unsent))
		if errors.Is(err, core.ErrUnknown) {
			// It may have been done, and this process does not listen to its own notifications.
			s.marks.Forget()
			s.hub.RingAll()
		}
		return err
	}
}

// outcome is what became of work.
type outcome struct {
	sn  *session
	err error
}

// lend runs work on a connection. pq never stops reading, whatever the context says: it asks the server to stop
// instead, and where the network swallows that it waits until the kernel gives up, a quarter of an hour later. So
// whoever calls waits beside it, and leaves it behind with its connection when the context is over. It has nothing
// of the caller's left to do then, since every later statement fails.
func (s *Store) lend(ctx context.Context, from *seats, do work) (*session, error) {
	at, err := from.vacant(ctx)
	if err != nil {
		return nil, unconnected(err)
	}
	var over atomic.Bool // who sets it gives the seat back
	done := make(chan outcome, 1)
	go func() {
		var res outcome
		if err := at.connect(ctx, from.db); err != nil {
			res.err = unconnected(err)
		} else {
			res.sn, res.err = do(ctx, at)
		}
		if over.CompareAndSwap(false, true) {
			// A cancel request that came late must not hit the next statement.
			from.give(at, ctx.Err() == nil && !broken(res.err))
		} else {
			at.clear()
		}
		done <- res
	}()
	res, ok := await(ctx, done)
	switch {
	case ok:
	case over.CompareAndSwap(false, true):
		from.give(&seat{lent: at.lent}, false)
		return nil, fmt.Errorf("the server does not answer: %w", ctx.Err())
	default:
		res = <-done // just now
	}
	return res.sn, res.err
}

// await waits for done, and when the context is over a little longer.
func await(ctx context.Context, done <-chan outcome) (outcome, bool) {
	select {
	case res := <-done:
		return res, true
	case <-ctx.Done():
	}
	grace := time.NewTimer(cancelGrace)
	defer grace.Stop()
	select {
	case res := <-done:
		return res, true
	case <-grace.C:
		return outcome{}, false
	}
}

func unconnected(err error) error {
	return &stdsql.NotSentError{Err: fmt.Errorf("%w: no connection: %w", core.ErrUnavailable, err)}
}

// broken reports whether an error leaves a connection that is of no use: the connection failed, or the server, or
// what was prepared there, is not what it was. The contract's answers say nothing about it.
func broken(err error) bool {
	if err == nil {
		return false
	}
	switch pgsql.SQLState(err) {
	case "":
		err = pgsql.Fault(context.Background(), err, false)
		return errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrUnknown)
	case "0A000", "26000": // a plan whose result changed, a statement that is not there
		return true
	default:
		return pgsql.Spent(err)
	}
}
