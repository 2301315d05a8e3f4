package pgstoretest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// lanesLost: a database that lacks the last commits, a standby that took over or a backup, may lack a lane that its
// producers know. What they enqueue there runs all the same.
func lanesLost(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	Enqueue(t, s, Request("job"))
	AckAll(t, s, Take(t, s, 1))
	lose := func() { k.Exec(t, "delete from "+quoted(k.SchemaOf(s))+".lanes") }
	lose()
	Enqueue(t, s, Request("job"))
	AckAll(t, s, Take(t, s, 1))
	lose()
	tx := k.Begin(t, s)
	_, err := tx.View.Enqueue(ctx, []core.EnqueueRequest{Request("job")})
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	AckAll(t, s, Take(t, s, 1))
}

// straysComeTogether: jobs that a claim had locked when it died are behind the marks of others, until one looks without.
// That one finds the first; all the others follow at once.
func straysComeTogether(t testing.TB, k *Kit) {
	b := k.Open(t, nil)
	a := k.OpenAt(t, k.SchemaOf(b), nil)
	schema, ctx := quoted(k.SchemaOf(b)), context.Background()
	k.Listening(t, b)
	for range 40 {
		Enqueue(t, a, Request("job"))
	}
	for range 10 {
		Take(t, b, 1)
	}
	dies := k.Begin(t, a)
	_, err := dies.X.Exec(ctx, fmt.Sprintf("delete from %[1]s.ready where ctid = any(array(select ctid from %[1]s.ready order by place limit 6))", schema))
	require.NoError(t, err)
	for range 24 {
		Take(t, b, 1)
	}
	require.NoError(t, dies.Rollback())
	claimed := func() int { return len(Claim(t, b, 1, "job").Jobs) }
	n := 0
	require.Eventually(t, func() bool { n += claimed(); return n > 0 }, 15*time.Second, 50*time.Millisecond)
	for range 5 {
		n += claimed()
	}
	require.Equal(t, 6, n, "one after the other")
}

// cappedClaimsHideNothing: a claim locks more than fits 16 MiB, and leaves it to others that stepped over it.
func cappedClaimsHideNothing(t testing.TB, k *Kit) {
	a := k.Open(t, nil)
	b := k.OpenAt(t, k.SchemaOf(a), nil)
	k.Listening(t, a)
	k.Listening(t, b)
	const n = 120
	reqs := make([]core.EnqueueRequest, n/4)
	for i := range reqs {
		reqs[i] = Request("job")
		reqs[i].Payload = make([]byte, 500<<10)
	}
	for range 4 {
		Enqueue(t, a, reqs...)
	}
	half := make(chan int)
	go func() {
		got := 0
		for range 2 {
			got += len(Claim(t, a, 100, "job").Jobs)
		}
		half <- got
	}()
	got, start := 0, time.Now()
	for range 3 {
		got += len(Claim(t, b, 100, "job").Jobs)
	}
	got += <-half
	for got < n {
		c := Claim(t, b, 100, "job")
		if got += len(c.Jobs); len(c.Jobs) > 0 || c.NextIn > 0 {
			continue
		}
		// Those that the other one locked and left it tells of, long before a claim looks without marks.
		soon, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		_, err := b.AwaitWake(soon, []string{"q"}, c.Wake)
		cancel()
		require.NoError(t, err, "%d of %d came, and it says that there is nothing", got, n)
	}
	require.Less(t, time.Since(start), 10*time.Second)
	require.Equal(t, n, got)
}

// sequenceGoesBack: places that were drawn once are drawn again by a database from before. Marks beyond them are
// forgotten.
func sequenceGoesBack(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	schema := quoted(k.SchemaOf(s))
	k.Listening(t, s)
	for range 30 {
		Enqueue(t, s, Request("job"))
		AckAll(t, s, Take(t, s, 1))
	}
	last := k.Numbers(t, "select last_value from "+schema+".numbers")[0]
	k.Exec(t, "delete from "+schema+".jobs")
	k.Exec(t, "delete from "+schema+".finished")
	k.Exec(t, fmt.Sprintf("select setval('%s.numbers', %d)", schema, last-25))
	other := k.OpenAt(t, k.SchemaOf(s), nil)
	for range 6 {
		Enqueue(t, other, Request("job"))
	}
	Claim(t, s, 1, "job") // finds out
	for n := len(Claim(t, s, 10, "job").Jobs); n < 5; n += len(Claim(t, s, 10, "job").Jobs) {
		t.Fatalf("%d of what was enqueued is seen", n)
	}
}

// sweepsPassHeldRows: leases that ended and are held by open transactions do not fill a sweep's limit (Q7).
func sweepsPassHeldRows(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	Enqueue(t, s, Request("job"), Request("job"))
	token := core.NewToken()
	got, err := s.Claim(ctx, core.ClaimRequest{Token: token, Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 2}}})
	require.NoError(t, err)
	held := leases(got, token)
	_, err = s.RecoverStalled(ctx, core.RecoverRequest{Limit: 1, MaxStalls: 5, Confirm: time.Hour}) // marks both
	require.NoError(t, err)
	tx := k.Begin(t, s)
	require.NoError(t, tx.View.Complete(ctx, held[0], nil))
	taken, err := s.RecoverStalled(ctx, core.RecoverRequest{Limit: 1, MaxStalls: 5})
	require.NoError(t, err)
	require.Len(t, taken, 1)
	require.NoError(t, tx.Rollback())
}

// longBatchesInOneOrder: batches of several statements that want the same ids, each in its own order, don't wait in a
// circle (Q11).
func longBatchesInOneOrder(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	const n = 2100 // more than one statement takes
	batch := func(round int, reverse bool) []core.EnqueueRequest {
		reqs := make([]core.EnqueueRequest, n)
		for i := range reqs {
			at := i
			if reverse {
				at = n - 1 - i
			}
			reqs[at] = Request("job")
			reqs[at].ID = fmt.Sprintf("%d-%04d", round, i)
		}
		return reqs
	}
	for round := range 3 {
		done := make(chan error, 2)
		for _, reverse := range []bool{false, true} {
			go func() {
				res, err := s.Enqueue(context.Background(), batch(round, reverse))
				for _, r := range res {
					if err == nil {
						err = r.Err
					}
				}
				done <- err
			}()
		}
		start := time.Now()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		require.Less(t, time.Since(start), 5*time.Second)
	}
	first := Claim(t, s, 1, "job").Jobs[0].ID
	require.Contains(t, []string{"0-0000", fmt.Sprintf("0-%04d", n-1)}, first, "places are in the order of the request")
}
