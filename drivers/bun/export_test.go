package bunstore

import (
	"github.com/uptrace/bun"

	"github.com/stintmq/stint/internal/pgstore"
)

// NewOn is New on Postgres, on a backend that is there.
func NewOn(b pgstore.Backend, db *bun.DB, opts Options) (*Store, error) { return newOn(b, db, opts) }
