package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPlanTick: which slots run, and where a schedule goes on, by the policies for what was missed (Q26).
func TestPlanTick(t *testing.T) {
	hours := func(hh ...int) (out []time.Time) {
		for _, h := range hh {
			out = append(out, day(h, 0, 0))
		}
		return out
	}
	hourly := func(change func(*ScheduleRecord)) ScheduleRecord {
		r := ScheduleRecord{ScheduleSpec: ScheduleSpec{Key: "k", Cron: "0 * * * *"}, NextAt: day(10, 0, 0)}
		if change != nil {
			change(&r)
		}
		return r
	}
	for _, c := range []struct {
		about  string
		rec    ScheduleRecord
		now    time.Time
		limit  int
		slots  []time.Time
		passed time.Time
		next   time.Time
	}{
		{"in time", hourly(nil), day(10, 0, 0), 100, hours(10), day(10, 0, 0), day(11, 0, 0)},
		{"a little late", hourly(nil), day(10, 40, 0), 100, hours(10), day(10, 0, 0), day(11, 0, 0)},
		{"one: the newest", hourly(nil), day(13, 40, 0), 100, hours(13), day(13, 0, 0), day(14, 0, 0)},
		{"skip, in time", hourly(func(r *ScheduleRecord) { r.Misfire = MisfireSkip }), day(10, 0, 59), 100, hours(10), day(10, 0, 0), day(11, 0, 0)},
		{"skip, late", hourly(func(r *ScheduleRecord) { r.Misfire = MisfireSkip }), day(10, 1, 0), 100, nil, day(10, 0, 0), day(11, 0, 0)},
		{"skip, many missed, the last in time", hourly(func(r *ScheduleRecord) { r.Misfire = MisfireSkip }), day(13, 0, 30), 100, hours(13), day(13, 0, 0), day(14, 0, 0)},
		{"skip, many missed", hourly(func(r *ScheduleRecord) { r.Misfire = MisfireSkip }), day(13, 30, 0), 100, nil, day(13, 0, 0), day(14, 0, 0)},
		{"all", hourly(func(r *ScheduleRecord) { r.Misfire = MisfireAll }), day(13, 30, 0), 100, hours(10, 11, 12, 13), day(13, 0, 0), day(14, 0, 0)},
		{"all, the newest two", hourly(func(r *ScheduleRecord) { r.Misfire, r.CatchUp = MisfireAll, 2 }), day(13, 30, 0), 100, hours(12, 13), day(13, 0, 0), day(14, 0, 0)},
		{"all, two in a tick", hourly(func(r *ScheduleRecord) { r.Misfire = MisfireAll }), day(13, 30, 0), 2, hours(10, 11), day(11, 0, 0), day(12, 0, 0)},
		{"all, the newest three, two in a tick", hourly(func(r *ScheduleRecord) { r.Misfire, r.CatchUp = MisfireAll, 3 }), day(13, 30, 0), 2, hours(11, 12), day(12, 0, 0), day(13, 0, 0)},
		{"all, payloads that fill a call", hourly(func(r *ScheduleRecord) {
			r.Misfire, r.Request.Payload = MisfireAll, make([]byte, planBytes/2)
		}), day(13, 30, 0), 100, hours(10), day(10, 0, 0), day(11, 0, 0)},
		{"all, without overlap", hourly(func(r *ScheduleRecord) { r.Misfire, r.Overlap = MisfireAll, OverlapSkip }), day(13, 30, 0), 100, hours(13), day(13, 0, 0), day(14, 0, 0)},
		{"a slot that is none any more", hourly(func(r *ScheduleRecord) { r.NextAt = day(10, 30, 0) }), day(10, 45, 0), 100, []time.Time{day(10, 30, 0)}, day(10, 30, 0), day(11, 0, 0)},
		{"a store whose time went back", hourly(nil), day(9, 0, 0), 100, hours(10), day(10, 0, 0), day(11, 0, 0)},
		{"a grid", ScheduleRecord{ScheduleSpec: ScheduleSpec{Key: "k", Every: 2 * time.Hour}, NextAt: day(9, 0, 0)}, day(14, 0, 0), 100, hours(13), day(13, 0, 0), day(15, 0, 0)},
		{"a grid, by @every", ScheduleRecord{ScheduleSpec: ScheduleSpec{Key: "k", Cron: "@every 2h"}, NextAt: day(9, 0, 0)}, day(13, 0, 0), 100, hours(13), day(13, 0, 0), day(15, 0, 0)},
	} {
		got, err := planTick(&c.rec, c.now, c.limit)
		require.NoError(t, err, c.about)
		require.Equal(t, Tick{Key: "k", Expect: c.rec.NextAt, Slots: c.slots, Passed: c.passed, Next: c.next}, got, c.about)
		require.NoError(t, got.Validate(), c.about)
	}
	rec := ScheduleRecord{ScheduleSpec: ScheduleSpec{Key: "k", Cron: "* * * * * *", Misfire: MisfireAll}, NextAt: day(0, 0, 0)}
	got, err := planTick(&rec, rec.NextAt.AddDate(1, 0, 0), 1000)
	require.NoError(t, err)
	require.Len(t, got.Slots, DefaultCatchUp)

	for _, rec := range []ScheduleRecord{
		{ScheduleSpec: ScheduleSpec{Cron: "@daily", Zone: "Europe/Atlantis"}, NextAt: day(0, 0, 0)},
		{ScheduleSpec: ScheduleSpec{Cron: "@daily"}, NextAt: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
	} {
		_, err := planTick(&rec, rec.NextAt, 1)
		require.Error(t, err)
	}
}
