package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestBouncerShares: two clients of a bouncer that lends per transaction have one connection of the server.
func TestBouncerShares(t *testing.T) {
	s := Start(t)
	for mode, shared := range map[string]bool{"transaction": true, "session": false} {
		dsn := s.Bouncer(t, mode)
		a, b := connect(t, dsn), connect(t, dsn)
		var first, second int
		ctx := context.Background()
		require.NoError(t, a.QueryRow(ctx, "select pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&first))
		require.NoError(t, b.QueryRow(ctx, "select pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&second))
		require.Equal(t, shared, first == second, mode)
	}
}
