package pgsql

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
)

type still time.Time

func (s still) Now() time.Time { return time.Time(s) }

// TestSweepKeys: the janitor deletes what makes no difference to anybody, and nothing else, a part at a time, and passes by
// what somebody holds (Q12). So does Prune, which frees the keys of cancelled jobs, and leaves the job until it can.
func TestSweepKeys(t *testing.T) {
	ctx := context.Background()
	conn, s := migrated(t)
	x := onConn{conn}
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(now time.Time) *Session { return NewSession(s.In(x), still(now), core.Limits{}) }
	enqueue := func(key string, ttl time.Duration, cancel bool) {
		t.Helper()
		res, err := at(noon).Enqueue(ctx, []core.EnqueueRequest{{Name: "job", Queue: "q", MaxAttempts: 1, Dedupe: &core.Dedupe{Key: key, TTL: ttl}}}, Notify{})
		require.NoError(t, err)
		require.NoError(t, res[0].Err)
		require.False(t, res[0].Duplicate)
		if cancel {
			_, err = at(noon).Cancel(ctx, res[0].ID)
			require.NoError(t, err)
		}
	}
	enqueue("pending", 0, false)
	enqueue("pending after its window", time.Minute, false)
	enqueue("cancelled", 0, true)
	enqueue("cancelled in its window", time.Hour, true)
	enqueue("cancelled after its window", time.Minute, true)
	for n := range 20 {
		enqueue(fmt.Sprint(n), 0, true)
	}
	left := func() []string {
		t.Helper()
		r, err := conn.Query(ctx, s.text("select key from {}.dedupe order by key"))
		require.NoError(t, err)
		keys, err := pgx.CollectRows(r, pgx.RowTo[string])
		require.NoError(t, err)
		return keys
	}
	other, err := pgx.ConnectConfig(ctx, conn.Config())
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close(ctx)) }()
	held, err := other.Begin(ctx)
	require.NoError(t, err)
	_, err = held.Exec(ctx, s.text("select from {}.dedupe where key = '7' for update"))
	require.NoError(t, err)
	sweep := func() (steps int) {
		t.Helper()
		for after := (keyplan.Key{}); ; {
			var err error
			steps++
			after, err = at(noon.Add(time.Minute)).SweepKeys(ctx, after, 7)
			require.NoError(t, err)
			if after == (keyplan.Key{}) {
				return steps
			}
		}
	}
	require.Equal(t, 4, sweep())
	require.Equal(t, []string{"7", "cancelled in its window", "pending", "pending after its window"}, left())
	require.NoError(t, held.Rollback(ctx))
	sweep()
	require.Equal(t, []string{"cancelled in its window", "pending", "pending after its window"}, left())

	held, err = other.Begin(ctx)
	require.NoError(t, err)
	_, err = held.Exec(ctx, s.text("select from {}.dedupe where key = 'cancelled in its window' for update"))
	require.NoError(t, err)
	prune := func() int {
		t.Helper()
		n, _, err := at(noon).Prune(ctx, s, core.PruneRequest{Default: core.Keep{Cancelled: core.KeepRule{None: true}}}, 1000, Pruned{})
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 22, prune())
	require.Equal(t, []string{"cancelled in its window", "pending", "pending after its window"}, left())
	require.NoError(t, held.Rollback(ctx))
	require.Equal(t, 1, prune())
	require.Equal(t, []string{"pending", "pending after its window"}, left())
}
