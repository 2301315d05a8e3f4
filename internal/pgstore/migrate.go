package pgstore

import (
	"context"
	"time"

	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	migratePause   = 500 * time.Millisecond // between two tries to get a lock
	migrateTimeout = 5 * time.Minute
)

// Migrate makes the tables in a schema ("": DefaultSchema), or brings them up to date. It may be repeated, and run
// from several processes at once. A lock that others hold is waited for for a second at a time, so that no
// heartbeat queues behind a migration that does; after five minutes it gives up.
func Migrate(ctx context.Context, b Backend, schema string) error {
	if schema == "" {
		schema = DefaultSchema
	}
	if err := pgsql.ValidateSchema(schema); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	sc := pgsql.NewSchema(schema)
	for {
		err := b.Atomic(ctx, Shared, func(ctx context.Context, tx Tx) error { return sc.Migrate(ctx, tx, tx.Script) })
		if !pgsql.WaitedTooLong(err) {
			return pgsql.Fault(ctx, err, true)
		}
		pause := time.NewTimer(migratePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return pgsql.Fault(ctx, err, false)
		}
	}
}

// Migrate implements core.Migrator.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return Migrate(ctx, s.backend, s.opts.Schema)
}

// check looks at the schema's version.
func (s *Store) check() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	err := s.backend.Do(ctx, Shared, func(ctx context.Context, x sqlexec.Executor) error { return s.schema.CheckSchema(ctx, x) })
	return pgsql.Fault(ctx, err, false)
}
