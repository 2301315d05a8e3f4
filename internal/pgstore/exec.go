package pgstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/sqlexec"
)

// session is what an operation works in.
type session = pgsql.Session

func (s *Store) session(x sqlexec.Executor) *session {
	return pgsql.NewSession(s.schema.In(x), s.opts.Clock, s.opts.Limits).WithMarks(&s.marks)
}

const (
	// again is how often what the database rolled back because of others is done again, after longer and longer pauses:
	// where a database makes every transaction serializable, one call may lose against others many times.
	again    = 30
	maxPause = 50 * time.Millisecond
	// callTimeout bounds a call whose context has no deadline: a server that says nothing would hold it for as long
	// as the network lets it.
	callTimeout = time.Minute
)

// op is something to do in a session.
type op = func(ctx context.Context, sn *session) error

// attempt is one try of an operation. done is the session in which something is done now; sent says that, with an
// error, something may have been done.
type attempt = func(ctx context.Context) (done *session, sent bool, err error)

// plain runs an operation on a connection on which every statement is a transaction of its own.
func (s *Store) plain(ctx context.Context, on Conns, writes bool, do op) error {
	return s.run(ctx, func(ctx context.Context) (*session, bool, error) {
		var ended atomic.Pointer[session] // of work that may outlive Do
		err := s.backend.Do(ctx, on, func(ctx context.Context, x sqlexec.Executor) error {
			sn := s.session(x)
			err := do(ctx, sn)
			ended.Store(sn)
			return err
		})
		// What was done before an error was done.
		return ended.Load(), writes && !s.backend.Unsent(err), err
	})
}

// atomic runs an operation in one transaction, on the application's connections.
func (s *Store) atomic(ctx context.Context, do op) error {
	return s.run(ctx, func(ctx context.Context) (*session, bool, error) {
		var committing atomic.Pointer[session]
		err := s.backend.Atomic(ctx, Shared, func(ctx context.Context, tx Tx) error {
			sn := s.session(tx).Whole()
			err := do(ctx, sn)
			if err == nil {
				committing.Store(sn)
			}
			return err
		})
		sn := committing.Load()
		if err != nil {
			return nil, sn != nil, err
		}
		return sn, false, nil
	})
}

// run makes attempts, and spreads the news of what was done.
func (s *Store) run(ctx context.Context, try attempt) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.patience)
		defer cancel()
	}
	for n := 1; ; n++ {
		done, sent, err := try(ctx)
		if done != nil {
			s.tell(done)
		}
		if err == nil {
			return nil
		}
		if n < again && pgsql.Again(err) && !errors.Is(err, core.ErrUnknown) && pause(ctx, n) {
			continue
		}
		err = pgsql.Fault(ctx, err, sent)
		if errors.Is(err, core.ErrUnknown) {
			// It may have been done, and this process does not listen to its own notifications.
			s.marks.Forget()
			s.hub.RingAll()
		}
		return err
	}
}

// pause waits before the try after the n-th. It reports false when ctx ended first.
func pause(ctx context.Context, n int) bool {
	timer := time.NewTimer(rand.N(min(time.Millisecond<<min(n, 10), maxPause)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// value runs an operation that answers with something.
func value[T any](run func(op) error, do func(context.Context, *session) (T, error)) (T, error) {
	var out T
	err := run(func(ctx context.Context, sn *session) (err error) {
		out, err = do(ctx, sn)
		return err
	})
	if err != nil {
		var zero T // out may still be written to
		return zero, err
	}
	return out, nil
}

// hot runs what claims, keeps and ends leases.
func hot[T any](ctx context.Context, s *Store, do func(context.Context, *session) (T, error)) (T, error) {
	return value(func(do op) error { return s.plain(ctx, Own, true, do) }, do)
}

// verb runs an admin verb that answers.
func verb[T any](ctx context.Context, s *Store, do func(context.Context, *session) (T, error)) (T, error) {
	return value(func(do op) error { return s.plain(ctx, Shared, true, do) }, do)
}

// read runs what only reads.
func read[T any](ctx context.Context, s *Store, do func(context.Context, *session) (T, error)) (T, error) {
	return value(func(do op) error { return s.plain(ctx, Shared, false, do) }, do)
}
