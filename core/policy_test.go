package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// TestMissedSlots: the policies for what nobody was there for (Q26).
func TestMissedSlots(t *testing.T) {
	for misfire, want := range map[core.Misfire]int{"": 1, core.MisfireOne: 1, core.MisfireSkip: 0, core.MisfireAll: 300} {
		schedBubble(t, func(t *testing.T, s *schedSpy) {
			schedule(t, s, "k", core.Schedule[string]{Every: time.Hour, Misfire: misfire, CatchUp: 300, Payload: "p"})
			time.Sleep(500*time.Hour + 30*time.Minute)
			start(t, newWorker(t, s, core.WorkerOptions{}))
			time.Sleep(2 * time.Second)
			synctest.Wait()
			require.EqualValues(t, want, counts(t, s)[core.StateWaiting], misfire)
			time.Sleep(time.Hour)
			synctest.Wait()
			require.EqualValues(t, want+1, counts(t, s)[core.StateWaiting], misfire)
		})
	}
}

// TestNoOverlap: with OverlapSkip a slot makes no job while the one before runs.
func TestNoOverlap(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		schedule(t, s, "k", core.Schedule[string]{Every: time.Minute, Overlap: core.OverlapSkip})
		w := newWorker(t, s, core.WorkerOptions{Concurrency: 5})
		var seen ran
		tickJob.Handle(w, func(ctx context.Context, p string) error {
			require.NoError(t, seen.handle(ctx, p))
			select {
			case <-time.After(150 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		start(t, w)
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		slots, _ := seen.all()
		require.Len(t, slots, 4) // at 1, 4, 7 and 10 minutes
	})
}

// TestDeploymentsMoveNothing: the same cadence keeps its next slot, another one has its first after now.
func TestDeploymentsMoveNothing(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		schedule(t, s, "k", core.Schedule[string]{Every: time.Hour, Payload: "old"})
		first := record(t, s, "k").NextAt
		require.True(t, first.Equal(time.Now().Add(time.Hour)))
		time.Sleep(59 * time.Minute)
		schedule(t, s, "k", core.Schedule[string]{Every: time.Hour, Payload: "new"})
		require.Equal(t, first, record(t, s, "k").NextAt)
		require.JSONEq(t, `"new"`, string(record(t, s, "k").Request.Payload))
		schedule(t, s, "k", core.Schedule[string]{Cron: "@every 2h", Payload: "new"})
		require.True(t, record(t, s, "k").NextAt.Equal(time.Now().Add(2*time.Hour)))
	})
}
