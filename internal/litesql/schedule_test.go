package litesql

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// TestDueSchedulesSearch: what sweeps ask all the time reads no schedule that is not due.
func TestDueSchedulesSearch(t *testing.T) {
	db := database(t)
	for _, text := range []string{sqlDueHead, sqlDueSchedules, sqlSchedule} {
		for _, step := range plan(t, db, text) {
			require.False(t, strings.HasPrefix(step, "SCAN stint_schedules"), "%s\n%s", step, text)
		}
	}
}

// TestTickRefusedByLimits: a store with narrower limits than those that a schedule was put with refuses its slots, and
// nothing happens (Q26).
func TestTickRefusedByLimits(t *testing.T) {
	ctx := context.Background()
	db := database(t)
	within(t, db, func(x sqlexec.Executor) {
		require.NoError(t, NewSession(x, noon, core.Limits{}).PutSchedule(ctx, nightly("k"), noon))
		c := nightly("large")
		c.Request.Payload = make([]byte, 11)
		require.NoError(t, NewSession(x, noon, core.Limits{}).PutSchedule(ctx, c, noon))
	})
	tick := core.Tick{Key: "large", Expect: noon, Slots: []time.Time{noon}, Passed: noon, Next: noon.Add(time.Hour)}
	narrow := core.Limits{Payload: 10}
	within(t, db, func(x sqlexec.Executor) {
		ticked, err := NewSession(x, noon, narrow).TickSchedule(ctx, tick)
		var invalid *core.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "Payload", invalid.Field)
		require.False(t, ticked)
		due, err := NewSession(x, noon, narrow).DueSchedules(ctx, 10)
		require.NoError(t, err)
		require.Equal(t, "[k large]", fmt.Sprint([]string{due.Due[0].Key, due.Due[1].Key}))
		require.Zero(t, due.Due[1].LastID)
		tick.Key = "k"
		ticked, err = NewSession(x, noon, narrow).TickSchedule(ctx, tick)
		require.NoError(t, err)
		require.True(t, ticked)
	})
}
