package pgxstore

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/internal/pgsql"
)

// CheckInvariants looks at a schema's tables.
func CheckInvariants(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	return pgsql.NewSchema(schema).CheckInvariants(ctx, executor{pool})
}

// Schema is the name of the store's schema.
func (s *Store) Schema() string { return s.opts.Schema }

// Options are those that the store was made with, defaults filled in.
func (s *Store) Options() Options { return s.opts }
