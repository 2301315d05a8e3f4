package pqstore_test

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

func withID(id string) core.EnqueueRequest {
	r := request("job")
	r.ID = id
	return r
}

// TestContendedID: a transaction holds an id and does not end. A batch with that id in it does not wait for long,
// and only that item is refused (Q11).
func TestContendedID(t *testing.T) {
	s, spare := fresh(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tx, err := spare.db.BeginTx(ctx, nil)
	require.NoError(t, err)
	enqueue(t, s.WithTx(tx), withID("id-7"))
	var reqs []core.EnqueueRequest
	for i := range 20 {
		reqs = append(reqs, withID(fmt.Sprintf("id-%d", i)), request("job"))
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
	require.Len(t, claim(t, s, 100, "job").Jobs, 40)
}

// TestLoserOfARollback: who waited for an id that was rolled back has made the job.
func TestLoserOfARollback(t *testing.T) {
	s, spare := fresh(t)
	ctx := context.Background()
	tx, err := spare.db.BeginTx(ctx, nil)
	require.NoError(t, err)
	enqueue(t, s.WithTx(tx), withID("id"))
	done := make(chan []core.EnqueueResult)
	go func() {
		res, _ := s.Enqueue(ctx, []core.EnqueueRequest{withID("id")})
		done <- res
	}()
	require.Eventually(t, func() bool {
		var waiting int
		return spare.db.QueryRowContext(ctx, "select count(*) from pg_locks where not granted").Scan(&waiting) == nil && waiting > 0
	}, 5*time.Second, time.Millisecond)
	require.NoError(t, tx.Rollback())
	require.Equal(t, []core.EnqueueResult{{ID: "id"}}, <-done)
}

// TestOverlappingTransactions: transactions that enqueue the same ids in opposite orders deadlock, which only they can
// resolve; the store's own calls beside them never see it.
func TestOverlappingTransactions(t *testing.T) {
	s, spare := fresh(t)
	ctx := context.Background()
	both := func(i, n int) error {
		tx, err := spare.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after the commit
		ids := []string{fmt.Sprintf("a-%d", i), fmt.Sprintf("b-%d", i)}
		for k := range ids {
			if _, err := s.WithTx(tx).Enqueue(ctx, []core.EnqueueRequest{withID(ids[(k+n)%2])}); err != nil {
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
	require.Len(t, claim(t, s, 100, "job").Jobs, 10)
}
