package pqstore

import (
	"context"
	"database/sql"

	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/stdsql"
)

// CheckInvariants looks at a schema's tables.
func CheckInvariants(ctx context.Context, db *sql.DB, schema string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return pgsql.NewSchema(schema).CheckInvariants(ctx, arrays{stdsql.On(conn)})
}

// Schema is the name of the store's schema.
func (s *Store) Schema() string { return s.opts.Schema }

// Options are those that the store was made with, defaults filled in.
func (s *Store) Options() Options { return s.opts }
