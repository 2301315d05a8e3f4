package pgstoretest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
)

// finishAll makes jobs with ids, and has them fail.
func finishAll(t testing.TB, s Store, ids ...string) {
	t.Helper()
	reqs := make([]core.EnqueueRequest, len(ids))
	for i, id := range ids {
		reqs[i] = withID(id)
	}
	Enqueue(t, s, reqs...)
	token := core.NewToken()
	got, err := s.Claim(context.Background(), core.ClaimRequest{Token: token, Lease: time.Minute,
		Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: len(ids)}}})
	require.NoError(t, err)
	require.Len(t, got.Jobs, len(ids))
	var acks []core.Ack
	for _, l := range leases(got, token) {
		acks = append(acks, core.Ack{Lease: l, Outcome: core.OutcomeFail})
	}
	_, err = s.Ack(context.Background(), acks)
	require.NoError(t, err)
}

// pruneAll prunes all finished jobs, without patience.
func pruneAll(t testing.TB, s Store) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	none := core.KeepRule{None: true}
	n, err := s.Prune(ctx, core.PruneRequest{Default: core.Keep{Completed: none, Failed: none, Cancelled: none}})
	require.NoError(t, err)
	return n
}

// prunesPassHeldRows: a row that somebody else's transaction holds, in whatever table, is left for later, and so is what a
// transaction that is open did; nobody waits.
func prunesPassHeldRows(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	schema, ctx := quoted(k.SchemaOf(s)), context.Background()
	finishAll(t, s, "a", "b", "c", "d")
	tx := k.Begin(t, s)
	_, err := tx.X.Exec(ctx, "select from "+schema+".finished where seq = (select seq from "+schema+".jobs where id = 'a') for update")
	require.NoError(t, err)
	_, err = tx.X.Exec(ctx, "select from "+schema+".jobs where id = 'b' for key share")
	require.NoError(t, err)
	Enqueue(t, tx.View, withID("new"))
	require.Equal(t, 2, pruneAll(t, s))
	for id, there := range map[string]bool{"a": true, "b": true, "c": false, "d": false} {
		_, err := s.Get(ctx, id)
		require.Equal(t, there, err == nil, "%s: %v", id, err)
	}
	require.Zero(t, pruneAll(t, s))
	require.NoError(t, tx.Commit())
	require.Equal(t, 2, pruneAll(t, s))
	k.CheckInvariants(t, k.SchemaOf(s))
}

// prunesLeaveRevivedJobs: a job that is being revived, by a transaction that is not committed yet, is no job to prune.
func prunesLeaveRevivedJobs(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	schema, ctx := quoted(k.SchemaOf(s)), context.Background()
	finishAll(t, s, "a", "b")
	tx := k.Begin(t, s)
	_, err := tx.X.Exec(ctx, `with f as (
			delete from `+schema+`.finished where seq = (select seq from `+schema+`.jobs where id = 'a') returning *),
		k as (insert into `+schema+`.tallies select queue, name, 0, -1, 0 from f)
		insert into `+schema+`.ready (seq, place, run_at, fence, bytes, attempts, stalls, snoozes, runs, priority, queue, name)
		select seq, seq, now(), fence, 7, 0, 0, 0, 0, 0, queue, name from f`)
	require.NoError(t, err)
	require.Equal(t, 1, pruneAll(t, s))
	require.NoError(t, tx.Commit())
	job, err := s.Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, core.StateWaiting, job.State)
	require.Zero(t, pruneAll(t, s))
}

// onePrunesAtATime: while another process prunes the schema there is nothing to do for this one.
func onePrunesAtATime(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	finishAll(t, s, "a", "b")
	tx := k.Begin(t, s)
	_, err := tx.X.Exec(context.Background(), "select pg_advisory_xact_lock(hashtextextended('stint prune ' || $1::text, 0))", k.SchemaOf(s))
	require.NoError(t, err)
	require.Zero(t, pruneAll(t, s))
	require.NoError(t, tx.Rollback())
	require.Equal(t, 2, pruneAll(t, s))
}

// workPassesAPrune: while a prune has deleted and not committed, jobs are enqueued, claimed and ended, in a transaction of
// the application's too, and others are revived: nobody waits.
func workPassesAPrune(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	schema, ctx := pgsql.NewSchema(k.SchemaOf(s)), context.Background()
	finishAll(t, s, "a", "b", "late")
	require.NoError(t, s.Retry(ctx, "late"))
	tx := k.Begin(t, s)
	n, _, err := pgsql.NewSession(schema.In(tx.X), nil, core.Limits{}).Whole().Prune(ctx, schema,
		core.PruneRequest{Default: core.Keep{Failed: core.KeepRule{None: true}}}, 10, pgsql.Pruned{})
	require.NoError(t, err)
	require.Equal(t, 2, n)

	soon, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err = s.Enqueue(soon, []core.EnqueueRequest{Request("job"), withID("c")})
	require.NoError(t, err)
	token := core.NewToken()
	got, err := s.Claim(soon, core.ClaimRequest{Token: token, Lease: time.Minute,
		Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 10}}})
	require.NoError(t, err)
	require.Len(t, got.Jobs, 3)
	ends := leases(got, token)
	own := k.Begin(t, s)
	require.NoError(t, own.View.Complete(soon, ends[0], nil))
	require.NoError(t, own.Commit())
	results, err := s.Ack(soon, []core.Ack{{Lease: ends[1], Outcome: core.OutcomeFail}, {Lease: ends[2], Outcome: core.OutcomeComplete}})
	require.NoError(t, err)
	for _, r := range results {
		require.NoError(t, r.Err)
	}
	require.NoError(t, s.Retry(soon, ends[1].ID))
	counts, err := s.Counts(soon, "")
	require.NoError(t, err)
	require.Equal(t, int64(2), counts[core.StateFailed], "what is not committed is still there")
	require.NoError(t, tx.Commit())
	k.CheckInvariants(t, k.SchemaOf(s))
}
