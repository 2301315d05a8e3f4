package pqstore

import (
	"context"
	"database/sql"

	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/pgstore/pgstd"
	"github.com/stintmq/stint/internal/sqlexec"
)

// CheckInvariants looks at a schema's tables.
func CheckInvariants(ctx context.Context, db *sql.DB, schema string) error {
	b, err := pgstd.NewBackend(db)
	if err != nil {
		return err
	}
	err = b.Do(ctx, pgstore.Shared, func(ctx context.Context, x sqlexec.Executor) error {
		return pgsql.NewSchema(schema).CheckInvariants(ctx, x)
	})
	_ = b.Close()
	return err
}

// Schema is the name of the store's schema.
func (s *Store) Schema() string { return pgstd.SchemaOf(s.store) }
