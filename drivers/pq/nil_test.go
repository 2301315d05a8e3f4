package pqstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
)

// TestNilArguments: without a database there is neither a store nor a migration.
func TestNilArguments(t *testing.T) {
	for name, call := range map[string]func() error{
		"New":     func() error { _, err := pqstore.New(nil, pqstore.Options{}); return err },
		"Migrate": func() error { return pqstore.Migrate(t.Context(), nil, "") },
	} {
		var invalid *core.InvalidError
		require.ErrorAs(t, call(), &invalid, name)
		require.Equal(t, &core.InvalidError{Field: "db", Reason: "must not be nil"}, invalid, name)
	}
}
