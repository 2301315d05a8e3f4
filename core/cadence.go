package core

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cadence is when a schedule's slots are. Safe for concurrent use.
type Cadence interface {
	// Next is the first slot after t, in UTC; zero: there is none.
	Next(t time.Time) time.Time
}

// everyMacro begins a Cron that says Every: "@every 90s".
const everyMacro = "@every"

// Cadence reads Cron and Zone, or Every, whose slots are a multiple of it away from anchor: ScheduleRecord.NextAt, or
// the moment that counts as the one before the first. A Cron "@every 90s" is Every. InvalidError says what is wrong
// with them.
func (s *ScheduleSpec) Cadence(anchor time.Time) (Cadence, error) {
	every, field := s.Every, "Every"
	switch fields := strings.Fields(s.Cron); {
	case (s.Cron == "") == (s.Every == 0):
		return nil, &InvalidError{"Cron", "exactly one of Cron and Every must be set"}
	case len(fields) > 0 && strings.EqualFold(fields[0], everyMacro):
		var err error
		field = "Cron"
		if every, err = time.ParseDuration(strings.Join(fields[1:], " ")); err != nil {
			return nil, &InvalidError{field, fmt.Sprintf("%q needs a duration as 1h30m", brief(s.Cron))}
		}
	case s.Cron != "":
		return ParseCron(s.Cron, s.Zone)
	}
	switch {
	case s.Zone != "":
		return nil, &InvalidError{"Zone", "is for cron expressions, not for intervals"}
	case every < MinEvery || every%time.Microsecond != 0:
		return nil, &InvalidError{field, fmt.Sprintf("must be at least %v, in whole microseconds", MinEvery)}
	}
	return interval{Micros(anchor), every}, nil
}

// interval is a fixed grid.
type interval struct {
	anchor time.Time
	every  time.Duration
}

// Next implements Cadence. It counts in microseconds, of which 64 bits hold all that a calendar has.
func (i interval) Next(t time.Time) time.Time {
	anchor, every := i.anchor.UnixMicro(), i.every.Microseconds()
	passed := t.UnixMicro() - anchor
	n := passed / every
	if passed%every < 0 {
		n-- // round down
	}
	next := time.UnixMicro(anchor + (n+1)*every).UTC()
	if next.Year() > maxYear {
		return time.Time{}
	}
	return next
}

// newestSlots returns the last slots after from, up to and including to, n at most, in ascending order. It takes a few
// steps for each of them, however many there are before.
func newestSlots(c Cadence, from, to time.Time, n int) []time.Time {
	var slots []time.Time
	reach := time.Second
	for len(slots) < n {
		slot := newestSlot(c, from, to, reach)
		if slot.IsZero() {
			break
		}
		if len(slots) > 0 {
			reach = slots[len(slots)-1].Sub(slot) // they tend to be as far from each other
		}
		slots = append(slots, slot)
		to = slot.Add(-1)
	}
	slices.Reverse(slots)
	return slots
}

// newestSlot is the last slot after from, up to and including to; zero: none. It looks back in windows that double,
// reach being the first, and bisects the one that has a slot.
func newestSlot(c Cadence, from, to time.Time, reach time.Duration) time.Time {
	within := func(slot time.Time) bool { return !slot.IsZero() && !slot.After(to) }
	var slot time.Time
	for ; !within(slot); reach *= 2 {
		start := to.Add(-reach)
		whole := reach <= 0 || !start.After(from) // it cannot double for ever
		if whole {
			start = from
		}
		if slot = c.Next(start); whole && !within(slot) {
			return time.Time{}
		}
	}
	none := to // no slot after it
	for {
		next := c.Next(slot)
		if !within(next) {
			return slot
		}
		slot = next
		middle := slot.Add(none.Sub(slot) / 2)
		if next = c.Next(middle); within(next) {
			slot = next
		} else {
			none = middle
		}
	}
}

// Occurrences returns the next n slots after the given time, fewer only where the calendar ends. Those of Every are
// counted from it; ScheduleRecord.Occurrences knows the grid.
func (s *ScheduleSpec) Occurrences(after time.Time, n int) ([]time.Time, error) {
	return s.occurrences(after, after, n)
}

// Occurrences returns the next n slots after the given time, fewer only where the calendar ends. NextAt is the first of
// them that is still to come: none is before it.
func (r *ScheduleRecord) Occurrences(after time.Time, n int) ([]time.Time, error) {
	if n < 1 || !after.Before(r.NextAt) {
		return r.occurrences(r.NextAt, after, n)
	}
	rest, err := r.occurrences(r.NextAt, r.NextAt, n-1)
	if err != nil {
		return nil, err
	}
	return append([]time.Time{r.NextAt}, rest...), nil
}

func (s *ScheduleSpec) occurrences(anchor, after time.Time, n int) ([]time.Time, error) {
	if n < 0 {
		return nil, &InvalidError{"n", "must not be negative"}
	}
	c, err := s.Cadence(anchor)
	if err != nil {
		return nil, err
	}
	var slots []time.Time
	for slot := c.Next(after); len(slots) < n && !slot.IsZero(); slot = c.Next(slot) {
		slots = append(slots, slot)
	}
	return slots, nil
}
