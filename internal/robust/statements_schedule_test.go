package robust_test

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
)

// scheduleOperations are those on schedules. A scene has one, which comes to sceneSlot.
func scheduleOperations() []operation {
	return []operation{
		{name: "put a schedule", do: func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			return sn.PutSchedule(ctx, sc.schedule(time.Hour), sceneSlot.Add(time.Minute))
		}, holds: func(sc *scene) { require.Equal(sc.t, time.Hour, sc.scheduled().Every) }},
		{name: "remove a schedule", do: func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			_, err := sn.RemoveSchedule(ctx, sc.queue)
			return err
		}},
		{name: "tick", whole: true, do: func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			t := core.Tick{Key: sc.queue, Expect: sceneSlot, Passed: sceneSlot.Add(2 * time.Minute), Next: sceneSlot.Add(3 * time.Minute)}
			for i := range 3 {
				t.Slots = append(t.Slots, sceneSlot.Add(time.Duration(i)*time.Minute))
			}
			_, err := sn.TickSchedule(ctx, t, pgsql.Notify{Channel: "robust", Origin: "-"}) // false: the try before did it
			return err
		}, holds: func(sc *scene) {
			r := sc.scheduled()
			require.Equal(sc.t, sceneSlot.Add(3*time.Minute), r.NextAt)
			require.Equal(sc.t, core.SlotID(sc.queue, sceneSlot.Add(2*time.Minute)), r.LastID)
			require.Equal(sc.t, 3, sc.e.number("select count(*) from "+sc.e.schema+".jobs where id ^@ $1", "@"+sc.queue+"@"))
		}},
		{name: "put a slot off", whole: true, do: func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			_, err := sn.TickSchedule(ctx, core.Tick{Key: sc.queue, Expect: sceneSlot, Err: "why", RetryIn: time.Hour}, pgsql.Notify{})
			return err
		}, holds: func(sc *scene) {
			r := sc.scheduled()
			require.Equal(sc.t, sceneSlot, r.NextAt)
			require.Equal(sc.t, 1, r.Failures)
		}},
	}
}

// sceneSlot is the slot that a scene's schedule comes to.
var sceneSlot = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// schedule is the one of a scene, under the name of its queue.
func (sc *scene) schedule(every time.Duration) core.ScheduleSpec {
	return core.ScheduleSpec{Key: sc.queue, Every: every, Request: sc.requests(1, false)[0]}
}

func (sc *scene) scheduled() core.ScheduleRecord {
	rs, err := sc.s.Schedules(context.Background(), core.ScheduleQuery{Key: sc.queue})
	require.NoError(sc.t, err)
	require.Len(sc.t, rs, 1)
	return rs[0]
}
