package pgstd

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/internal/stdsql"
)

// seats are connections that the store takes out of a *sql.DB and keeps, each with its statements prepared. What
// runs there waits for no transaction of the application's. Safe for concurrent use.
type seats struct {
	db    *sql.DB
	free  chan *seat
	spill bool // with no seat free, take a connection of the application's for the one call
	era   atomic.Uint64
}

// seat is a place for a connection.
type seat struct {
	conn *sql.Conn // nil: none yet, or it broke
	x    sqlexec.Executor
	era  uint64 // of the connection
	used time.Time
	lent bool // the application's, for one call
}

func newSeats(db *sql.DB, n int, spill bool) *seats {
	s := &seats{db: db, free: make(chan *seat, n), spill: spill}
	for range n {
		s.free <- &seat{}
	}
	return s
}

// vacant returns a seat that nobody uses.
func (s *seats) vacant(ctx context.Context) (*seat, error) {
	select {
	case at := <-s.free:
		return at, nil
	default:
	}
	if s.spill {
		return &seat{lent: true}, nil
	}
	select {
	case at := <-s.free:
		return at, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// give takes a seat back. A connection that is not well is closed. Where one broke that calls have to themselves, the
// others most likely did as well: a new era begins, in which they are made anew, rather than when a heartbeat has waited
// for each in vain. (The callers of those that spill give up for reasons of their own.)
func (s *seats) give(at *seat, well bool) {
	if !well && !s.spill {
		s.era.Add(1)
	}
	switch {
	case at.conn == nil:
	case !well:
		at.clear()
	case at.lent:
		_ = at.conn.Close() // an error says that it was closed already
	}
	if !at.lent {
		at.used = time.Now()
		s.free <- at
	}
}

// close closes the connections. Nothing is lent any more.
func (s *seats) close() {
	for range cap(s.free) {
		(<-s.free).clear()
	}
}

func (at *seat) clear() {
	if at.conn != nil {
		stdsql.Discard(at.conn)
	}
	at.conn, at.x = nil, nil
}

const staleAfter = time.Second // without use

// connect sees to it that a seat has a connection, and that it works: what breaks later may have done a statement, and
// nobody knows.
func (s *seats) connect(ctx context.Context, at *seat) error {
	era := s.era.Load()
	if at.conn != nil {
		if at.era == era && (time.Since(at.used) < staleAfter || at.conn.PingContext(ctx) == nil) {
			return nil
		}
		at.clear()
	}
	conn, err := working(ctx, s.db)
	if err != nil {
		return err
	}
	if !at.lent {
		if _, err := conn.ExecContext(ctx, pgsql.Settings); err != nil {
			stdsql.Discard(conn)
			return err
		}
	}
	at.conn, at.era, at.used = conn, era, time.Now()
	if at.x = stdsql.On(conn); !at.lent {
		at.x = stdsql.KeepOn(conn)
	}
	return nil
}
