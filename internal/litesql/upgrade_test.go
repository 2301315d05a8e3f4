package litesql

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// TestUpgrade: a database of the first version, with jobs in it, becomes one of this version, which programs of the
// first go on using.
func TestUpgrade(t *testing.T) {
	ctx := context.Background()
	db := database(t)
	within(t, db, func(x sqlexec.Executor) {
		s := NewSession(x, noon, core.Limits{})
		_, err := s.Enqueue(ctx, []core.EnqueueRequest{request("a", "job"), request("b", "job")})
		require.NoError(t, err)
		_, err = s.Claim(ctx, core.ClaimRequest{Token: core.NewToken(), Lease: time.Minute, Wants: wants(1, "job")})
		require.NoError(t, err)
		// As it was.
		for _, text := range []string{"drop table stint_schedules", "drop table stint_events", "drop table stint_cursors", "drop table stint_notes", "drop view stint_job_status", "drop table stint_dedupe",
			"alter table stint_jobs drop column dedupe_key", "delete from stint_schema where version > 1"} {
			_, err := x.Exec(ctx, text)
			require.NoError(t, err)
		}
		var old *core.SchemaError
		require.ErrorAs(t, CheckSchema(ctx, x), &old, "a program does not come before what its statements name")
	})
	within(t, db, func(x sqlexec.Executor) {
		require.NoError(t, Migrate(ctx, x))
		require.NoError(t, Migrate(ctx, x))
		require.NoError(t, CheckSchema(ctx, x))
		require.NoError(t, CheckInvariants(ctx, x))
		var active, waiting int
		_, err := sqlexec.One(ctx, x, []any{&active, &waiting},
			"select sum(state = 'active'), sum(state = 'waiting') from stint_job_status")
		require.NoError(t, err)
		require.Equal(t, []int{1, 1}, []int{active, waiting})
		// What a program of version 1 looks at.
		have, serves, err := schemaVersion(ctx, x)
		require.NoError(t, err)
		require.Equal(t, Version, have)
		require.Equal(t, 1, serves)
	})
}

// TestFilesMatchVersion: each migration is one version.
func TestFilesMatchVersion(t *testing.T) {
	files, err := fs.Glob(Migrations(), "*.sql")
	require.NoError(t, err)
	require.Len(t, files, Version)
}
