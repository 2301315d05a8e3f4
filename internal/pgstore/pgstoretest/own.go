package pgstoretest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/internal/pgstore"
	"github.com/stintmq/stint/internal/sqlexec"
)

// ownSettings: connections that claim are durable and READ COMMITTED, whatever the database says (Q4).
func ownSettings(t testing.TB, k *Kit) {
	var name string
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	backend := k.DB(t).Backend
	ask := func(x ...any) {
		require.NoError(t, backend.Do(ctx, pgstore.Own, func(ctx context.Context, e sqlexec.Executor) error {
			_, err := sqlexec.One(ctx, e, x, "select current_setting('synchronous_commit'), current_setting('default_transaction_isolation')")
			return err
		}))
	}
	require.NoError(t, backend.Do(ctx, pgstore.Shared, func(ctx context.Context, e sqlexec.Executor) error {
		_, err := sqlexec.One(ctx, e, []any{&name}, "select current_database()::text")
		return err
	}))
	database := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	for _, setting := range []string{"synchronous_commit = off", "default_transaction_isolation = serializable"} {
		k.Exec(t, "alter database "+database+" set "+setting)
		reset := "alter database " + database + " reset " + strings.Fields(setting)[0]
		t.Cleanup(func() { k.Exec(t, reset) })
	}
	// Connections that are there already have what was said before: a backend of its own has new ones.
	fresh, err := k.connect(t)
	require.NoError(t, err)
	backend = fresh.Backend
	defer func() { require.NoError(t, fresh.Backend.Close()); require.NoError(t, fresh.Close()) }()
	require.NoError(t, backend.Settle(ctx))
	var durable, level string
	ask(&durable, &level)
	require.Equal(t, []string{"on", "read committed"}, []string{durable, level})
}
