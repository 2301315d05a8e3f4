package core

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// ApplyOptions change ApplySchedules.
type ApplyOptions struct {
	// Remove removes the group's schedules that are not declared. Without it they go on and are reported. While two
	// releases run side by side, only the newer one should remove.
	Remove bool
}

// Applied is what ApplySchedules did, by keys in order.
type Applied struct {
	Put     []string // new, or not as declared
	Kept    []string // as declared already
	Stale   []string // of the group, not declared, and still there
	Removed []string // of the group, not declared, and removed
}

// ApplySchedules makes the schedules of a group those that are declared, at a program's start: each is stored as
// Job.Schedule does. What else the group has is reported, or removed. Schedules of other groups, and of none, are never
// touched: where one has a key that is declared, a ScheduleConflictError is returned, and nothing was stored. Nor was it
// after an InvalidError: an empty group, a key declared twice, a declaration of another group or with an error.
//
// A failure of the store may leave some stored; repeat it then. The store must be a Scheduler.
//
//	core.ApplySchedules(ctx, store, "billing", core.ApplyOptions{Remove: true},
//		Report.Declare("nightly-report", core.Schedule[ReportArgs]{Cron: "0 2 * * *", Zone: "Europe/Berlin"}),
//		Sync.Declare("sync", core.Schedule[SyncArgs]{Every: time.Minute}),
//	)
func ApplySchedules(ctx context.Context, s Store, group string, opts ApplyOptions, declared ...Declared) (Applied, error) {
	if err := given("Store", s); err != nil {
		return Applied{}, err
	}
	store, ok := As[Scheduler](s)
	if !ok {
		return Applied{}, errNoScheduler
	}
	specs, err := declaredSpecs(group, declared)
	if err != nil {
		return Applied{}, err
	}
	a := applying{ctx, store, group, make(map[string]ScheduleRecord), Applied{}}
	if err = a.look(specs); err == nil {
		err = a.put(specs)
	}
	if err == nil {
		err = a.clear(specs, opts.Remove)
	}
	if err != nil {
		err = during(err, "schedules of group %s", group)
	}
	return a.done, err
}

// declaredSpecs are the schedules by key, each labelled with the group.
func declaredSpecs(group string, declared []Declared) ([]ScheduleSpec, error) {
	if group == "" {
		return nil, &InvalidError{"Group", "must not be empty"}
	}
	specs := make([]ScheduleSpec, len(declared))
	for i, d := range declared {
		if d.Err != nil {
			return nil, d.Err
		}
		specs[i] = d.Spec
		if g := specs[i].Group; g != "" && g != group {
			return nil, &InvalidError{"Group", fmt.Sprintf("of %s is %q, not %q", specs[i].Key, g, group)}
		}
		specs[i].Group = group
		if err := specs[i].Validate(Limits{Payload: MaxPayload}); err != nil {
			return nil, during(err, "schedule %s", specs[i].Key)
		}
	}
	slices.SortFunc(specs, byKey)
	for i := 1; i < len(specs); i++ {
		if specs[i].Key == specs[i-1].Key {
			return nil, &InvalidError{"Key", fmt.Sprintf("%q is declared twice", specs[i].Key)}
		}
	}
	return specs, nil
}

func byKey(a, b ScheduleSpec) int { return strings.Compare(a.Key, b.Key) }

type applying struct {
	ctx   context.Context //nolint:containedctx // of one call
	store Scheduler
	group string
	there map[string]ScheduleRecord // the group's
	done  Applied
}

// look learns what the group has, and that nobody else has any of the keys.
func (a *applying) look(specs []ScheduleSpec) error {
	recs, err := a.store.Schedules(a.ctx, ScheduleQuery{Group: &a.group})
	if err != nil {
		return err
	}
	for _, r := range recs {
		a.there[r.Key] = r
	}
	for _, s := range specs {
		if _, ok := a.there[s.Key]; ok {
			continue
		}
		recs, err := a.store.Schedules(a.ctx, ScheduleQuery{Key: s.Key})
		if err != nil {
			return err
		}
		for i := range recs {
			if recs[i].Group != a.group {
				return heldBy(&recs[i])
			}
		}
	}
	return nil
}

// put stores what is not as declared. A fleet that starts does not wake everybody for each schedule again.
func (a *applying) put(specs []ScheduleSpec) error {
	now, err := a.store.DueSchedules(a.ctx, 0)
	if err != nil {
		return err
	}
	for _, s := range specs {
		if r, ok := a.there[s.Key]; ok && r.LastError == "" && sameSpec(r.ScheduleSpec, s) {
			a.done.Kept = append(a.done.Kept, s.Key)
			continue
		}
		if err := putSchedule(a.ctx, a.store, s, now.Now); err != nil {
			return err
		}
		a.done.Put = append(a.done.Put, s.Key)
	}
	return nil
}

// sameSpec reports whether a schedule is stored as declared. Stores don't tell metadata that is empty from none.
func sameSpec(a, b ScheduleSpec) bool {
	for _, s := range []*ScheduleSpec{&a, &b} {
		if len(s.Request.Metadata) == 0 {
			s.Request.Metadata = nil
		}
	}
	return reflect.DeepEqual(a, b)
}

// clear removes or reports what is not declared.
func (a *applying) clear(specs []ScheduleSpec, remove bool) error {
	for _, s := range specs {
		delete(a.there, s.Key)
	}
	for key := range a.there {
		a.done.Stale = append(a.done.Stale, key)
	}
	slices.Sort(a.done.Stale)
	for remove && len(a.done.Stale) > 0 {
		key := a.done.Stale[0]
		if _, err := a.store.RemoveSchedule(a.ctx, key); err != nil {
			return err
		}
		a.done.Stale = a.done.Stale[1:]
		a.done.Removed = append(a.done.Removed, key)
	}
	if len(a.done.Stale) == 0 {
		a.done.Stale = nil
	}
	return nil
}
