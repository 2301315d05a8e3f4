package bunstore

import (
	"time"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/pgstore/pgstd"
)

// NewOn is New on Postgres, on a backend that is there.
func NewOn(b pgstore.Backend, db *bun.DB, opts Options) (*Store, error) { return newOn(b, db, opts) }

// Waiting is how many calls wait for their turn to write to SQLite.
func Waiting(s *Store) int {
	t := &s.engine.(*lite).turn
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.urgent) + len(t.others)
}

// SetPatience has the calls of a store on Postgres give up after d.
func SetPatience(s *Store, d time.Duration) { pgstd.SetPatience(s.engine.(postgres).Store, d) }
