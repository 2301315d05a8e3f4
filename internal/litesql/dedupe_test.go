package litesql

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
	"github.com/stintmq/stint/internal/sqlexec"
)

// TestSweepKeys: the janitor deletes what makes no difference to anybody, and nothing else, a part at a time (Q12).
func TestSweepKeys(t *testing.T) {
	ctx := context.Background()
	db := database(t)
	within(t, db, func(x sqlexec.Executor) {
		at := func(now time.Time) *Session { return NewSession(x, now, core.Limits{}) }
		enqueue := func(key string, ttl time.Duration, cancel bool) {
			t.Helper()
			req := request("", "job")
			req.Dedupe = &core.Dedupe{Key: key, TTL: ttl}
			res, err := at(noon).Enqueue(ctx, []core.EnqueueRequest{req})
			require.NoError(t, err)
			require.NoError(t, res[0].Err)
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
		steps, after := 0, keyplan.Key{}
		for done := false; !done; steps++ {
			var err error
			after, err = at(noon.Add(time.Minute)).SweepKeys(ctx, after, 7)
			require.NoError(t, err)
			done = after == keyplan.Key{}
		}
		require.Equal(t, 4, steps)
		var left []string
		require.NoError(t, sqlexec.Each(ctx, x, func(r sqlexec.Rows) error {
			var key string
			err := r.Scan(&key)
			left = append(left, key)
			return err
		}, "select key from stint_dedupe order by key"))
		require.Equal(t, []string{"cancelled in its window", "pending", "pending after its window"}, left)
	})
}
