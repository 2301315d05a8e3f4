package core

import (
	"math/bits"
	"time"
)

// Cron is a cron expression in a time zone; ParseCron makes it. Safe for concurrent use.
//
// Where clocks are put forward, a time of day that does not exist comes at the first instant after the gap, once
// however many of them fell into it. Where they are put back, one that comes twice counts the first time only. An
// expression that admits every hour goes by elapsed time instead: it goes on through both of the hours that are the
// same, and a gap of whole hours hides nothing of it (Q26).
type Cron struct {
	zone                   *time.Location
	second, minute         uint64 // bits of the values that match
	hour, day, month, week uint64 // week: of weekdays, Sunday is bit 0
	either                 bool   // a day matches by day of the month or by weekday; else by both
}

const (
	allHours = 1<<24 - 1
	maxYear  = 9999 // of what stores hold

	// zoneReach is more than any zone is away from UTC.
	zoneReach = 24 * time.Hour
)

// Next implements Cadence: the first slot after t, in UTC. Zero: there is none up to the year 9999.
//
// Between two changes of a zone's offset, local time is UTC moved by it. So the next match is looked for on the
// calendar alone, and belongs to the stretch of constant offset that has it. Local times are kept as if they were UTC.
func (c *Cron) Next(t time.Time) time.Time {
	t = t.UTC().Truncate(time.Second).Add(time.Second) // sub-second parts of slots are zero
	for {
		start, end := stretch(t, c.zone)
		offset := offsetAt(t, c.zone)
		local := t.Add(offset)
		if !start.IsZero() {
			// The local time when the offset changed, and what it was changed to.
			before := start.UTC().Add(offsetAt(start.Add(-time.Second), c.zone))
			after := start.UTC().Add(offset)
			switch {
			case t.Equal(start) && before.Before(after) && c.matchesGap(before, after):
				return t
			case c.hour != allHours && local.Before(before):
				local = before // what is earlier was there already
			}
		}
		next := c.nextLocal(local)
		if next.IsZero() {
			return time.Time{}
		}
		if at := next.Add(-offset); end.IsZero() || at.Before(end) {
			if at.Year() > maxYear {
				return time.Time{}
			}
			return at
		}
		// No offset makes anything before next match, but for local times that come again.
		again := c.hour == allHours && offsetAt(end, c.zone) < offset
		if t = next.Add(-zoneReach); again || t.Before(end) {
			t = end.UTC()
		}
	}
}

// matchesGap reports whether a local time that was left out, from before until after, makes up for it afterwards.
func (c *Cron) matchesGap(before, after time.Time) bool {
	if c.hour == allHours && after.Sub(before)%time.Hour == 0 {
		return false
	}
	next := c.nextLocal(before)
	return !next.IsZero() && next.Before(after)
}

// stretch is the time around t during which its zone's offset stays the same, or a part of it; zero: without an end.
func stretch(t time.Time, zone *time.Location) (start, end time.Time) {
	start, end = t.In(zone).ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		// It takes all years to have 365 days where a zone's rules go on from its table: the 366th is in none.
		end = t.Truncate(time.Hour).Add(time.Hour)
	}
	return start, end
}

func offsetAt(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// nextLocal is the first local time that matches, t or later; zero: none up to the year 9999.
func (c *Cron) nextLocal(t time.Time) time.Time {
	year, month, day := t.Date()
	clock, same := c.clockFrom(t.Clock())
	if !same {
		day++ // no time of day is left on this one
	}
	for first := true; year <= maxYear; first = false {
		if c.month>>month&1 == 1 {
			if d := lowest(c.days(year, month) >> day << day); d >= 0 {
				if !first || d != t.Day() {
					clock, _ = c.clockFrom(0, 0, 0)
				}
				return time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Add(clock)
			}
		}
		day = 1
		if month++; month > time.December {
			year, month = year+1, time.January
		}
	}
	return time.Time{}
}

// days are the days of a month that match, as bits.
func (c *Cron) days(year int, month time.Month) uint64 {
	first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	all := uint64(1)<<(first.AddDate(0, 1, -1).Day()+1) - 2
	// Six weeks from the Sunday before the 1st, then moved so that bit 1 is the 1st.
	weeks := c.week * (1 | 1<<7 | 1<<14 | 1<<21 | 1<<28 | 1<<35) >> first.Weekday() << 1
	if c.either {
		return (c.day | weeks) & all
	}
	return c.day & weeks & all
}

// clockFrom is the first time of day that matches, at the given one or later, and whether there is one.
func (c *Cron) clockFrom(hour, minute, second int) (time.Duration, bool) {
	s := lowest(c.second >> second << second)
	if s < 0 {
		minute, s = minute+1, lowest(c.second)
	}
	m := lowest(c.minute >> minute << minute)
	if m != minute {
		s = lowest(c.second)
	}
	if m < 0 {
		hour, m = hour+1, lowest(c.minute)
	}
	h := lowest(c.hour >> hour << hour)
	if h != hour {
		m, s = lowest(c.minute), lowest(c.second)
	}
	if h < 0 {
		return 0, false
	}
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second, true
}

// lowest is the number of the lowest bit that is set; -1: none is.
func lowest(set uint64) int {
	if set == 0 {
		return -1
	}
	return bits.TrailingZeros64(set)
}
