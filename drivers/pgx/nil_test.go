package pgxstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
)

// TestNilArguments: without a database there is neither a store nor a migration.
func TestNilArguments(t *testing.T) {
	for name, call := range map[string]func() error{
		"New":     func() error { _, err := pgxstore.New(nil, pgxstore.Options{}); return err },
		"Migrate": func() error { return pgxstore.Migrate(t.Context(), nil, "") },
	} {
		var invalid *core.InvalidError
		require.ErrorAs(t, call(), &invalid, name)
		require.Equal(t, &core.InvalidError{Field: "pool", Reason: "must not be nil"}, invalid, name)
	}
}
