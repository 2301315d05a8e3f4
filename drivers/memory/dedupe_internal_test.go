package memstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time { return c.now }

// The janitor deletes what makes no difference to anybody, and nothing else (Q12).
func TestSweepKeys(t *testing.T) {
	clock := &handClock{time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := New(Options{Clock: clock})
	enqueue := func(key string, ttl time.Duration) string {
		t.Helper()
		res, err := s.Enqueue(t.Context(), []core.EnqueueRequest{{Name: "work", Queue: "q", MaxAttempts: 1,
			Dedupe: &core.Dedupe{Key: key, TTL: ttl}}})
		require.NoError(t, err)
		require.NoError(t, res[0].Err)
		require.False(t, res[0].Duplicate)
		return res[0].ID
	}
	end := func(id string) {
		t.Helper()
		_, err := s.Cancel(t.Context(), id)
		require.NoError(t, err)
	}
	enqueue("pending", 0)
	enqueue("pending after its window", time.Minute)
	end(enqueue("cancelled", 0))
	end(enqueue("cancelled in its window", time.Hour))
	end(enqueue("cancelled after its window", time.Minute))
	clock.now = clock.now.Add(time.Minute)
	require.Equal(t, 5, s.sweepKeys(clock.now, 100))
	left := map[string]bool{}
	for k := range s.keys {
		left[k.key] = true
	}
	require.Equal(t, map[string]bool{"pending": true, "pending after its window": true, "cancelled in its window": true}, left)

	for n := range 50 {
		end(enqueue(fmt.Sprint(n), 0))
	}
	require.Equal(t, 10, s.sweepKeys(clock.now, 10), "it is bounded")
	for len(s.keys) > 3 {
		s.sweepKeys(clock.now, 10)
	}
	require.NoError(t, s.CheckInvariants())
}
