package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/litesql"
	"github.com/stintmq/stint/internal/pgstore/pgstd"
	"github.com/stintmq/stint/internal/stdsql"
)

// New returns a store in the database of db, which the caller opened and closes after the store. The dialect of db says
// which kind it is: SQLite or Postgres; another is a *core.UnsupportedError. The database must have been migrated
// (Migrate; else *SchemaError).
//
// SQLite is opened with modernc.org/sqlite. It must be in WAL mode, and every connection needs a busy_timeout and
// foreign_keys: put them into the data source name, as in
//
//	file:app.db?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_pragma=synchronous(full)
//
// What is missing comes in one error. The store takes connections of db for its calls: with SetMaxOpenConns(1)
// a transaction of the application's holds up all of them, reads included.
//
// Postgres is opened with pgdriver, pgx/stdlib or lib/pq. SetMaxOpenConns, if any, must be more than 5, and more than 6
// where the store listens on a connection of db: it keeps that many for itself.
func New(db *bun.DB, opts Options) (*Store, error) {
	kind, err := dialectOf(db)
	if err != nil {
		return nil, err
	}
	if kind == dialect.PG {
		return newPostgres(db, opts)
	}
	if opts.Synchronous != "" {
		return nil, &core.InvalidError{Field: "Options.Synchronous", Reason: "is for OpenSQLite; set it where db is opened"}
	}
	if err := opts.forLite(); err != nil {
		return nil, err
	}
	ctx := context.Background()
	busy, err := checkSettings(ctx, db.DB)
	if err != nil {
		return nil, err
	}
	s, err := (&lite{writer: db.DB, readers: db.DB, listener: db.DB, lock: true, opts: opts, busy: busy}).start(ctx)
	if err != nil {
		return nil, err
	}
	return onLite(s, db), nil
}

// Migrate brings the schema in db up to date, making it if it is not there. It may be repeated, and run from several
// processes at once. Of the options, which may be given once, it takes the Schema. On Postgres a lock that others hold
// is waited for for a second at a time, so that no heartbeat queues behind a migration that does; after five minutes it
// gives up.
func Migrate(ctx context.Context, db *bun.DB, opts ...Options) error {
	o, err := once(opts)
	if err != nil {
		return err
	}
	kind, err := dialectOf(db)
	if err != nil {
		return err
	}
	if kind == dialect.PG {
		return pgstd.Migrate(ctx, db.DB, o.Schema)
	}
	if err := o.forLite(); err != nil {
		return err
	}
	return migrate(ctx, db.DB)
}

func dialectOf(db *bun.DB) (dialect.Name, error) {
	if db == nil {
		return dialect.Invalid, &core.InvalidError{Field: "db", Reason: "must not be nil"}
	}
	name := db.Dialect().Name()
	if name != dialect.SQLite && name != dialect.PG {
		return name, &core.UnsupportedError{Op: "bunstore on " + name.String(), Reason: "it knows the dialects of SQLite and Postgres"}
	}
	return name, nil
}

// checkSettings looks at two connections where there can be two: a pragma that was run on one of them, and is
// not in the data source name, is missing on the other. It returns the busy_timeout.
func checkSettings(ctx context.Context, db *sql.DB) (time.Duration, error) {
	conns := 2
	if db.Stats().MaxOpenConnections == 1 {
		conns = 1
	}
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	var missing []error
	var busy time.Duration
	var held []*sql.Conn
	for range conns {
		conn, err := db.Conn(ctx)
		if err != nil {
			missing = append(missing, litesql.Fault(err))
			break
		}
		held = append(held, conn)
		if busy, err = checkConn(ctx, conn); err != nil {
			missing = append(missing, err)
			break
		}
	}
	for _, conn := range held {
		if err := conn.Close(); err != nil {
			missing = append(missing, err)
		}
	}
	if len(missing) > 0 {
		return 0, fmt.Errorf("stint: the database is not ready: %w", errors.Join(missing...))
	}
	return busy, nil
}

func checkConn(ctx context.Context, conn *sql.Conn) (busy time.Duration, err error) {
	var mode string
	var timeout, foreignKeys int64
	for _, pragma := range []struct {
		name string
		dest any
	}{{"journal_mode", &mode}, {"busy_timeout", &timeout}, {"foreign_keys", &foreignKeys}} {
		if err := conn.QueryRowContext(ctx, "pragma "+pragma.name).Scan(pragma.dest); err != nil {
			return 0, litesql.Fault(err)
		}
	}
	var missing []error
	if mode != "wal" {
		missing = append(missing, fmt.Errorf("journal_mode is %s, not wal: add _pragma=journal_mode(wal)", mode))
	}
	if timeout <= 0 {
		missing = append(missing, errors.New("a connection has no busy_timeout: add _pragma=busy_timeout(5000)"))
	}
	if foreignKeys != 1 {
		missing = append(missing, errors.New("a connection does not enforce foreign keys: add _pragma=foreign_keys(1)"))
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return 0, litesql.Fault(err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	if err := litesql.CheckSchema(ctx, stdsql.In(tx)); err != nil {
		missing = append(missing, litesql.Fault(err))
	}
	return time.Duration(timeout) * time.Millisecond, errors.Join(missing...)
}
