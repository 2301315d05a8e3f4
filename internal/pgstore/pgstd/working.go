package pgstd

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/internal/stdsql"
)

const (
	// patience is how long one connection of the pool may take to answer before another is asked as well.
	patience = 500 * time.Millisecond
	// side is how many are asked side by side.
	side = 10
)

// candidate is a connection that answered, or why none did.
type candidate struct {
	conn *sql.Conn
	err  error
}

// working is stdsql.Working where idle connections of the pool may have fallen silent, all of them: each would be waited
// for until ctx ends. So others are asked beside it, until none is idle and a new one is made. Those that never answer
// are left behind.
func working(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	wait := patience
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)/4)
	}
	var decided atomic.Bool
	answers := make(chan candidate, side)
	ask := func() {
		conn, err := stdsql.Working(ctx, db)
		if err == nil && !decided.CompareAndSwap(false, true) {
			_ = conn.Close() // back to the pool; an error says that it was closed already
			return
		}
		answers <- candidate{conn, err}
	}
	next := time.NewTicker(max(wait, time.Millisecond))
	defer next.Stop()
	var first candidate
	for asked, idle := 0, true; ; {
		if idle && asked < side {
			idle = db.Stats().Idle > 0
			asked++
			go ask()
		}
		select {
		case first = <-answers:
		case <-ctx.Done():
			first.err = ctx.Err()
		case <-next.C:
			continue
		}
		break
	}
	if first.err != nil && !decided.CompareAndSwap(false, true) {
		for first.conn == nil { // one answered just now
			first = <-answers
		}
	}
	return first.conn, first.err
}
