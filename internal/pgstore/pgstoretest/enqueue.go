package pgstoretest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// contendedID: a transaction holds an id and does not end. A batch with that id in it does not wait for long,
// and only that item is refused (Q11).
func contendedID(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tx := k.Begin(t, s)
	Enqueue(t, tx.View, withID("id-7"))
	var reqs []core.EnqueueRequest
	for i := range 20 {
		reqs = append(reqs, withID(fmt.Sprintf("id-%d", i)), Request("job"))
	}
	reqs = append(reqs, withID("id-7"), withID("id-8"))
	res, err := s.Enqueue(ctx, reqs)
	require.NoError(t, err)
	for i, r := range res {
		switch {
		case reqs[i].ID == "id-7":
			require.ErrorIs(t, r.Err, core.ErrUnavailable)
		case i == len(res)-1:
			require.Equal(t, core.EnqueueResult{ID: "id-8", Duplicate: true}, r)
		default:
			require.NoError(t, r.Err)
			require.False(t, r.Duplicate)
		}
	}
	require.NoError(t, tx.Commit())
	res, err = s.Enqueue(ctx, []core.EnqueueRequest{withID("id-7")})
	require.NoError(t, err)
	require.True(t, res[0].Duplicate)
	require.Len(t, Claim(t, s, 100, "job").Jobs, 40)
}

// loserOfARollback: who waited for an id that was rolled back has made the job.
func loserOfARollback(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	tx := k.Begin(t, s)
	Enqueue(t, tx.View, withID("id"))
	done := make(chan []core.EnqueueResult)
	go func() {
		res, _ := s.Enqueue(ctx, []core.EnqueueRequest{withID("id")})
		done <- res
	}()
	require.Eventually(t, func() bool {
		return k.Numbers(t, "select count(*) from pg_locks where not granted")[0] > 0
	}, 5*time.Second, time.Millisecond)
	require.NoError(t, tx.Rollback())
	require.Equal(t, []core.EnqueueResult{{ID: "id"}}, <-done)
}

// overlappingTransactions: transactions that enqueue the same ids in opposite orders deadlock, which only they can
// resolve; the store's own calls beside them never see it.
func overlappingTransactions(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx := context.Background()
	both := func(i, n int) error {
		tx, err := k.DB(t).Begin(ctx, s, false)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after the commit
		ids := []string{fmt.Sprintf("a-%d", i), fmt.Sprintf("b-%d", i)}
		for k := range ids {
			if _, err := tx.View.Enqueue(ctx, []core.EnqueueRequest{withID(ids[(k+n)%2])}); err != nil {
				return err
			}
		}
		return tx.Commit()
	}
	var all sync.WaitGroup
	for n := range 2 {
		all.Go(func() {
			for i := range 5 {
				if err := both(i, n); err != nil && !errors.Is(err, core.ErrRetryTx) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i := range 5 {
		res, err := s.Enqueue(ctx, []core.EnqueueRequest{withID(fmt.Sprintf("b-%d", i)), withID(fmt.Sprintf("a-%d", i))})
		require.NoError(t, err)
		require.NoError(t, errors.Join(res[0].Err, res[1].Err))
	}
	require.Len(t, Claim(t, s, 100, "job").Jobs, 10)
}
