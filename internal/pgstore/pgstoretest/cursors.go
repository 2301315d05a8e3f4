package pgstoretest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/journal"
)

// journalCursors: one transaction at a time has a cursor, also while it is made, whether by a batch or by who would have
// waited for it, and who does not wait is told at once (J7).
func journalCursors(t testing.TB, k *Kit) {
	l := k.Log(t)
	for _, waits := range []bool{false, true} {
		name := fmt.Sprint("waits-", waits, "@1")
		l.heldCursor(name, waits) // while it is made
		l.heldCursor(name, waits)
	}

	// Of two that wait for one who makes it, and rolls back, one makes it anew, and the other gets it afterwards.
	maker := l.Begin()
	_, _, err := l.Store.LockCursor(l.ctx, maker, "p@1", true)
	require.NoError(t, err)
	done := make(chan error, 2)
	for range 2 {
		go func() {
			done <- l.Store.InTx(l.ctx, func(ctx context.Context, tx *Tx) error {
				c, ok, err := l.Store.LockCursor(ctx, tx, "p@1", true)
				if err != nil || !ok {
					return fmt.Errorf("locked: %t, %w", ok, err)
				}
				c.Seq++
				return l.Store.SaveCursor(ctx, tx, c)
			})
		}()
	}
	k.waiting(t, 2)
	require.NoError(t, maker.Rollback())
	for range 2 {
		require.NoError(t, <-done)
	}
	all, err := l.Store.Cursors(l.ctx)
	require.NoError(t, err)
	require.Equal(t, int64(2), all[0].Seq)
}

// heldCursor: while a transaction has a cursor, others that don't wait pass, and one that does gets it as it was left.
func (l *Log) heldCursor(name string, waits bool) {
	t, k := l.t, l.k
	t.Helper()
	holder, other := l.Begin(), l.Begin()
	c, ok, err := l.Store.LockCursor(l.ctx, holder, name, waits)
	require.NoError(t, err)
	require.True(t, ok)
	soon, cancel := context.WithTimeout(l.ctx, 2*time.Second)
	_, ok, err = l.Store.LockCursor(soon, other, name, false)
	cancel()
	require.NoError(t, err)
	require.False(t, ok)
	type got struct {
		c  journal.Cursor
		ok bool
	}
	done := make(chan got, 1)
	go func() {
		c, ok, _ := l.Store.LockCursor(l.ctx, other, name, true)
		done <- got{c, ok}
	}()
	k.waiting(t, 1)
	c.Seq++
	require.NoError(t, l.Store.SaveCursor(l.ctx, holder, c))
	require.NoError(t, holder.Commit())
	g := <-done
	require.True(t, g.ok)
	require.Equal(t, c.Seq, g.c.Seq)
	require.NoError(t, other.Commit())
}
