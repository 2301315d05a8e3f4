package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// What one tick holds at most, so that it is done in the time of a store call.
const (
	planSlots = 100
	planBytes = MaxClaimBytes
)

// planTick says what becomes of a due schedule's slots at the store's time now, with at most limit jobs; where that is
// not enough for all, the tick stops at the next of them, and another goes on (Q26).
func planTick(rec *ScheduleRecord, now time.Time, limit int) (Tick, error) {
	cadence, err := rec.Cadence(rec.NextAt)
	if err != nil {
		return Tick{}, err
	}
	if now.Before(rec.NextAt) {
		now = rec.NextAt
	}
	next := cadence.Next(now)
	if next.IsZero() {
		return Tick{}, &InvalidError{"Cron", fmt.Sprintf("has no slot between %v and the year 9999", now)}
	}
	slots := missed(rec, cadence, now)
	if most := max(min(limit, planBytes/(len(rec.Request.Payload)+1)), 1); len(slots) > most {
		slots, next = slots[:most], slots[most]
	}
	last := slots[len(slots)-1]
	if rec.Misfire == MisfireSkip && now.Sub(last) >= MisfireAfter {
		slots = nil
	}
	return Tick{Key: rec.Key, Expect: rec.NextAt, Slots: slots, Passed: last, Next: next}, nil
}

// missed are the newest slots up to now, as many as the schedule's policies may run. NextAt is a slot by the store's word,
// even where the rules of a time zone changed since.
func missed(rec *ScheduleRecord, cadence Cadence, now time.Time) []time.Time {
	most := 1
	if rec.Misfire == MisfireAll && rec.Overlap != OverlapSkip {
		most = min(cmp.Or(rec.CatchUp, DefaultCatchUp), MaxCatchUp)
	}
	slots := newestSlots(cadence, rec.NextAt, now, most)
	if len(slots) < most {
		slots = slices.Insert(slots, 0, rec.NextAt)
	}
	return slots
}
