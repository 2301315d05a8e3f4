package bunstore_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
)

// eachDatabase runs a test on SQLite, and on Postgres over each library.
func eachDatabase(t *testing.T, test func(t *testing.T, s *bunstore.Store)) {
	t.Run("SQLite", func(t *testing.T) { test(t, open(t)) })
	t.Run("SQLite, the application's", func(t *testing.T) {
		db := appDB(t, filepath.Join(t.TempDir(), "app.db"), goodSettings)
		test(t, newStore(t, db, bunstore.Options{}))
	})
	for _, k := range kits {
		t.Run(k.name, func(t *testing.T) { test(t, k.kit.Own(t).(*bunstore.Store)) })
	}
}

// TestJobStatus: a model reads every job where it stands, and the same on each database as Get says.
func TestJobStatus(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *bunstore.Store) {
		ctx := context.Background()
		later, tagged := request("job"), request("job")
		later.Delay = time.Hour
		tagged.ID, tagged.Metadata, tagged.Priority = "mine", map[string]string{"user": `o'"neil`, "é": ""}, 7
		enqueue(t, s, request("done"), request("bad"), request("gone"), request("held"))
		token := core.NewToken()
		got, err := s.Claim(ctx, core.ClaimRequest{Token: token, Lease: time.Minute, Worker: "w",
			Wants: []core.Want{{Queue: "q", Names: []string{"done", "bad", "gone", "held"}, Limit: 4}}})
		require.NoError(t, err)
		var acks []core.Ack
		for _, l := range leases(got, token)[:3] {
			acks = append(acks, core.Ack{Lease: l})
		}
		acks[0].Outcome, acks[1].Outcome, acks[2].Outcome = core.OutcomeComplete, core.OutcomeFail, core.OutcomeCancel
		acks[1].Failure = &core.Failure{Message: "no", Type: "T", Panic: true}
		_, err = s.Ack(ctx, acks)
		require.NoError(t, err)
		_, err = s.Cancel(ctx, got.Jobs[3].ID)
		require.NoError(t, err)
		enqueue(t, s, tagged, later)
		enqueue(t, s, withDelay(time.Millisecond)) // due soon, and claimed by nobody

		due := func() bool {
			n, err := s.SelectJobs().Where("state = ?", core.StateDelayed).Count(ctx)
			require.NoError(t, err)
			return n == 1
		}
		require.Eventually(t, due, 10*time.Second, time.Millisecond)
		var all []bunstore.JobStatus
		require.NoError(t, s.SelectJobs().Order("enqueued_at", "name", "id").Scan(ctx, &all))
		require.Len(t, all, 7)
		states := map[core.State]int{}
		for _, j := range all {
			rec, err := s.Get(ctx, j.ID)
			require.NoError(t, err)
			want := bunstore.JobStatus{
				ID: rec.ID, Queue: rec.Queue, Name: rec.Name, State: rec.State, Priority: rec.Priority,
				RunAt: rec.RunAt, Attempts: rec.Attempts, MaxAttempts: rec.MaxAttempts, Stalls: rec.Stalls, Snoozes: rec.Snoozes,
				Runs: rec.Runs, EnqueuedAt: rec.EnqueuedAt, ClaimedAt: rec.ClaimedAt, CancelRequested: rec.CancelRequested,
				FinishedAt: rec.FinishedAt, Failure: rec.Failure, Metadata: rec.Metadata,
			}
			for _, at := range []*time.Time{&j.RunAt, &j.EnqueuedAt, &j.ClaimedAt, &j.FinishedAt} {
				*at = at.UTC()
			}
			if rec.State == core.StateActive {
				require.WithinDuration(t, rec.ClaimedAt.Add(time.Minute), j.LeaseUntil, time.Second)
				require.True(t, j.CancelRequested)
			} else {
				require.Zero(t, j.LeaseUntil)
			}
			ran := !rec.ClaimedAt.IsZero()
			require.Equal(t, ran, j.Worker == "w")
			j.LeaseUntil, j.Worker = time.Time{}, ""
			require.Equal(t, want, j)
			states[j.State]++
		}
		require.Equal(t, map[core.State]int{core.StateWaiting: 2, core.StateDelayed: 1, core.StateActive: 1, core.StateCompleted: 1,
			core.StateFailed: 1, core.StateCancelled: 1}, states)

		var failed []bunstore.JobStatus
		require.NoError(t, s.SelectJobs().Where("state = ?", core.StateFailed).Where("queue = ?", "q").
			Order("finished_at DESC").Limit(20).Scan(ctx, &failed))
		require.Len(t, failed, 1)
		require.Equal(t, "no", failed[0].Failure.Message)
		var name string
		require.NoError(t, s.SelectJobs().Column("name").Where("id = ?", "mine").Scan(ctx, &name))
		require.Equal(t, "job", name)

		// What a transaction did is there for its own queries.
		require.NoError(t, s.DB().RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			enqueue(t, s.WithTx(tx), request("job"))
			n, err := s.SelectJobs().Conn(tx).Count(ctx)
			require.EqualValues(t, 8, n)
			return err
		}))
	})
}

func withDelay(d time.Duration) core.EnqueueRequest {
	r := request("job")
	r.Delay = d
	return r
}

func leases(c core.Claimed, token string) []core.Lease {
	list := make([]core.Lease, len(c.Jobs))
	for i, j := range c.Jobs {
		list[i] = core.Lease{ID: j.ID, Ref: j.Ref, Token: token}
	}
	return list
}

// TestNestedTransactions: bun's are savepoints of one transaction; what is undone there was not enqueued, and what is
// around it was (Q14).
func TestNestedTransactions(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *bunstore.Store) {
		ctx := context.Background()
		tx, err := s.DB().BeginTx(ctx, nil)
		require.NoError(t, err)
		enqueue(t, s.WithTx(tx), request("outer"))
		kept, err := tx.BeginTx(ctx, nil)
		require.NoError(t, err)
		enqueue(t, s.WithTx(kept), request("kept"))
		undone, err := kept.BeginTx(ctx, nil)
		require.NoError(t, err)
		enqueue(t, s.WithTx(undone), request("undone"))
		require.NoError(t, undone.Rollback())
		require.NoError(t, kept.Commit())
		require.NoError(t, tx.Commit())
		var names []string
		require.NoError(t, s.SelectJobs().Column("name").Order("name").Scan(ctx, &names))
		require.Equal(t, []string{"kept", "outer"}, names)

		// One that can only be rolled back leaves the one around it as it was.
		tx, err = s.DB().BeginTx(ctx, nil)
		require.NoError(t, err)
		inner, err := tx.BeginTx(ctx, nil)
		require.NoError(t, err)
		_, err = inner.ExecContext(ctx, "select no_such_column")
		require.Error(t, err)
		require.NoError(t, inner.Rollback())
		enqueue(t, s.WithTx(tx), request("after"))
		require.NoError(t, tx.Commit())
		require.Len(t, claim(t, s, 10, "outer", "kept", "undone", "after").Jobs, 3)
	})
}
