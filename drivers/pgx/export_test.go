package pgxstore

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/journal"
)

// NewBackend is what New makes for itself.
func NewBackend(pool *pgxpool.Pool) (pgstore.Backend, error) { return newBackend(pool, false) }

// NewOn is New on a backend that is there.
func NewOn(b pgstore.Backend, pool *pgxpool.Pool, opts Options) (*Store, error) {
	return newOn(b, pool, opts)
}

// View is WithTx with an executor of the caller's.
func View(s *Store, tx pgx.Tx, x sqlexec.Executor) core.TxView {
	return pgstore.View(s.store, x, func() any { return connOf(tx) })
}

// Executor runs statements in a transaction.
func Executor(tx pgx.Tx) sqlexec.Executor { return executor{tx} }

// JournalOn is Journal with executors of the caller's.
func JournalOn(s *Store, over func(sqlexec.Executor) sqlexec.Executor) journal.Store[pgx.Tx] {
	return newJournal(s, func(tx pgx.Tx) sqlexec.Executor { return over(executor{tx}) })
}

// SetPatience has a store's calls give up after d.
func SetPatience(s *Store, d time.Duration) { pgstore.SetPatience(s.store, d) }
