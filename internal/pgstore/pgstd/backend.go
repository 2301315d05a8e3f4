package pgstd

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/internal/stdsql"
)

// sharedConns is how many connections are kept for what is neither claim nor ack nor heartbeat.
const sharedConns = 2

// Backend runs SQL on connections of a *sql.DB. It implements pgstore.Backend.
type Backend struct {
	own     *seats // nil: a backend that migrates
	shared  *seats
	settled atomic.Bool // own is open
}

var _ pgstore.Backend = (*Backend)(nil)

// NewBackend returns a backend on db, whose SetMaxOpenConns, if any, must be more than 5 (else *core.InvalidError).
func NewBackend(db *sql.DB) (*Backend, error) {
	const keeps = pgstore.OwnConns + sharedConns
	if most := db.Stats().MaxOpenConnections; most > 0 && most <= keeps {
		return nil, &core.InvalidError{Field: "db", Reason: fmt.Sprintf("must allow more than %d connections (SetMaxOpenConns): "+
			"the store keeps that many for itself", keeps)}
	}
	return &Backend{own: newSeats(db, pgstore.OwnConns, false), shared: newSeats(db, sharedConns, true)}, nil
}

// Migrate is pgstore.Migrate on a connection of db.
func Migrate(ctx context.Context, db *sql.DB, schema string) error {
	return pgstore.Migrate(ctx, &Backend{shared: newSeats(db, 0, true)}, schema)
}

// Do implements pgstore.Backend.
func (b *Backend) Do(ctx context.Context, on pgstore.Conns, work func(context.Context, sqlexec.Executor) error) error {
	return b.lend(ctx, on, func(at *seat) error { return work(ctx, arrays{at.x}) })
}

// Atomic implements pgstore.Backend.
func (b *Backend) Atomic(ctx context.Context, on pgstore.Conns, work func(context.Context, pgstore.Tx) error) error {
	return b.lend(ctx, on, func(at *seat) error {
		tx, err := at.conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return err
		}
		if err := work(ctx, transaction{arrays{stdsql.In(tx)}, tx}); err != nil {
			_ = tx.Rollback() // err says more; a connection that can't is closed
			return err
		}
		return tx.Commit()
	})
}

// transaction is one of the store's own.
type transaction struct {
	sqlexec.Executor
	tx *sql.Tx
}

// Script implements pgstore.Tx.
func (t transaction) Script(ctx context.Context, sql string) error {
	_, err := t.tx.ExecContext(ctx, sql) // without arguments: several statements
	return err
}

// Settle implements pgstore.Backend: before the first claim no handler's transactions can be in the way yet.
func (b *Backend) Settle(ctx context.Context) error {
	if b.settled.Load() {
		return nil
	}
	for range pgstore.OwnConns { // seats are lent in turn
		if err := b.lend(ctx, pgstore.Own, func(*seat) error { return nil }); err != nil {
			return err
		}
	}
	b.settled.Store(true)
	return nil
}

// Unsent implements pgstore.Backend.
func (b *Backend) Unsent(err error) bool {
	_, unsent := errors.AsType[*stdsql.NotSentError](err)
	return unsent
}

// Close implements pgstore.Backend.
func (b *Backend) Close() error {
	b.own.close()
	b.shared.close()
	return nil
}

// A statement whose context ended may take as long again to say so as it was given, within these bounds: much longer, and
// a heartbeat on a connection that fell silent costs the leases that the next one would keep.
const (
	shortGrace = 500 * time.Millisecond
	longGrace  = 2 * time.Second
)

// graceOf is read before work begins.
func graceOf(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return longGrace
	}
	return min(max(time.Until(end), shortGrace), longGrace)
}

// lend runs work on a connection. Not every library stops reading when the context ends: lib/pq asks the server to
// stop instead, and where the network swallows that it waits until the kernel gives up, a quarter of an hour later.
// So whoever calls waits beside it, and leaves it behind with its connection. It has nothing of the caller's left to
// do then, since every later statement fails.
func (b *Backend) lend(ctx context.Context, on pgstore.Conns, work func(*seat) error) error {
	from := b.shared
	if on == pgstore.Own {
		from = b.own
	}
	grace := graceOf(ctx)
	at, err := from.vacant(ctx)
	if err != nil {
		return Unconnected(err)
	}
	var over atomic.Bool // who sets it gives the seat back
	done := make(chan error, 1)
	go func() {
		err := from.connect(ctx, at)
		if err != nil {
			err = Unconnected(err)
		} else {
			err = work(at)
		}
		if over.CompareAndSwap(false, true) {
			// A cancel request that came late must not hit the next statement.
			from.give(at, ctx.Err() == nil && !broken(err))
		} else {
			at.clear()
		}
		done <- err
	}()
	if err, ok := await(ctx, grace, done); ok {
		return err
	}
	if over.CompareAndSwap(false, true) {
		from.give(&seat{lent: at.lent}, false)
		return fmt.Errorf("the server does not answer: %w", ctx.Err())
	}
	return <-done // just now
}

// await waits for done, and when the context is over for the grace.
func await(ctx context.Context, grace time.Duration, done <-chan error) (error, bool) {
	select {
	case err := <-done:
		return err, true
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return err, true
	case <-timer.C:
		return nil, false
	}
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
