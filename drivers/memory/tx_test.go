package memstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

func state(t *testing.T, s core.Inspector, id string) core.State {
	t.Helper()
	r, err := s.Get(t.Context(), id)
	require.NoError(t, err)
	return r.State
}

// What is done in a transaction happens by commit, all of it, and wakes then (Q14).
func TestCommit(t *testing.T) {
	s, c := newStore(t)
	enqueue(t, s, request("work"))
	l := claimOne(t, s, "work")
	before := now(t, s)

	tx := s.Begin()
	view := s.WithTx(tx)
	result := []byte("done")
	require.NoError(t, view.Complete(t.Context(), l, result))
	copy(result, "gone") // the store keeps no reference (Q13)
	require.ErrorIs(t, view.Complete(t.Context(), l, nil), core.ErrLeaseLost)
	require.ErrorIs(t, view.Complete(t.Context(), core.Lease{ID: "none", Token: l.Token}, nil), core.ErrNotFound)
	late := request("work")
	late.Key, late.Delay = "late", time.Second
	id := enqueue(t, view, late)
	res, err := view.Enqueue(t.Context(), []core.EnqueueRequest{late, {Name: "other", ID: id, Queue: "q", MaxAttempts: 1}})
	require.NoError(t, err)
	require.True(t, res[0].Duplicate)
	var conflict *core.ConflictError
	require.ErrorAs(t, res[1].Err, &conflict)

	_, err = s.Get(t.Context(), id)
	require.ErrorIs(t, err, core.ErrNotFound)
	require.Equal(t, core.StateActive, state(t, s, l.ID))
	require.Equal(t, before, now(t, s), "nothing woke")

	c.advance(time.Minute)
	require.NoError(t, tx.Commit())
	r, err := s.Get(t.Context(), l.ID)
	require.NoError(t, err)
	require.Equal(t, core.StateCompleted, r.State)
	require.Equal(t, "done", string(r.Result))
	require.Equal(t, core.StateWaiting, state(t, s, id), "its delay counted from the enqueue")
	require.NotEqual(t, before, now(t, s))

	require.ErrorIs(t, tx.Commit(), memstore.ErrTxDone)
	require.ErrorIs(t, tx.Rollback(), memstore.ErrTxDone)
	_, err = view.Enqueue(t.Context(), nil)
	require.ErrorIs(t, err, memstore.ErrTxDone)
}

func TestRollback(t *testing.T) {
	s, _ := newStore(t)
	enqueue(t, s, request("work"))
	l := claimOne(t, s, "work")
	before := now(t, s)
	tx := s.Begin()
	id := enqueue(t, s.WithTx(tx), request("work"))
	require.NoError(t, s.WithTx(tx).Complete(t.Context(), l, nil))
	require.NoError(t, tx.Rollback())
	require.ErrorIs(t, tx.Commit(), memstore.ErrTxDone)
	_, err := s.Get(t.Context(), id)
	require.ErrorIs(t, err, core.ErrNotFound)
	require.Equal(t, core.StateActive, state(t, s, l.ID))
	require.Equal(t, before, now(t, s))
}

// A conflict that only shows at commit undoes all of the transaction (Q14).
func TestCommitConflict(t *testing.T) {
	named := func(id string) core.EnqueueRequest {
		r := request("work")
		r.ID = id
		return r
	}
	for name, interfere := range map[string]func(t *testing.T, s *memstore.Store, l core.Lease){
		"id taken": func(t *testing.T, s *memstore.Store, _ core.Lease) {
			enqueue(t, s, named("b"))
		},
		"lease lost": func(t *testing.T, s *memstore.Store, l core.Lease) {
			_, err := s.Ack(t.Context(), []core.Ack{{Lease: l, Outcome: core.OutcomeRelease}})
			require.NoError(t, err)
		},
		"job removed, another in its place": func(t *testing.T, s *memstore.Store, l core.Lease) {
			_, err := s.Ack(t.Context(), []core.Ack{{Lease: l, Outcome: core.OutcomeFail}})
			require.NoError(t, err)
			ok, err := s.Remove(t.Context(), l.ID)
			require.NoError(t, err)
			require.True(t, ok)
			enqueue(t, s, named(l.ID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newStore(t)
			enqueue(t, s, named("held"))
			l := claimOne(t, s, "work")
			tx := s.Begin()
			enqueue(t, s.WithTx(tx), named("a"))
			enqueue(t, s.WithTx(tx), named("b"))
			require.NoError(t, s.WithTx(tx).Complete(t.Context(), l, nil))
			interfere(t, s, l)
			require.ErrorIs(t, tx.Commit(), core.ErrRetryTx)
			require.ErrorIs(t, tx.Commit(), memstore.ErrTxDone)
			_, err := s.Get(t.Context(), "a")
			require.ErrorIs(t, err, core.ErrNotFound)
			counts, err := s.Counts(t.Context(), "")
			require.NoError(t, err)
			require.Zero(t, counts[core.StateCompleted])
		})
	}
}

// A transaction works on its own store only.
func TestForeignTransaction(t *testing.T) {
	s, _ := newStore(t)
	other, _ := newStore(t)
	var invalid *core.InvalidError
	for _, tx := range []*memstore.Transaction{nil, other.Begin()} {
		_, err := s.WithTx(tx).Enqueue(t.Context(), nil)
		require.ErrorAs(t, err, &invalid)
		require.ErrorAs(t, s.WithTx(tx).Complete(t.Context(), core.Lease{}, nil), &invalid)
	}
}

// Tx stands in for any transaction type; what it does happens at once.
func TestTxOfAnyType(t *testing.T) {
	type someTx interface{ Commit() error }
	s, _ := newStore(t)
	view := memstore.Tx[someTx](s).WithTx(nil)
	enqueue(t, view, request("work"))
	l := claimOne(t, s, "work")
	require.NoError(t, view.Complete(t.Context(), l, []byte("r")))
	require.Equal(t, core.StateCompleted, state(t, s, l.ID))
	require.ErrorIs(t, view.Complete(t.Context(), l, []byte("r")), core.ErrLeaseLost)
	require.ErrorIs(t, view.Complete(t.Context(), core.Lease{ID: "none"}, nil), core.ErrNotFound)
}
