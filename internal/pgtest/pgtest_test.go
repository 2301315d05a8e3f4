package pgtest

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDSNIsSharedByTheProcess(t *testing.T) {
	t.Setenv(EnvDSN, "")
	dsns := make([]string, 4)
	var wg sync.WaitGroup
	for i := range dsns {
		wg.Go(func() { dsns[i] = DSN(t) })
	}
	wg.Wait()
	for _, dsn := range dsns {
		require.Equal(t, dsns[0], dsn)
	}
	run(t, dsns[0], "select 1")
}

func TestDSNOfTheEnvironmentWins(t *testing.T) {
	const dsn = "postgres://ann:secret@nowhere.invalid/jobs"
	t.Setenv(EnvDSN, dsn)
	t.Setenv(EnvBin, t.TempDir())
	require.Equal(t, dsn, DSN(t))
}

func TestSchemaIsUniqueAndDropped(t *testing.T) {
	conn := connect(t, DSN(t))
	exec := func(ctx context.Context, sql string) error {
		_, err := conn.Exec(ctx, sql)
		return err
	}
	count := func(name string) (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from pg_namespace where nspname = $1", name).Scan(&n))
		return n
	}
	var name string
	t.Run("used", func(t *testing.T) {
		name = Schema(t, exec)
		require.NotEqual(t, name, Schema(t, exec), "this one is never created")
		require.LessOrEqual(t, len(name), 40)
		require.Zero(t, count(name))
		require.NoError(t, exec(t.Context(), "create schema "+name+"; create table "+name+".t ()"))
		require.Equal(t, 1, count(name))
	})
	require.Zero(t, count(name), "it outlived its test")
}
