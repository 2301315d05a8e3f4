package core

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Validate checks a tick, before the store looks whether it still holds (Q26). That a tick only goes forward, and makes
// jobs only for slots between Expect and Next, is what makes each slot exactly one job, pruned or not.
func (t Tick) Validate() error {
	if err := ValidateSlot("Expect", t.Expect); err != nil {
		return err
	}
	if t.Err != "" {
		return t.validateErr()
	}
	if err := ValidateSlot("Passed", t.Passed); err != nil {
		return err
	}
	if err := ValidateSlot("Next", t.Next); err != nil {
		return err
	}
	expect, next := Micros(t.Expect), Micros(t.Next)
	if passed := Micros(t.Passed); passed.Before(expect) || !passed.Before(next) {
		return &InvalidError{"Passed", "must be Expect or later, and before Next"}
	}
	if len(t.Slots) > MaxCatchUp {
		return &InvalidError{"Slots", fmt.Sprintf("are %d, more than %d", len(t.Slots), MaxCatchUp)}
	}
	least := expect
	for _, slot := range t.Slots {
		if slot = Micros(slot); slot.Before(least) || !slot.Before(next) {
			return &InvalidError{"Slots", "must ascend from Expect, and be before Next"}
		}
		least = slot.Add(time.Microsecond)
	}
	return nil
}

func (t Tick) validateErr() error {
	if t.RetryIn < 0 {
		return &InvalidError{"RetryIn", "must not be negative"}
	}
	if !utf8.ValidString(t.Err) || strings.IndexByte(t.Err, 0) >= 0 || len(t.Err) > MaxFailureBytes {
		return &InvalidError{"Err", fmt.Sprintf("must be valid UTF-8 without NUL of at most %d bytes", MaxFailureBytes)}
	}
	return nil
}

// ValidateSlot checks a slot's time: not zero, in the years 1 to 9999 (Q13).
func ValidateSlot(field string, t time.Time) error {
	if y := t.UTC().Year(); t.IsZero() || y < 1 || y > 9999 {
		return &InvalidError{field, "must be set, in the years 1 to 9999"}
	}
	return nil
}

// SameCadence reports whether two schedules have their slots at the same times: Cron, Zone and Every are equal, an
// empty Zone being UTC.
func (s *ScheduleSpec) SameCadence(o *ScheduleSpec) bool {
	zone := func(s *ScheduleSpec) string {
		if s.Zone == "" {
			return "UTC"
		}
		return s.Zone
	}
	return s.Cron == o.Cron && s.Every == o.Every && zone(s) == zone(o)
}

// ValidateRequest checks what a slot enqueues, as stores do again at each tick: their Limits may have shrunk.
func (s *ScheduleSpec) ValidateRequest(l Limits) error {
	r := &s.Request
	if r.ID != "" || r.Key != "" || r.Delay != 0 || !r.RunAt.IsZero() || r.Dedupe != nil || r.Trace != nil {
		return &InvalidError{"Request", "must not have an ID, Key, Delay, RunAt, Dedupe or Trace: the slot decides"}
	}
	return s.SlotRequest(time.Unix(0, 1000)).validate(l)
}
