package pqstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	pqstore "github.com/stintmq/stint/drivers/pq"
)

// TestOddSchemaName: any name does.
func TestOddSchemaName(t *testing.T) {
	s := newSchemas(t)
	ctx := context.Background()
	name := `Ünfug "it's" \ {}. %s ` + s.name()[:20]
	require.NoError(t, pqstore.Migrate(ctx, s.db, name))
	t.Cleanup(func() {
		_, err := s.db.ExecContext(ctx, "drop schema "+pq.QuoteIdentifier(name)+" cascade")
		require.NoError(t, err)
	})
	store := openAt(t, s.db, pqstore.Options{Schema: name})
	enqueue(t, store, request("job"))
	ackAll(t, store, take(t, store, 1))
	checkInvariants(t, s.db, name)

	var invalid *core.InvalidError
	for _, bad := range []string{strings.Repeat("x", 64), "\x00", "\xff"} {
		require.ErrorAs(t, pqstore.Migrate(ctx, s.db, bad), &invalid)
		_, err := pqstore.New(s.db, pqstore.Options{Schema: bad})
		require.ErrorAs(t, err, &invalid)
	}
}

// TestMigrateAtOnce: ten processes that start together make one schema.
func TestMigrateAtOnce(t *testing.T) {
	s := newSchemas(t)
	name := s.name()
	_, err := pqstore.New(s.db, pqstore.Options{Schema: name})
	var missing *pqstore.SchemaError
	require.ErrorAs(t, err, &missing)
	require.Zero(t, missing.Have)

	errs := make([]error, 10)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = pqstore.Migrate(context.Background(), s.db, name) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	store := openAt(t, s.db, pqstore.Options{Schema: name})
	require.NoError(t, store.Migrate(context.Background()))
	enqueue(t, store, request("job"))
	require.Len(t, claim(t, store, 1, "job").Jobs, 1)
}

// TestNewerSchema: one that a later release made is left alone, unless it says that it serves this one.
func TestNewerSchema(t *testing.T) {
	s := newSchemas(t)
	name := s.name()
	ctx := context.Background()
	require.NoError(t, pqstore.Migrate(ctx, s.db, name))
	set := func(oldest int) {
		_, err := s.db.ExecContext(ctx, fmt.Sprintf("delete from %[1]s.schema_version where version = 99; insert into %[1]s.schema_version values (99, %[2]d)", name, oldest))
		require.NoError(t, err)
	}
	var newer *pqstore.SchemaError
	set(98)
	_, err := pqstore.New(s.db, pqstore.Options{Schema: name})
	require.ErrorAs(t, err, &newer)
	require.Equal(t, 99, newer.Have)
	require.ErrorAs(t, pqstore.Migrate(ctx, s.db, name), &newer)
	set(1)
	require.NoError(t, pqstore.Migrate(ctx, s.db, name))
	openAt(t, s.db, pqstore.Options{Schema: name})
}

// TestMigrateWaitsInTurn: a migration that meets a lock does not queue for it for long, and goes on when it is free.
func TestMigrateWaitsInTurn(t *testing.T) {
	s := newSchemas(t)
	name := s.name()
	ctx := context.Background()
	require.NoError(t, pqstore.Migrate(ctx, s.db, name))
	_, err := s.db.ExecContext(ctx, fmt.Sprintf("truncate %[1]s.ready", name)) // so that it has something to do
	require.NoError(t, err)
	tx, err := s.db.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(ctx, fmt.Sprintf("lock table %s.ready in share mode", name))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- pqstore.Migrate(ctx, s.db, name) }()
	time.AfterFunc(1200*time.Millisecond, func() { _ = tx.Rollback() })
	require.NoError(t, <-done)
}

// TestPlansOutliveEmptyTables: statements that were prepared while nothing was there serve 100,000 jobs (an idling
// worker is the normal start).
func TestPlansOutliveEmptyTables(t *testing.T) {
	s, spare := fresh(t)
	ctx := context.Background()
	_, err := spare.db.ExecContext(ctx, fmt.Sprintf(`vacuum analyze %[1]q.jobs, %[1]q.ready, %[1]q.delayed, %[1]q.leases, %[1]q.finished`, s.Schema()))
	require.NoError(t, err)
	for range 20 {
		enqueue(t, s, request("job"))
		ackAll(t, s, take(t, s, 1))
		require.Empty(t, claim(t, s, 100, "job").Jobs)
	}
	reqs := make([]core.EnqueueRequest, 1000)
	for i := range reqs {
		reqs[i] = request("job")
	}
	for range 100 {
		enqueue(t, s, reqs...)
	}
	start := time.Now()
	for range 100 {
		ackAll(t, s, take(t, s, 100))
	}
	// Plans that read a table take more than 100 ms for each claim.
	require.Less(t, time.Since(start), 5*time.Second)
}

func ackAll(t testing.TB, s core.Store, held []core.Lease) {
	t.Helper()
	acks := make([]core.Ack, len(held))
	for i := range held {
		acks[i] = core.Ack{Lease: held[i], Outcome: core.OutcomeComplete}
	}
	res, err := s.Ack(context.Background(), acks)
	require.NoError(t, err)
	for _, r := range res {
		require.Equal(t, core.AckResult{State: core.StateCompleted}, r)
	}
}
