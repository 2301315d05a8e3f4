package pqstore

import (
	"database/sql"

	"github.com/stintmq/stint/internal/pgstore"
)

// NewOn is New on a backend that is there.
func NewOn(b pgstore.Backend, db *sql.DB, opts Options) (*Store, error) { return newOn(b, db, opts) }
