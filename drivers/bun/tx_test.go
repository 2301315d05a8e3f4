package bunstore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/stintmq/stint/core"
)

// TestTxIsOneWithTheApplicationsRows (Q14).
func TestTxIsOneWithTheApplicationsRows(t *testing.T) {
	s := open(t)
	ctx := context.Background()
	_, err := s.DB().Exec("create table orders (id integer primary key, note text)")
	require.NoError(t, err)
	insert := func(fail error) error {
		return s.DB().RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if _, err := tx.ExecContext(ctx, "insert into orders (note) values (?)", "it's ? a $1 note"); err != nil {
				return err
			}
			req := request("ship")
			req.Payload = []byte(`{"q":"? $1 :x"}`)
			if _, err := s.WithTx(tx).Enqueue(ctx, []core.EnqueueRequest{req}); err != nil {
				return err
			}
			return fail
		})
	}
	oops := errors.New("oops")
	require.ErrorIs(t, insert(oops), oops)
	require.Empty(t, claim(t, s, 10, "ship").Jobs)
	require.NoError(t, insert(nil))
	got := claim(t, s, 10, "ship").Jobs
	require.Len(t, got, 1)
	require.Equal(t, `{"q":"? $1 :x"}`, string(got[0].Payload))
	n, err := s.DB().NewSelect().Table("orders").Count(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	checkInvariants(t, s)
}

// TestTxWakesByCommitOnly (Q14, Q15).
func TestTxWakesByCommitOnly(t *testing.T) {
	s := open(t)
	ctx := context.Background()
	first := claim(t, s, 1, "job").Wake
	tx, err := s.DB().BeginTx(ctx, nil)
	require.NoError(t, err)
	enqueue(t, s.WithTx(tx), request("job"))
	require.NoError(t, tx.Rollback())
	short, cancel := context.WithTimeout(ctx, 60*time.Millisecond) // the table is read more than ten times
	defer cancel()
	_, err = s.AwaitWake(short, []string{"q"}, first)
	require.ErrorIs(t, err, context.DeadlineExceeded, "woken by a rollback")

	woken := make(chan time.Time, 1)
	go func() {
		if _, err := s.AwaitWake(ctx, []string{"q"}, first); err == nil {
			woken <- time.Now()
		}
	}()
	tx, err = s.DB().BeginTx(ctx, nil)
	require.NoError(t, err)
	enqueue(t, s.WithTx(tx), request("job"))
	committed := time.Now()
	require.NoError(t, tx.Commit())
	require.Less(t, (<-woken).Sub(committed), 100*time.Millisecond)
}

func TestTxComplete(t *testing.T) {
	s := open(t)
	ctx := context.Background()
	enqueue(t, s, request("job"))
	token := core.NewToken()
	got, err := s.Claim(ctx, core.ClaimRequest{Token: token, Lease: time.Minute,
		Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 1}}})
	require.NoError(t, err)
	lease := core.Lease{ID: got.Jobs[0].ID, Ref: got.Jobs[0].Ref, Token: token}

	tx, err := s.DB().BeginTx(ctx, nil)
	require.NoError(t, err)
	view := s.WithTx(tx)
	require.ErrorIs(t, view.Complete(ctx, core.Lease{ID: lease.ID, Token: core.NewToken()}, nil), core.ErrLeaseLost)
	require.ErrorIs(t, view.Complete(ctx, core.Lease{ID: "nobody", Token: token}, nil), core.ErrNotFound)
	require.NoError(t, view.Complete(ctx, lease, []byte("done")))
	require.NoError(t, tx.Rollback())
	rec, err := s.Get(ctx, lease.ID)
	require.NoError(t, err)
	require.Equal(t, core.StateActive, rec.State)

	tx, err = s.DB().BeginTx(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, s.WithTx(tx).Complete(ctx, lease, []byte("done")))
	require.NoError(t, tx.Commit())
	rec, err = s.Get(ctx, lease.ID)
	require.NoError(t, err)
	require.Equal(t, core.StateCompleted, rec.State)
	require.Equal(t, "done", string(rec.Result))
}

func TestTxThatIsNone(t *testing.T) {
	var invalid *core.InvalidError
	_, err := open(t).WithTx(bun.Tx{}).Enqueue(context.Background(), nil)
	require.ErrorAs(t, err, &invalid)
}

// TestTxOfAnotherHandle: WithTx serves transactions of any *bun.DB on the same file, whose statements are not the
// store's own (Q14).
func TestTxOfAnotherHandle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path)
	raw, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	other := bun.NewDB(raw, sqlitedialect.New())
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	for range 2 {
		require.NoError(t, other.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
			res, err := s.WithTx(tx).Enqueue(ctx, []core.EnqueueRequest{request("ship")})
			return errors.Join(err, res[0].Err)
		}))
	}
	token := core.NewToken()
	got, err := s.Claim(t.Context(), core.ClaimRequest{Token: token, Lease: time.Minute,
		Wants: []core.Want{{Queue: "q", Names: []string{"ship"}, Limit: 1}}})
	require.NoError(t, err)
	lease := core.Lease{ID: got.Jobs[0].ID, Ref: got.Jobs[0].Ref, Token: token}
	require.NoError(t, other.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		return s.WithTx(tx).Complete(ctx, lease, nil)
	}))
	checkInvariants(t, s)
}
