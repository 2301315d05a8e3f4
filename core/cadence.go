package core

import (
	"fmt"
	"time"
)

// Cadence is when a schedule's slots are. Safe for concurrent use.
type Cadence interface {
	// Next is the first slot after t, in UTC; zero: there is none.
	Next(t time.Time) time.Time
}

// Cadence reads Cron and Zone, or Every, whose slots are a multiple of it away from anchor: ScheduleRecord.NextAt, or
// the moment that counts as the one before the first. InvalidError says what is wrong with them.
func (s *ScheduleSpec) Cadence(anchor time.Time) (Cadence, error) {
	switch {
	case (s.Cron == "") == (s.Every == 0):
		return nil, &InvalidError{"Cron", "exactly one of Cron and Every must be set"}
	case s.Cron != "":
		return ParseCron(s.Cron, s.Zone)
	case s.Zone != "":
		return nil, &InvalidError{"Zone", "is for Cron only"}
	case s.Every < MinEvery || s.Every%time.Microsecond != 0:
		return nil, &InvalidError{"Every", fmt.Sprintf("must be at least %v, in whole microseconds", MinEvery)}
	}
	return interval{Micros(anchor), s.Every}, nil
}

// interval is a fixed grid.
type interval struct {
	anchor time.Time
	every  time.Duration
}

// Next implements Cadence. Durations reach 292 years; grids whose anchor is farther off go on from t.
func (i interval) Next(t time.Time) time.Time {
	if t.Before(i.anchor) {
		return i.anchor.Add(-(i.anchor.Sub(t) - 1) / i.every * i.every)
	}
	return i.anchor.Add((t.Sub(i.anchor)/i.every + 1) * i.every)
}
