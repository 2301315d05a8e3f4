package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stintmq/stint/core"
)

// TestBackoff: before jitter it is monotone, positive and capped for every n up to a million, and with it never
// over 1.25 times the cap (Q20).
func TestBackoff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "base"))
		limit := base + time.Duration(rapid.Int64Range(0, int64(365*24*time.Hour)).Draw(t, "more"))
		factor := rapid.Float64Range(1, 1e9).Draw(t, "factor")
		n := rapid.IntRange(1, 1_000_000).Draw(t, "n")
		exact := core.Exponential(base, factor, limit, core.NoJitter())
		a, b := exact.Delay(n), exact.Delay(n+1)
		if a <= 0 || a > limit || b < a {
			t.Fatalf("delay %v then %v, limit %v", a, b, limit)
		}
		spread := core.Exponential(base, factor, limit).Delay(n)
		if float64(spread) < 0.74*float64(a)-1 || float64(spread) > 1.26*float64(a)+1 || float64(spread) > 1.25*float64(limit) {
			t.Fatalf("%v with jitter became %v", a, spread)
		}
	})
}

func TestBackoffDefaults(t *testing.T) {
	exact := core.DefaultBackoff()
	exact.NoJitter = true
	for n, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1_000_000: 5 * time.Minute,
		0: time.Second, -5: time.Second,
	} {
		require.Equal(t, want, exact.Delay(n))
	}
	require.Equal(t, 500*time.Millisecond, core.Exponential(time.Second/3, 1.5, time.Hour, core.NoJitter()).Delay(2).Round(time.Millisecond))
	require.Zero(t, core.Fixed(0).Delay(7))
	require.Equal(t, time.Minute, core.Fixed(time.Minute, core.NoJitter()).Delay(1000))
	require.Equal(t, time.Second, core.Backoff{NoJitter: true}.Delay(1), "the zero backoff is the default")
	for n := range 100 {
		require.Positive(t, core.StallDelay(n+1))
		require.LessOrEqual(t, core.StallDelay(n+1), 5*time.Minute*5/4)
	}
}
