package pgstoretest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// everyMinute is a schedule of a plain job, and oneSlot a tick of it.
func everyMinute(key string) core.ScheduleSpec {
	return core.ScheduleSpec{Key: key, Every: time.Minute, Request: Request("job")}
}

func oneSlot(key string, at time.Time) core.Tick {
	return core.Tick{Key: key, Expect: at, Slots: []time.Time{at}, Passed: at, Next: at.Add(time.Minute)}
}

// heldScheduleHoldsNobodyUp: a transaction has the row of a schedule. Ticks pass it by at once, and leave nothing; other
// schedules go on; whatever a Put or a Remove waits for, it ends with its context, and nothing was done.
func heldScheduleHoldsNobodyUp(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	schema := quoted(k.SchemaOf(s))
	at := time.Now().UTC().Truncate(time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, key := range []string{"held", "free"} {
		require.NoError(t, s.PutSchedule(ctx, everyMinute(key), at))
	}
	tx := k.Begin(t, s)
	_, err := tx.X.Exec(ctx, "update "+schema+".schedules set failures = failures where key = 'held'")
	require.NoError(t, err)
	quick, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	done, err := s.TickSchedule(quick, oneSlot("held", at))
	require.NoError(t, err)
	require.False(t, done)
	done, err = s.TickSchedule(quick, oneSlot("free", at))
	require.NoError(t, err)
	require.True(t, done)
	due, err := s.DueSchedules(quick, 10)
	require.NoError(t, err)
	require.Len(t, due.Due, 1)
	soon, give := context.WithTimeout(ctx, 50*time.Millisecond)
	defer give()
	changed := everyMinute("held")
	changed.Every = time.Hour
	require.Error(t, s.PutSchedule(soon, changed, at))
	_, err = s.RemoveSchedule(soon, "held")
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.NoError(t, tx.Rollback())
	require.Eventually(t, func() bool { // whatever of the Put was sent is over
		done, err = s.TickSchedule(ctx, oneSlot("held", at))
		return err != nil || done
	}, 8*time.Second, 10*time.Millisecond)
	require.NoError(t, err)
	require.EqualValues(t, 2, k.Numbers(t, "select count(*) from "+schema+".jobs")[0])
}

// tickMakesLostLane: the database lost what said that a queue has jobs of a priority. A tick notices, and its job is found.
func tickMakesLostLane(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	ctx, at := context.Background(), time.Now().UTC().Truncate(time.Second)
	require.NoError(t, s.PutSchedule(ctx, everyMinute("k"), at))
	k.Exec(t, "delete from "+quoted(k.SchemaOf(s))+".lanes")
	done, err := s.TickSchedule(ctx, oneSlot("k", at))
	require.NoError(t, err)
	require.True(t, done)
	got, err := s.Claim(ctx, core.ClaimRequest{Token: core.NewToken(), Lease: time.Minute,
		Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 1}}})
	require.NoError(t, err)
	require.Len(t, got.Jobs, 1)
	require.Equal(t, core.SlotID("k", at), got.Jobs[0].ID)
}
