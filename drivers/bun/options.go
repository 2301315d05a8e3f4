package bunstore

import (
	"context"
	"log/slog"

	"github.com/stintmq/stint/core"
)

// Options of a Store. The zero value is the default.
type Options struct {
	// Clock tells the time in tests; nil: the machine's on SQLite, the database's on Postgres.
	Clock core.Clock
	// Limits move the bounds of payloads and results.
	Limits core.Limits

	// Synchronous is SQLite's setting of that name, for OpenSQLite only (New takes what the *bun.DB has).
	// "": "FULL": what a call answered, or a transaction committed, survives the loss of power. "NORMAL" writes
	// less often: the file never breaks and nothing is lost when the process dies, but when the machine does, the
	// last transactions may be undone. It is about twice as fast for single calls and a sixth for batches.
	Synchronous string

	// Schema holds the store's tables, on Postgres only. "": DefaultSchema. Stores of different schemas know nothing of
	// each other.
	Schema string
	// Listen opens a connection that hears of the work of other processes, on Postgres only. nil: over pgdriver, and
	// whatever else shows its network connection, the store takes one of db's connections for that. Over other drivers
	// nobody listens, and work of other processes is found by polling; a worker's own process still wakes it at once.
	// Packages pgxlisten and pqlisten have it for pgx/stdlib and lib/pq.
	Listen func(ctx context.Context, channel string) (Listener, error)
	// QuietTx has enqueues in transactions (WithTx) tell nobody, so that their jobs are found by polling, on Postgres only.
	// NOTIFY holds up commits: the whole cluster makes them one at a time, about 2,000 per second. For those who commit
	// more.
	QuietTx bool
	// Logger hears when the wake channel goes down and comes back, on Postgres only. nil: nobody does.
	Logger *slog.Logger
}

// Listener is a connection that listens to a channel of Postgres. One goroutine uses it.
type Listener interface {
	// Next waits for a notification and returns its payload. It returns an error when ctx ends, after which the
	// listener is still of use, and when the connection is broken, after which it is not.
	Next(ctx context.Context) (payload string, err error)
	// Ping asks the server for a sign of life. Notifications that come meanwhile are Next's.
	Ping(ctx context.Context) error
	// Close ends the connection, and gives up when ctx ends.
	Close(ctx context.Context)
}

func once(opts []Options) (Options, error) {
	switch len(opts) {
	case 0:
		return Options{}, nil
	case 1:
		return opts[0], nil
	default:
		return Options{}, &core.InvalidError{Field: "opts", Reason: "may be given once"}
	}
}

// forLite refuses what makes no sense on SQLite.
func (o Options) forLite() error {
	switch {
	case o.Synchronous != "" && o.Synchronous != "NORMAL" && o.Synchronous != "FULL":
		return &core.InvalidError{Field: "Options.Synchronous", Reason: `must be "NORMAL" or "FULL"`}
	case o.Schema != "":
		return &core.InvalidError{Field: "Options.Schema", Reason: "is for Postgres"}
	case o.QuietTx:
		return &core.InvalidError{Field: "Options.QuietTx", Reason: "is for Postgres"}
	case o.Listen != nil:
		return &core.InvalidError{Field: "Options.Listen", Reason: "is for Postgres"}
	}
	return o.Limits.Validate()
}
