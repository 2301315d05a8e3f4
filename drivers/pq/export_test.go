package pqstore

import (
	"database/sql"
	"time"

	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/pgstore/pgstd"
)

// NewOn is New on a backend that is there.
func NewOn(b pgstore.Backend, db *sql.DB, opts Options) (*Store, error) { return newOn(b, db, opts) }

// SetPatience has a store's calls give up after d.
func SetPatience(s *Store, d time.Duration) { pgstd.SetPatience(s.store, d) }
