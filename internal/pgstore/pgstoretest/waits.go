package pgstoretest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// waiting waits until n locks in the database are waited for.
func (k *Kit) waiting(t testing.TB, n int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		return k.Numbers(t, "select count(*) from pg_locks where not granted")[0] >= n
	}, 5*time.Second, time.Millisecond, "nobody waits")
}

// clock is the database's time, also inside a transaction that began long ago.
func clock(t testing.TB, x sqlexec.Executor) (now time.Time) {
	t.Helper()
	_, err := sqlexec.One(context.Background(), x, []any{&now}, "select clock_timestamp()")
	require.NoError(t, err)
	return now
}

// timesComeAfterWaits: a statement that waited writes the time after it did. Else a claim hands out leases that are
// old already, a heartbeat extends them by less than it says, and a delay is cut short.
func timesComeAfterWaits(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	schema, ctx := quoted(k.SchemaOf(s)), context.Background()
	// during runs a call while its table is locked, and returns when that ended.
	during := func(table string, call func() error) time.Time {
		tx := k.Begin(t, s)
		_, err := tx.X.Exec(ctx, fmt.Sprintf("lock table %s.%s in access exclusive mode", schema, table))
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- call() }()
		k.waiting(t, 1)
		released := clock(t, tx.X)
		require.NoError(t, tx.Rollback())
		require.NoError(t, <-done)
		return released
	}
	// Lanes are there already, and what is prepared.
	Enqueue(t, s, Request("other"))
	AckAll(t, s, takeNamed(t, s, "other"))

	released := during("jobs", func() error {
		_, err := s.Enqueue(ctx, []core.EnqueueRequest{withID("id")})
		return err
	})
	job, err := s.Get(ctx, "id")
	require.NoError(t, err)
	require.False(t, job.EnqueuedAt.Before(released), "enqueued before the wait")

	var got core.Claimed
	token := core.NewToken()
	released = during("leases", func() (err error) {
		got, err = s.Claim(ctx, core.ClaimRequest{Token: token, Lease: time.Minute,
			Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 1}}})
		return err
	})
	require.Len(t, got.Jobs, 1)
	require.False(t, got.Jobs[0].ClaimedAt.Before(released), "claimed before the wait")

	released = during("leases", func() error {
		_, err := s.Extend(ctx, leases(got, token), time.Hour)
		return err
	})
	until := k.Numbers(t, "select (extract(epoch from until) * 1000000)::bigint from "+schema+".leases")[0]
	require.GreaterOrEqual(t, until, released.Add(time.Hour).UnixMicro(), "extended from before the wait")

	released = during("leases", func() error {
		_, err := s.Ack(ctx, []core.Ack{{Lease: leases(got, token)[0], Outcome: core.OutcomeRetry, Delay: time.Hour}})
		return err
	})
	job, err = s.Get(ctx, "id")
	require.NoError(t, err)
	require.False(t, job.RunAt.Before(released.Add(time.Hour)), "delayed from before the wait")

	tx := k.Begin(t, s)
	began := clock(t, tx.X)
	Enqueue(t, tx.View, withID("later"))
	require.NoError(t, tx.Commit())
	job, err = s.Get(ctx, "later")
	require.NoError(t, err)
	require.False(t, job.EnqueuedAt.Before(began), "enqueued when the transaction began")
}

func takeNamed(t testing.TB, s core.Store, name string) []core.Lease {
	t.Helper()
	token := core.NewToken()
	got, err := s.Claim(context.Background(), core.ClaimRequest{Token: token, Lease: time.Minute,
		Wants: []core.Want{{Queue: "q", Names: []string{name}, Limit: 1}}})
	require.NoError(t, err)
	require.Len(t, got.Jobs, 1)
	return leases(got, token)
}

// verbsFollowTheJob: an admin verb that waited for a job's row finds it gone from there, since a claim took it
// meanwhile. It looks again, by a new statement, and never says that there is no such job (Q8).
func verbsFollowTheJob(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	schema, ctx := quoted(k.SchemaOf(s)), context.Background()
	verbs := map[string]func(id string) error{
		"cancel": func(id string) error {
			state, err := s.Cancel(ctx, id)
			if err == nil && state != core.StateActive {
				err = fmt.Errorf("it was active, not %s", state)
			}
			return err
		},
		"remove": func(id string) error {
			removed, err := s.Remove(ctx, id)
			if err == nil && removed {
				err = fmt.Errorf("an active job was removed")
			}
			return err
		},
	}
	for verb, call := range verbs {
		Enqueue(t, s, withID(verb))
		tx := k.Begin(t, s)
		_, err := tx.X.Exec(ctx, fmt.Sprintf(`with c as (
				delete from %[1]s.ready where seq = (select seq from %[1]s.jobs where id = $1::text) returning *)
			insert into %[1]s.leases (seq, place, run_at, fence, until, claimed_at, token, bytes, attempts, stalls, snoozes, runs,
				priority, queue, name, worker)
			select seq, place, run_at, 1, now() + interval '1 hour', now(), $2::uuid, bytes, 0, 0, 0, 0, priority, queue, name, 'w'
			from c`, schema), verb, core.NewToken())
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- call(verb) }()
		k.waiting(t, 1)
		require.NoError(t, tx.Commit())
		require.NoError(t, <-done, verb)
		job, err := s.Get(ctx, verb)
		require.NoError(t, err, verb)
		require.Equal(t, core.StateActive, job.State, verb)
	}
}

// idsInOneOrder: a batch inserts its ids in an order of theirs, not of the request, so that batches that overlap never
// wait for each other in a circle: [b, a] has a already while it waits for b.
func idsInOneOrder(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	first, batch, third := k.Begin(t, s), k.Begin(t, s), k.Begin(t, s)
	Enqueue(t, first.View, withID("b"))
	enqueue := func(tx *Tx, ids ...string) <-chan error {
		done := make(chan error, 1)
		var reqs []core.EnqueueRequest
		for _, id := range ids {
			reqs = append(reqs, withID(id))
		}
		go func() {
			_, err := tx.View.Enqueue(ctx, reqs)
			done <- err
		}()
		return done
	}
	both := enqueue(batch, "b", "a")
	k.waiting(t, 1)
	one := enqueue(third, "a")
	require.Eventually(t, func() bool {
		return len(one) > 0 || k.Numbers(t, "select count(*) from pg_locks where not granted")[0] > 1
	}, 5*time.Second, time.Millisecond)
	inOrder := len(one) == 0
	if !inOrder {
		require.NoError(t, <-one)
		require.NoError(t, third.Rollback()) // the batch waits for it next
	}
	require.NoError(t, first.Rollback())
	require.NoError(t, <-both)
	require.NoError(t, batch.Rollback())
	if inOrder {
		require.NoError(t, <-one)
	}
	require.True(t, inOrder, "the batch waits for b and does not have a")
}

// aClaimThatWaits has locked what it takes, 20 of 40 jobs on four priorities. Another claim gets the other 20 meanwhile.
func aClaimThatWaits(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	schema, ctx := quoted(k.SchemaOf(s)), context.Background()
	reqs := make([]core.EnqueueRequest, 40)
	for i := range reqs {
		reqs[i] = Request("job")
		reqs[i].Priority = i % 4
	}
	Enqueue(t, s, reqs...)
	tx := k.Begin(t, s)
	// The first claim cannot write its leases until this one is gone.
	_, err := tx.X.Exec(ctx, fmt.Sprintf(`insert into %[1]s.leases (seq, place, run_at, fence, until, claimed_at, token, bytes, attempts,
			stalls, snoozes, runs, priority, queue, name, worker)
		select seq, place, run_at, 1, now(), now(), $1::uuid, bytes, 0, 0, 0, 0, priority, queue, name, 'w'
		from %[1]s.ready order by priority desc, place limit 1`, schema), core.NewToken())
	require.NoError(t, err)
	claim := func() (core.Claimed, error) {
		return s.Claim(ctx, core.ClaimRequest{Token: core.NewToken(), Lease: time.Minute,
			Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 20}}})
	}
	first := make(chan core.Claimed, 1)
	go func() {
		got, _ := claim() // what it got says it
		first <- got
	}()
	k.waiting(t, 1)
	second, err := claim()
	require.NoError(t, tx.Rollback())
	require.Len(t, (<-first).Jobs, 20)
	require.NoError(t, err)
	require.Len(t, second.Jobs, 20)
}
