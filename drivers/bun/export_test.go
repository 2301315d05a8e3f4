package bunstore

import (
	"time"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/pgstore/pgstd"
)

// NewOn is New on Postgres, on a backend that is there.
func NewOn(b pgstore.Backend, db *bun.DB, opts Options) (*Store, error) { return newOn(b, db, opts) }

// SetPatience has the calls of a store on Postgres give up after d.
func SetPatience(s *Store, d time.Duration) { pgstd.SetPatience(s.engine.(postgres).Store, d) }
