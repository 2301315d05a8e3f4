package core

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// Scheduler keeps schedules: durable rows, each of which makes a job at every slot of its cadence (Q26). Without it
// Job.Schedule returns an UnsupportedError. Workers plan: they ask what is due, compute the slots, and tick; the store
// makes that exactly once.
type Scheduler interface {
	// PutSchedule stores a schedule under its Key, in place of the one that is there. Validate is called first. What
	// happened so far stays: LastSlot, LastID. A cadence (Cron, Zone, Every) that is the same as before keeps its
	// NextAt; else NextAt becomes first. The error of the last tick is forgotten, and it is due again at once if it was
	// put off. Everybody who waits is woken with Control set, so that sweeps learn of the new time. An InvalidError names
	// what is wrong with s or first, and nothing is stored then.
	PutSchedule(ctx context.Context, s ScheduleSpec, first time.Time) error
	// RemoveSchedule reports whether there was one. Jobs that it made stay.
	RemoveSchedule(ctx context.Context, key string) (bool, error)
	// Schedules lists schedules by key, byte by byte.
	Schedules(ctx context.Context, q ScheduleQuery) ([]ScheduleRecord, error)
	// DueSchedules returns up to limit schedules whose NextAt has come, and whose RetryAt too, earliest NextAt first,
	// then by key; with limit 0 none, which asks for the store's time.
	DueSchedules(ctx context.Context, limit int) (DueSchedules, error)
	// TickSchedule is one atomic step: if the schedule is there and its NextAt is t.Expect, make a job for each of
	// t.Slots (ScheduleRecord.SlotRequest of the stored schedule) and move on; else nothing happens and false is
	// returned. Validate is called first.
	//
	// Slots are taken in order, as if each had a tick of its own. One whose job exists already, of whatever name, makes
	// none. With OverlapSkip, no job is made while that of LastID is pending; then only LastSlot and NextAt move. The
	// queue is woken for jobs that were made. A slot that is refused (ScheduleSpec.ValidateRequest) refuses the tick, with
	// its error, and nothing happens.
	//
	// With t.Err nothing but the error, RetryAt and Failures is stored, and nothing at all, answered false, if the
	// schedule is put off already: another sweep met the same error. Without it these are cleared.
	//
	// A tick that may have been done can be repeated: what was done answers false. It never waits for a row that is
	// held elsewhere, for somebody else ticks it then: false.
	TickSchedule(ctx context.Context, t Tick) (bool, error)
}

// ScheduleSpec is a cadence and what each of its slots enqueues, as stores see it. Job.Declare makes one of a Schedule.
type ScheduleSpec struct {
	Key   string // unique in the store; 1 to 255 bytes
	Group string // who owns it (ApplySchedules); "": nobody

	Cron  string        // ParseCron; exactly one of Cron and Every
	Zone  string        // IANA name for Cron; "": UTC
	Every time.Duration // on a fixed grid; at least 1 s, whole microseconds

	Misfire Misfire // what becomes of slots that nobody was there for; "": MisfireOne
	CatchUp int     // MisfireAll: at most so many jobs, the newest; 0: 100; at most MaxCatchUp
	Overlap Overlap // whether a slot runs beside the job of the one before; "": OverlapAllow

	// Request is what a slot enqueues. It has no ID, Key, Delay, RunAt, Dedupe or Trace.
	Request EnqueueRequest
}

// Misfire says what becomes of slots that passed while no worker was there to see them.
type Misfire string

// The policies for missed slots.
const (
	MisfireOne  Misfire = "one"  // one late run, of the newest
	MisfireSkip Misfire = "skip" // none: only a slot less than MisfireAfter late runs
	MisfireAll  Misfire = "all"  // each runs, up to ScheduleSpec.CatchUp, the newest
)

// Overlap says what happens at a slot while the job of the one before is still pending.
type Overlap string

// The policies for overlapping runs.
const (
	OverlapAllow Overlap = "allow" // both run
	OverlapSkip  Overlap = "skip"  // the new slot makes no job; of missed ones, MisfireAll or not, the newest alone counts
)

// Bounds of schedules.
const (
	MisfireAfter   = time.Minute // MisfireSkip: how late a slot may be
	DefaultCatchUp = 100
	MaxCatchUp     = 1000
	MinEvery       = time.Second
)

// SlotMetadata is the metadata key that says which slot a job was made for: RFC 3339, UTC. Handlers use Slot.
const SlotMetadata = "stint.slot"

// ScheduleRecord is a schedule as a store knows it. Times are UTC, cut to whole microseconds.
type ScheduleRecord struct {
	ScheduleSpec
	NextAt   time.Time // the slot that comes next
	LastSlot time.Time // the newest slot that was passed, run or skipped; zero: none yet
	LastID   string    // the newest slot's job that was made, or was there already; "": none yet

	LastError string    // why the slot at NextAt can't be made; "": nothing is wrong
	RetryAt   time.Time // it is tried again then; zero: nothing is wrong
	Failures  int       // in a row
}

// ScheduleQuery filters a list of schedules. All that is set must hold.
type ScheduleQuery struct {
	Key   string  // "": any
	Group *string // nil: any
	Name  string  // of the jobs; "": any
}

// DueSchedules answers Scheduler.DueSchedules.
type DueSchedules struct {
	Due    []ScheduleRecord
	Now    time.Time     // the store's
	NextIn time.Duration // until another one is due: never later than that; 0: there is none. 1 ns: more are due now
}

// Tick asks to move a schedule on.
type Tick struct {
	Key    string
	Expect time.Time   // NextAt, as the sweep saw it
	Slots  []time.Time // to make jobs for, ascending; empty: all are skipped
	Passed time.Time   // becomes LastSlot
	Next   time.Time   // becomes NextAt

	Err     string        // the slot can't be made: why
	RetryIn time.Duration // with Err
}

// SlotID is the id of a slot's job (Q10): @key@2026-11-30T02:00:00Z, with as many digits of a second as it has.
func SlotID(key string, slot time.Time) string {
	return "@" + key + "@" + Micros(slot).Format(time.RFC3339Nano)
}

// SlotRequest is what a store inserts for a slot. Its id is one that Validate refuses from users.
func (s *ScheduleSpec) SlotRequest(slot time.Time) EnqueueRequest {
	r := s.Request
	r.ID = SlotID(s.Key, slot)
	m := make(map[string]string, len(r.Metadata)+1)
	maps.Copy(m, r.Metadata)
	m[SlotMetadata] = Micros(slot).Format(time.RFC3339Nano)
	r.Metadata = m
	return r
}

// Slot returns the slot that the run of ctx was scheduled for; false if no schedule made its job.
func Slot(ctx context.Context) (time.Time, bool) {
	run, ok := Current(ctx)
	if !ok {
		return time.Time{}, false
	}
	slot, err := time.Parse(time.RFC3339Nano, run.Metadata[SlotMetadata])
	return slot, err == nil
}

// Validate checks a schedule (Q26); its cadence must have a slot to come.
func (s *ScheduleSpec) Validate(l Limits) error {
	if s.Key == "" {
		return &InvalidError{"Key", "must not be empty"}
	}
	if err := validateText("Key", s.Key, MaxKeyBytes); err != nil {
		return err
	}
	if err := validateText("Group", s.Group, MaxKeyBytes); err != nil {
		return err
	}
	switch s.Misfire {
	case "", MisfireOne, MisfireSkip, MisfireAll:
	default:
		return &InvalidError{"Misfire", fmt.Sprintf("unknown policy %q: must be one of %q, %q and %q", s.Misfire, MisfireOne, MisfireSkip, MisfireAll)}
	}
	switch s.Overlap {
	case "", OverlapAllow, OverlapSkip:
	default:
		return &InvalidError{"Overlap", fmt.Sprintf("unknown policy %q: must be %q or %q", s.Overlap, OverlapAllow, OverlapSkip)}
	}
	if s.CatchUp < 0 || s.CatchUp > MaxCatchUp {
		return &InvalidError{"CatchUp", fmt.Sprintf("must be 0 to %d", MaxCatchUp)}
	}
	if _, err := s.Cadence(time.Time{}); err != nil {
		return err
	}
	return s.ValidateRequest(l)
}
