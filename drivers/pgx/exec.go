package pgxstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/sqlexec"
)

// session is what an operation works in.
type session = pgsql.Session

// querier is a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// executor lends it to package pgsql.
type executor struct{ q querier }

func (e executor) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := e.q.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (e executor) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	r, err := e.q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return rows{r}, nil
}

// rows are pgx's, whose Close has no error of its own.
type rows struct{ pgx.Rows }

func (r rows) Close() error {
	r.Rows.Close()
	return r.Err()
}

func (s *Store) session(q querier) *session {
	return pgsql.NewSession(s.schema.In(executor{q}), s.opts.Clock, s.opts.Limits).WithMarks(&s.marks)
}

// again is how often what the database rolled back because of others is done again.
const again = 10

// op is something to do in a session.
type op = func(ctx context.Context, sn *session) error

// plain runs an operation on a connection of the pool on which every statement is a transaction of its own.
func (s *Store) plain(ctx context.Context, pool *pgxpool.Pool, writes bool, do op) error {
	return s.run(ctx, pool, writes, func(ctx context.Context, conn *pgx.Conn) (*session, error) {
		sn := s.session(conn)
		return sn, do(ctx, sn)
	})
}

// atomic runs an operation in one transaction.
func (s *Store) atomic(ctx context.Context, pool *pgxpool.Pool, do op) error {
	return s.run(ctx, pool, true, func(ctx context.Context, conn *pgx.Conn) (sn *session, err error) {
		committing := false
		err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			sn = s.session(tx).Whole()
			err := do(ctx, sn)
			committing = err == nil
			return err
		})
		if err != nil && !committing {
			err = pgsql.Fault(ctx, err, false) // rolled back, or never committed
		}
		return sn, err
	})
}

// run lends a connection, and spreads the news once the operation is done.
func (s *Store) run(ctx context.Context, pool *pgxpool.Pool, writes bool, do func(context.Context, *pgx.Conn) (*session, error)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	for try := 1; ; try++ {
		sn, err := s.lend(ctx, pool, do)
		if sn != nil {
			s.tell(sn) // what was done before an error was done
		}
		if err == nil {
			return nil
		}
		if try < again && pgsql.Again(err) && !errors.Is(err, core.ErrUnknown) && ctx.Err() == nil {
			continue
		}
		err = pgsql.Fault(ctx, err, writes && !pgconn.SafeToRetry(err))
		if errors.Is(err, core.ErrUnknown) {
			// It may have been done, and this process does not listen to its own notifications.
			s.marks.Forget()
			s.hub.RingAll()
		}
		return err
	}
}

func (s *Store) lend(ctx context.Context, pool *pgxpool.Pool, do func(context.Context, *pgx.Conn) (*session, error)) (*session, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	defer conn.Release()
	sn, err := do(ctx, conn.Conn())
	if pgsql.Spent(err) {
		// A server that shuts down, or became a standby: the pool must not hand this connection out again.
		_ = conn.Conn().Close(ctx)
	}
	return sn, err
}
