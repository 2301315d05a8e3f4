package core

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func day(h, m, s int) time.Time { return time.Date(2026, 11, 30, h, m, s, 0, time.UTC) }

// TestIntervalNext: a grid stays where its anchor put it, on both sides and as far as the calendar reaches (Q26).
func TestIntervalNext(t *testing.T) {
	for _, c := range []struct {
		anchor      time.Time
		every       time.Duration
		after, want time.Time
	}{
		{day(12, 0, 0), time.Hour, day(12, 0, 0), day(13, 0, 0)},
		{day(12, 0, 0), time.Hour, day(15, 59, 59), day(16, 0, 0)},
		{day(12, 0, 7), 90 * time.Second, day(12, 3, 0), day(12, 3, 7)},
		{day(12, 0, 0), time.Hour, day(12, 0, 0).Add(-1), day(12, 0, 0)},
		{day(12, 0, 0), time.Hour, day(9, 30, 0), day(10, 0, 0)},
		{day(12, 0, 0), time.Hour, day(9, 0, 0), day(10, 0, 0)},
		{day(12, 0, 0), time.Second, day(12, 0, 0).Add(999_999_999), day(12, 0, 1)},
		{time.Time{}, 24 * time.Hour, day(1, 0, 0), day(24, 0, 0)},
		{day(0, 0, 0), 24 * time.Hour, time.Time{}, time.Time{}.AddDate(0, 0, 1)},
		{day(0, 0, 0), 1<<63 - 1, day(0, 0, 0), day(0, 0, 0).Add((1<<63 - 1) / 1000 * 1000)},
		{day(0, 0, 0), 24 * time.Hour, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Time{}},
	} {
		got := interval{c.anchor, c.every}.Next(c.after)
		require.True(t, got.Equal(c.want), "%v every %v after %v: %v", c.anchor, c.every, c.after, got)
	}
}

// TestCadence: a schedule has one of a cron expression and an interval, and @every is the second (Q26).
func TestCadence(t *testing.T) {
	for _, spec := range []ScheduleSpec{
		{Every: 90 * time.Minute}, {Cron: "@every 1h30m"}, {Cron: " @Every 5400s "},
	} {
		c, err := spec.Cadence(day(12, 0, 0))
		require.NoError(t, err)
		require.Equal(t, interval{day(12, 0, 0), 90 * time.Minute}, c)
	}
	for _, c := range []struct {
		spec  ScheduleSpec
		field string
	}{
		{ScheduleSpec{}, "Cron"},
		{ScheduleSpec{Cron: "@daily", Every: time.Hour}, "Cron"},
		{ScheduleSpec{Cron: "@every 1h", Every: time.Hour}, "Cron"},
		{ScheduleSpec{Cron: "@every"}, "Cron"},
		{ScheduleSpec{Cron: "@every soon"}, "Cron"},
		{ScheduleSpec{Cron: "@every 1h 2h"}, "Cron"},
		{ScheduleSpec{Cron: "@every 10ms"}, "Cron"},
		{ScheduleSpec{Cron: "@every -1h"}, "Cron"},
		{ScheduleSpec{Cron: "@every 1h", Zone: "UTC"}, "Zone"},
		{ScheduleSpec{Cron: "60 * * * *"}, "Cron"},
		{ScheduleSpec{Cron: "@daily", Zone: "Local"}, "Zone"},
		{ScheduleSpec{Every: time.Hour, Zone: "UTC"}, "Zone"},
		{ScheduleSpec{Every: time.Second - 1}, "Every"},
		{ScheduleSpec{Every: -time.Hour}, "Every"},
		{ScheduleSpec{Every: time.Second + 1}, "Every"},
	} {
		_, err := c.spec.Cadence(day(0, 0, 0))
		var invalid *InvalidError
		require.True(t, errors.As(err, &invalid), "%+v: %v", c.spec, err)
		require.Equal(t, c.field, invalid.Field, "%+v: %v", c.spec, err)
	}
}

// countingCadence counts what it is asked.
type countingCadence struct {
	Cadence
	asked int
}

func (c *countingCadence) Next(t time.Time) time.Time { c.asked++; return c.Cadence.Next(t) }

// TestNewestSlots: what was missed last is found in a few steps, though millions were missed before it.
func TestNewestSlots(t *testing.T) {
	for _, c := range []struct {
		cron     string
		every    time.Duration
		from, to time.Time
		n        int
		want     []time.Time
	}{
		{cron: "* * * * * *", from: day(0, 0, 0).AddDate(-1, 0, 0), to: day(12, 0, 0), n: 3, want: []time.Time{day(11, 59, 58), day(11, 59, 59), day(12, 0, 0)}},
		{cron: "* * * * * *", from: day(0, 0, 0), to: day(0, 0, 2), n: 3, want: []time.Time{day(0, 0, 1), day(0, 0, 2)}},
		{cron: "* * * 1 11 *", from: time.Time{}, to: day(12, 0, 0), n: 1, want: []time.Time{time.Date(2026, 11, 1, 23, 59, 59, 0, time.UTC)}},
		{cron: "0 0 29 2 *", from: time.Time{}, to: day(12, 0, 0), n: 2, want: []time.Time{time.Date(2020, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)}},
		{cron: "0 0 29 2 *", from: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), to: day(12, 0, 0), n: 1},
		{every: time.Second, from: time.Time{}, to: day(12, 0, 0).Add(1), n: 2, want: []time.Time{day(11, 59, 59), day(12, 0, 0)}},
		{every: time.Hour, from: day(10, 0, 0), to: day(12, 30, 0), n: 9, want: []time.Time{day(11, 0, 0), day(12, 0, 0)}},
		{every: time.Hour, from: day(12, 0, 0), to: day(12, 30, 0), n: 9},
		{every: time.Hour, from: day(13, 0, 0), to: day(12, 30, 0), n: 9},
		{every: time.Hour, from: day(0, 0, 0), to: day(12, 30, 0), n: 0},
	} {
		spec := ScheduleSpec{Cron: c.cron, Every: c.every}
		cadence, err := spec.Cadence(day(0, 0, 0))
		require.NoError(t, err)
		counted := &countingCadence{Cadence: cadence}
		require.Equal(t, c.want, newestSlots(counted, c.from, c.to, c.n), "%+v", c)
		require.Less(t, counted.asked, 200, "%+v", c)
	}
	c, err := ParseCron("* * * * * *", "Europe/Berlin")
	require.NoError(t, err)
	counted := &countingCadence{Cadence: c}
	require.Len(t, newestSlots(counted, time.Time{}, day(12, 0, 0), MaxCatchUp), MaxCatchUp)
	require.Less(t, counted.asked, 5*MaxCatchUp)
}

// TestNewestSlotsProperty: they are the last of all that Next gives, one by one.
func TestNewestSlotsProperty(t *testing.T) {
	exprs := []string{"*/7 * * * *", "30 2 * * *", "0 9-17 * * MON-FRI", "15,20 3 1 * *", "0 0 29 2 *", "*/5 * 1 * * *"}
	rapid.Check(t, func(t *rapid.T) {
		var cadence Cadence = interval{day(0, 0, 0), time.Duration(rapid.Int64Range(1e6, 1e8).Draw(t, "every")) * time.Microsecond}
		if rapid.Bool().Draw(t, "cron") {
			c, err := ParseCron(rapid.SampledFrom(exprs).Draw(t, "expr"), "Europe/Berlin")
			require.NoError(t, err)
			cadence = c
		}
		from := day(0, 0, 0).Add(time.Duration(rapid.Int64Range(0, 1e16).Draw(t, "from")))
		to := from.Add(time.Duration(rapid.Int64Range(0, 2e13).Draw(t, "length")))
		var all []time.Time
		for slot := cadence.Next(from); !slot.After(to); slot = cadence.Next(slot) {
			all = append(all, slot)
		}
		n := rapid.IntRange(0, 20).Draw(t, "n")
		got := newestSlots(cadence, from, to, n)
		require.True(t, slices.Equal(all[max(0, len(all)-n):], got), "%v instead of the last %d of %v", got, n, all)
	})
}

// TestOccurrences: what comes next, from NextAt on where that is known.
func TestOccurrences(t *testing.T) {
	slots := func(times ...time.Time) []time.Time { return times }
	spec := ScheduleSpec{Every: time.Hour}
	rec := ScheduleRecord{ScheduleSpec: spec, NextAt: day(12, 15, 0)}
	for _, c := range []struct {
		of interface {
			Occurrences(time.Time, int) ([]time.Time, error)
		}
		after time.Time
		want  []time.Time
	}{
		{&spec, day(10, 0, 0), slots(day(11, 0, 0), day(12, 0, 0))},
		{&rec, day(10, 0, 0), slots(day(12, 15, 0), day(13, 15, 0))}, // it will not run before
		{&rec, day(12, 15, 0), slots(day(13, 15, 0), day(14, 15, 0))},
		{&rec, day(15, 0, 0), slots(day(15, 15, 0), day(16, 15, 0))},
		{&ScheduleSpec{Cron: "0 9 * * *"}, day(9, 0, 0), slots(day(33, 0, 0), day(57, 0, 0))},
		{&ScheduleSpec{Cron: "0 0 1 1 *"}, time.Date(9998, 6, 1, 0, 0, 0, 0, time.UTC), slots(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))},
	} {
		got, err := c.of.Occurrences(c.after, 2)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		none, err := c.of.Occurrences(c.after, 0)
		require.NoError(t, err)
		require.Empty(t, none)
		_, err = c.of.Occurrences(c.after, -1)
		require.Error(t, err)
	}
	_, err := (&ScheduleSpec{Cron: "nonsense"}).Occurrences(day(0, 0, 0), 1)
	require.Error(t, err)
}
