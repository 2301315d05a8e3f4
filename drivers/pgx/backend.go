package pgxstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/sqlexec"
)

// backend is two pools.
type backend struct {
	shared  *pgxpool.Pool // the application's
	own     *pgxpool.Pool // nil: a backend that migrates
	closing sync.WaitGroup
}

// newBackend makes a small pool whose connections are made as the application's are. pooled says that they may be
// shared with others, whose settings are not ours to change.
func newBackend(pool *pgxpool.Pool, pooled bool) (*backend, error) {
	cfg := pool.Config()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = pgstore.OwnConns, 0, 0
	if made := cfg.AfterConnect; !pooled {
		cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			if made != nil {
				if err := made(ctx, conn); err != nil {
					return err
				}
			}
			_, err := conn.Exec(ctx, pgsql.Settings)
			return err
		}
	}
	own, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return nil, fmt.Errorf("stint: a pool for claims and heartbeats: %w", err)
	}
	return &backend{shared: pool, own: own}, nil
}

// Do implements pgstore.Backend.
func (b *backend) Do(ctx context.Context, on pgstore.Conns, work func(context.Context, sqlexec.Executor) error) error {
	return b.lend(ctx, on, func(conn *pgx.Conn) error { return work(ctx, executor{conn}) })
}

// Atomic implements pgstore.Backend.
func (b *backend) Atomic(ctx context.Context, on pgstore.Conns, work func(context.Context, pgstore.Tx) error) error {
	return b.lend(ctx, on, func(conn *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			return work(ctx, transaction{executor{tx}, tx})
		})
	})
}

func (b *backend) lend(ctx context.Context, on pgstore.Conns, do func(*pgx.Conn) error) error {
	pool := b.shared
	if on == pgstore.Own {
		pool = b.own
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	defer b.release(on, conn)
	switch encoding := conn.Conn().PgConn().ParameterStatus("client_encoding"); encoding {
	case "UTF8", "SQL_ASCII", "":
	default:
		// pgx speaks UTF-8 whatever the role's default is, and the server would take it for something else.
		return &core.InvalidError{Field: "pool", Reason: "has connections whose client_encoding is " + encoding +
			": say client_encoding=UTF8 in the connection string"}
	}
	err = do(conn.Conn())
	if pgsql.Spent(err) {
		// A server that shuts down, or became a standby: the pool must not hand this connection out again.
		_ = conn.Conn().Close(ctx)
	}
	return err
}

// release gives a connection back. Where one of the few of our own broke, the others most likely did as well: they are
// made anew, now rather than when a heartbeat has waited for each in vain. And its place is free at once: the pool would
// keep it until the server has taken leave, for up to 15 seconds.
func (b *backend) release(on pgstore.Conns, conn *pgxpool.Conn) {
	if on != pgstore.Own || !conn.Conn().IsClosed() {
		conn.Release()
		return
	}
	broken := conn.Hijack()
	b.closing.Go(func() { <-broken.PgConn().CleanupDone() })
	b.own.Reset()
}

// Settle implements pgstore.Backend: the pool of its own needs nothing of the application's.
func (b *backend) Settle(context.Context) error { return nil }

// Unsent implements pgstore.Backend.
func (b *backend) Unsent(err error) bool { return pgconn.SafeToRetry(err) }

// Close implements pgstore.Backend.
func (b *backend) Close() error {
	b.own.Close()
	b.closing.Wait()
	return nil
}

// querier is a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// executor lends it to package pgsql.
type executor struct{ q querier }

func (e executor) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := e.q.Exec(ctx, query, args...)
	return tag.RowsAffected(), over(err)
}

func (e executor) Query(ctx context.Context, query string, args ...any) (sqlexec.Rows, error) {
	r, err := e.q.Query(ctx, query, args...)
	if err != nil {
		return nil, over(err)
	}
	return rows{r}, nil
}

// over has a transaction that ended before say so in the words that all libraries have in common.
func over(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) {
		return fmt.Errorf("%w: %w", sql.ErrTxDone, err)
	}
	return err
}

// rows are pgx's, whose Close has no error of its own.
type rows struct{ pgx.Rows }

func (r rows) Close() error {
	r.Rows.Close()
	return r.Err()
}

// transaction is one of the store's own.
type transaction struct {
	executor
	tx pgx.Tx
}

// Script implements pgstore.Tx.
func (t transaction) Script(ctx context.Context, sql string) error {
	return t.tx.Conn().PgConn().Exec(ctx, sql).Close()
}
