package pgstoretest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgstore"
)

// oddSchemaName: any name does.
func oddSchemaName(t testing.TB, k *Kit) {
	db := k.DB(t)
	ctx := context.Background()
	name := `Ünfug "it's" \ {}. %s $1 ` + rand.Text()[:17]
	require.NoError(t, db.Migrate(ctx, name))
	t.Cleanup(func() { k.Exec(t, "drop schema "+quoted(name)+" cascade") })
	s := k.OpenAt(t, name, nil)
	Enqueue(t, s, Request("job"))
	AckAll(t, s, Take(t, s, 1))
	k.CheckInvariants(t, name)

	var invalid *core.InvalidError
	for _, bad := range []string{strings.Repeat("x", 64), "\x00", "\xff"} {
		require.ErrorAs(t, db.Migrate(ctx, bad), &invalid)
		_, err := db.New(bad)
		require.ErrorAs(t, err, &invalid)
	}
}

// migrateAtOnce: ten processes that start together make one schema.
func migrateAtOnce(t testing.TB, k *Kit) {
	db, name := k.DB(t), k.Name()
	_, err := db.New(name)
	var missing *pgstore.SchemaError
	require.ErrorAs(t, err, &missing)
	require.Zero(t, missing.Have)

	errs := make([]error, 10)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = db.Migrate(context.Background(), name) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	s := k.OpenAt(t, name, nil)
	require.NoError(t, s.Migrate(context.Background()))
	Enqueue(t, s, Request("job"))
	require.Len(t, Claim(t, s, 1, "job").Jobs, 1)
}

// newerSchema: one that a later release made is left alone, unless it says that it serves this one.
func newerSchema(t testing.TB, k *Kit) {
	db, name := k.DB(t), k.Schema(t)
	ctx := context.Background()
	set := func(oldest int) {
		k.Exec(t, fmt.Sprintf("delete from %s.schema_version where version = 99", name))
		k.Exec(t, fmt.Sprintf("insert into %s.schema_version values (99, %d)", name, oldest))
	}
	t.Cleanup(func() { k.Exec(t, fmt.Sprintf("delete from %s.schema_version where version = 99", name)) })
	var newer *pgstore.SchemaError
	set(98)
	_, err := db.New(name)
	require.ErrorAs(t, err, &newer)
	require.Equal(t, 99, newer.Have)
	require.ErrorAs(t, db.Migrate(ctx, name), &newer)
	set(1)
	require.NoError(t, db.Migrate(ctx, name))
	k.OpenAt(t, name, nil)
}

// migrateWaitsInTurn: a migration that meets a lock does not queue for it for long, and goes on when it is free.
func migrateWaitsInTurn(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	name := k.SchemaOf(s)
	ctx := context.Background()
	k.Exec(t, fmt.Sprintf("truncate %s.ready", name)) // so that it has something to do
	tx := k.Begin(t, s)
	_, err := tx.X.Exec(ctx, fmt.Sprintf("lock table %s.ready in share mode", name))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- k.DB(t).Migrate(ctx, name) }()
	k.waiting(t, 1)
	require.Eventually(t, func() bool {
		return k.Numbers(t, "select count(*) from pg_locks where not granted")[0] == 0
	}, 10*time.Second, 5*time.Millisecond, "it gives up, and everybody behind it can go on")
	require.NoError(t, tx.Rollback())
	require.NoError(t, <-done)
}

// plansOutliveEmptyTables: statements that were prepared while nothing was there serve 100,000 jobs (an idling
// worker is the normal start).
func plansOutliveEmptyTables(t testing.TB, k *Kit) {
	s := k.Own(t)
	k.Exec(t, fmt.Sprintf(`vacuum analyze %[1]s.jobs, %[1]s.ready, %[1]s.delayed, %[1]s.leases, %[1]s.finished`, k.SchemaOf(s)))
	for range 20 {
		Enqueue(t, s, Request("job"))
		AckAll(t, s, Take(t, s, 1))
		require.Empty(t, Claim(t, s, 100, "job").Jobs)
	}
	reqs := make([]core.EnqueueRequest, 1000)
	for i := range reqs {
		reqs[i] = Request("job")
	}
	for range 100 {
		Enqueue(t, s, reqs...)
	}
	start := time.Now()
	for range 100 {
		AckAll(t, s, Take(t, s, 100))
	}
	// Plans that read a table take more than 100 ms for each claim.
	require.Less(t, time.Since(start), 9*time.Second)
}
