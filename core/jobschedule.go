package core

import (
	"context"
	"slices"
	"time"
)

// Schedule says when a job is made again and again, and what of: by Cron and Zone, or Every. The zero value of the rest is
// one late run for slots that were missed, and runs that may overlap (Q26).
type Schedule[P any] struct {
	Cron  string        // see ParseCron; "@every 90s" is Every. Exactly one of Cron and Every is set
	Zone  string        // IANA name of Cron's time zone; "": UTC
	Every time.Duration // from the first Job.Schedule on; at least 1 s, whole microseconds

	Payload P

	Misfire Misfire // what becomes of slots that no worker was there for; "": MisfireOne
	CatchUp int     // MisfireAll: at most so many jobs, the newest; 0: 100; at most MaxCatchUp
	Overlap Overlap // whether a slot runs beside the job of the one before; "": OverlapAllow

	Group string // who owns it; set by ApplySchedules

	// Options change what slots enqueue, as they change one Enqueue; ID, Delay, At and WithDedupe are refused. Slots have
	// ids of their own, so the job's Key and Dedupe are not asked.
	Options []EnqueueOption
}

// Schedule stores a schedule under a key that is unique in the store, or changes the one that is there. Where the cadence
// stays the same (Cron, Zone, Every) so does its next slot, so that deployments move nothing; otherwise that becomes the
// first after the store's now, which for Every is one Every away. It can be repeated after ErrUnknown. A key that a
// schedule of another job has, or one of another group, is a ScheduleConflictError.
//
// At each slot any worker of the store makes a job; the handler's Slot says for which. Its id is SlotID(key, slot), once
// ever. The store must be a Scheduler.
func (j *Job[P, R]) Schedule(ctx context.Context, s Store, key string, sch Schedule[P]) error {
	if err := given("Store", s); err != nil {
		return err
	}
	d := j.Declare(key, sch)
	if d.Err != nil {
		return d.Err
	}
	store, there, err := j.scheduleHolder(ctx, s, key)
	if err != nil {
		return err
	}
	if there.Group != "" && there.Group != sch.Group {
		return heldBy(&there)
	}
	now, err := store.DueSchedules(ctx, 0)
	if err != nil {
		return during(err, "schedule %s", key)
	}
	return putSchedule(ctx, store, d.Spec, now.Now)
}

// Unschedule removes a schedule of this job, and reports whether there was one. Jobs that it made stay. A key that a
// schedule of another job has is a ScheduleConflictError. The store must be a Scheduler.
func (j *Job[P, R]) Unschedule(ctx context.Context, s Store, key string) (bool, error) {
	if err := given("Store", s); err != nil {
		return false, err
	}
	store, _, err := j.scheduleHolder(ctx, s, key)
	if err != nil {
		return false, err
	}
	there, err := store.RemoveSchedule(ctx, key)
	if err != nil {
		return false, during(err, "unschedule %s", key)
	}
	return there, nil
}

// scheduleHolder is the store's Scheduler, and its schedule with that key, which is this job's; zero: there is none.
func (j *Job[P, R]) scheduleHolder(ctx context.Context, s Store, key string) (store Scheduler, there ScheduleRecord, err error) {
	store, ok := As[Scheduler](s)
	if !ok {
		return nil, there, errNoScheduler
	}
	if key == "" {
		return store, there, nil // for a query any, for a schedule none
	}
	recs, err := store.Schedules(ctx, ScheduleQuery{Key: key})
	if err != nil {
		return nil, there, during(err, "schedule %s", key)
	}
	for _, there = range recs {
		if there.Request.Name != j.name {
			return nil, there, heldBy(&there)
		}
	}
	return store, there, nil
}

var errNoScheduler = &UnsupportedError{"Schedule", "the store is no Scheduler"}

// putSchedule stores a schedule whose first slot, if it needs one, is the first after the store's now.
func putSchedule(ctx context.Context, s Scheduler, spec ScheduleSpec, now time.Time) error {
	c, err := spec.Cadence(now)
	if err != nil {
		return err
	}
	if err := s.PutSchedule(ctx, spec, c.Next(now)); err != nil {
		return during(err, "schedule %s", spec.Key)
	}
	return nil
}

// Declared is a schedule that a program wants to have: for ApplySchedules.
type Declared struct {
	Spec ScheduleSpec
	Err  error // what is wrong with it
}

// Declare builds what Schedule would store. An error is in its Err.
func (j *Job[P, R]) Declare(key string, sch Schedule[P]) Declared {
	d := Declared{Spec: ScheduleSpec{
		Key: key, Group: sch.Group, Cron: sch.Cron, Zone: sch.Zone, Every: sch.Every,
		Misfire: sch.Misfire, CatchUp: sch.CatchUp, Overlap: sch.Overlap,
	}}
	if d.Spec.Request, d.Err = j.slotRequest(sch); d.Err == nil {
		d.Err = d.Spec.Validate(Limits{Payload: MaxPayload}) // the store knows its own
	}
	if d.Err != nil {
		d.Err = during(d.Err, "schedule %s", key)
	}
	return d
}

// slotRequest is what a slot enqueues, without what each slot has of its own.
func (j *Job[P, R]) slotRequest(sch Schedule[P]) (EnqueueRequest, error) {
	var asked enqueueSettings
	for _, o := range sch.Options {
		o.applyEnqueue(&asked)
	}
	for _, r := range []struct {
		field string
		set   bool
	}{
		{"ID", asked.req.ID != "" || asked.err != nil}, {"Delay", asked.delay}, {"RunAt", asked.at},
		{"Dedupe", asked.req.Dedupe != nil}, {"Trace", asked.req.Trace != nil},
	} {
		if r.set {
			return EnqueueRequest{}, &InvalidError{r.field, "is no option of a schedule: the slot decides"}
		}
	}
	own := enqueueOption(func(s *enqueueSettings) { s.req.ID, s.req.Key = "slot", "" }) // any id: Key is not asked
	req, err := j.Request(context.Background(), sch.Payload, append(slices.Clip(sch.Options), own)...)
	req.ID, req.Dedupe, req.Trace = "", nil, nil
	return req, err
}
