package pgstd

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/internal/stdsql"
	"github.com/stintmq/stint/journal"
)

// Store is a pgstore.Store whose transactions are database/sql's.
type Store struct {
	*store
	kept *stdsql.Kept // statements of the application's transactions
}

type store = pgstore.Store

const startTimeout = 30 * time.Second

// New returns a store in a database and a schema, see pgstore.New. b is db's.
func New(b pgstore.Backend, db *sql.DB, opts pgstore.Options) (*Store, error) {
	opts.Deaf = true
	s, err := pgstore.New(b, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	kept, err := stdsql.Keep(ctx, db, pgsql.NewSchema(pgstore.SchemaOf(s)).InTransactions())
	if err != nil {
		return nil, errors.Join(pgsql.Fault(ctx, err, false), s.Close())
	}
	return &Store{s, kept}, nil
}

// View is pgstore.View inside tx; nil: every call is refused.
func View(s *Store, tx *sql.Tx) core.TxView {
	if tx == nil {
		return pgstore.View(s.store, nil, nil)
	}
	return pgstore.View(s.store, arrays{s.kept.In(tx)}, func() any { return tx })
}

// SchemaOf names the schema that holds a store's tables.
func SchemaOf(s *Store) string { return pgstore.SchemaOf(s.store) }

// SetPatience is pgstore.SetPatience.
func SetPatience(s *Store, d time.Duration) { pgstore.SetPatience(s.store, d) }

// closePatience is how long Close waits for a server that says nothing.
const closePatience = 2 * time.Second

// Close is pgstore.Store.Close.
func (s *Store) Close() error {
	err := s.store.Close()
	// Letting go of statements asks the server on each of the application's connections, without a deadline. Where
	// it does not answer they end with these.
	done := make(chan error, 1)
	go func() { done <- s.kept.Close() }()
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case e := <-done:
		return errors.Join(err, e)
	case <-patience.C:
		return err
	}
}

// Log is the store's journal in transactions that unwrap makes database/sql's; nil: there is none.
func Log[Tx any](s *Store, jobs journal.Jobs[Tx], unwrap func(Tx) *sql.Tx, begin pgstore.Begin[Tx]) journal.Store[Tx] {
	in := func(tx Tx) sqlexec.Executor {
		std := unwrap(tx)
		if std == nil {
			return nil
		}
		return arrays{s.kept.In(std)}
	}
	return pgstore.NewLog(s.store, jobs, in, func(tx Tx) any { return unwrap(tx) }, begin)
}
