package pgstoretest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/sqlexec"
)

// demotedConnectionsGo: a connection to a server that became a standby refuses to write, and will for ever. It is
// closed, and the next one is to the new primary.
func demotedConnectionsGo(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	Enqueue(t, s, Request("job"))
	require.NoError(t, k.DB(t).Backend.Do(ctx, pgstore.Own, func(ctx context.Context, x sqlexec.Executor) error {
		_, err := x.Exec(ctx, "set session default_transaction_read_only = on")
		return err
	}))
	refused := 0
	for range 12 {
		_, err := s.Claim(ctx, core.ClaimRequest{Token: core.NewToken(), Lease: time.Minute,
			Wants: []core.Want{{Queue: "q", Names: []string{"other"}, Limit: 1}}})
		if err != nil {
			require.ErrorIs(t, err, core.ErrUnavailable)
			refused++
		}
	}
	require.LessOrEqual(t, refused, 1, "the connection is used again")
	Take(t, s, 1)
}
