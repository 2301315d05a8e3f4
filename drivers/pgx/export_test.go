package pgxstore

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgstore"
)

// CheckInvariants looks at a schema's tables.
func CheckInvariants(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	return pgsql.NewSchema(schema).CheckInvariants(ctx, executor{pool})
}

// Schema is the name of the store's schema.
func (s *Store) Schema() string { return pgstore.SchemaOf(s.store) }
