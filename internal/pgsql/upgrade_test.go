package pgsql

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// TestUpgrade: a schema of the first version, with jobs in it, becomes one of this version, which programs of the first
// go on using.
func TestUpgrade(t *testing.T) {
	ctx := context.Background()
	conn, s := migrated(t)
	x := onConn{conn}
	req := core.EnqueueRequest{Name: "job", Queue: "q", MaxAttempts: 1, Backoff: core.DefaultBackoff()}
	reqs := []core.EnqueueRequest{req, req}
	session := func() *Session { return NewSession(s.In(x), nil, core.Limits{}) }
	var lanes Lanes
	require.NoError(t, lanes.Ensure(ctx, reqs, func(ctx context.Context, do func(context.Context, *Session) error) error {
		return do(ctx, session())
	}))
	_, err := session().Enqueue(ctx, reqs, Notify{})
	require.NoError(t, err)
	claim := func() {
		got, err := session().Claim(ctx, core.ClaimRequest{Token: core.NewToken(), Lease: time.Minute,
			Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 1}}})
		require.NoError(t, err)
		require.Len(t, got.Jobs, 1)
	}
	claim()
	for _, text := range []string{"drop view {}.job_status", "drop table {}.dedupe", "drop table {}.schedules", "drop table {}.events, {}.entities, {}.cursors, {}.notes", "alter table {}.jobs drop column dedupe_key",
		"delete from {}.schema_version where version > 1"} { // as it was
		_, err := s.In(x).Exec(ctx, text)
		require.NoError(t, err)
	}
	var old *SchemaError
	require.ErrorAs(t, s.CheckSchema(ctx, x), &old, "a program does not come before what its statements name")

	for range 2 {
		require.NoError(t, pgx.BeginFunc(ctx, conn, func(pgx.Tx) error {
			return s.Migrate(ctx, x, func(ctx context.Context, sql string) error { return conn.PgConn().Exec(ctx, sql).Close() })
		}))
	}
	require.NoError(t, s.CheckSchema(ctx, x))
	require.NoError(t, s.CheckInvariants(ctx, x))
	var active, waiting int
	_, err = sqlexec.One(ctx, s.In(x), []any{&active, &waiting}, `select count(*) filter (where state = 'active'),
		count(*) filter (where state = 'waiting') from {}.job_status`)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{active, waiting})
	claim()
	// What a program of version 1 looks at.
	have, serves, err := s.version(ctx, s.In(x))
	require.NoError(t, err)
	require.Equal(t, Version, have)
	require.Equal(t, 1, serves)
}

// TestFilesMatchVersion: each migration is one version.
func TestFilesMatchVersion(t *testing.T) {
	files, err := fs.Glob(Migrations(), "*.sql")
	require.NoError(t, err)
	require.Len(t, files, Version)
}

// TestStatusReadsWhatIsAskedFor: a query of the view that names a state and a queue reads no other zone.
func TestStatusReadsWhatIsAskedFor(t *testing.T) {
	conn, s := migrated(t)
	for state, zone := range map[string]string{"active": "leases", "failed": "finished_history", "delayed": "delayed_due"} {
		plan := explained(t, conn, s.text(`select * from {}.job_status where state = '`+state+`' and queue = $1::text`))
		for _, each := range []string{"ready", "leases", "delayed_due", "finished_history"} {
			require.Equal(t, each == zone, plan.uses(each), "%s: %s", state, each)
		}
	}
}

// TestLogsMigration: a schema is asked for a journal by the number of the migration that makes it.
func TestLogsMigration(t *testing.T) {
	_, err := fs.Stat(Migrations(), fmt.Sprintf("%03d_journal.sql", withLog))
	require.NoError(t, err)
}
