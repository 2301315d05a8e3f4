package conformance

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// planner is the waking model with schedules, in which each line that keeps a promise can be left out by the fault that
// names it; without a fault it keeps all.
type planner struct {
	*waking
	fault string
	plans map[string]*core.ScheduleRecord
}

// misplanned makes a mutant of the planner; "" is none.
func misplanned(fault string) mutant {
	h := modelHarness(func(m *modelStore) core.Store {
		w := &waking{modelStore: m, muffled: "no kind", changed: make(chan struct{})}
		return &planner{w, fault, map[string]*core.ScheduleRecord{}}
	}, CapAdmin, CapWake, CapOpen, CapSchedule)
	h.Open = func(_ testing.TB, s core.Store, _ core.Clock) core.Store { return s }
	return mutant{fault, h}
}

// TestPlanner: without a fault it passes, so it is the faults that are caught.
func TestPlanner(t *testing.T) {
	if caught, why := firstFailure(t, misplanned("").harness, "schedule", 5*time.Second); caught != "" {
		t.Errorf("fails %s:\n%s", caught, why)
	}
}

// keeps reports whether the planner keeps a promise: unless that is its fault.
func (p *planner) keeps(fault string) bool { return p.fault != fault }

func (p *planner) PutSchedule(ctx context.Context, s core.ScheduleSpec, first time.Time) error {
	if err := s.Validate(core.Limits{}); err != nil && p.keeps("a Put of anything") {
		return err
	}
	if err := core.ValidateSlot("first", first); err != nil && p.keeps("a first slot of any time") {
		return err
	}
	if p.keeps("a Put does not look at its context") {
		if _, err := p.enter(ctx); err != nil {
			return err
		}
	} else {
		p.mu.Lock()
	}
	r := &core.ScheduleRecord{ScheduleSpec: p.own(s, "Put keeps the caller's slices"), NextAt: core.Micros(first)}
	if !p.keeps("first slots keep their nanoseconds") {
		r.NextAt = first.UTC()
	}
	if old := p.plans[s.Key]; old != nil {
		p.putAgain(r, old)
	}
	p.plans[s.Key] = r
	p.mu.Unlock()
	if p.keeps("a Put wakes nobody") {
		p.tell("put", "")
	}
	return nil
}

func (p *planner) putAgain(r, old *core.ScheduleRecord) {
	s := &r.ScheduleSpec
	same := s.SameCadence(&old.ScheduleSpec)
	switch p.fault {
	case "UTC is another zone than none":
		same = same && s.Zone == old.Zone
	case "zones make no difference":
		same = s.Cron == old.Cron && s.Every == old.Every
	case "expressions make no difference":
		same = (s.Cron == "") == (old.Cron == "") && s.Every == old.Every
	case "intervals make no difference":
		same = s.Cron == old.Cron
	case "an unchanged cadence takes the new first slot":
		same = false
	case "a changed cadence keeps its next slot":
		same = true
	case "an unchanged cadence keeps all the rest, too":
		if same {
			*r = *old
			return
		}
	}
	if same {
		r.NextAt = old.NextAt
	}
	if p.keeps("a Put forgets the last slot") {
		r.LastSlot = old.LastSlot
	}
	if p.keeps("a Put forgets the last job") {
		r.LastID = old.LastID
	}
	if !p.keeps("a Put keeps the error") {
		r.LastError, r.Failures = old.LastError, old.Failures
	}
	if !p.keeps("a Put keeps putting off") {
		r.RetryAt = old.RetryAt
	}
}

func (p *planner) RemoveSchedule(ctx context.Context, key string) (bool, error) {
	if _, err := p.enter(ctx); err != nil {
		return false, err
	}
	defer p.mu.Unlock()
	r, there := p.plans[key]
	if p.keeps("Remove removes nothing") {
		delete(p.plans, key)
	}
	if there && !p.keeps("Remove takes the jobs with it") {
		p.jobs = slices.DeleteFunc(p.jobs, func(j *modelJob) bool { return j.ID == r.LastID })
	}
	return there || !p.keeps("Remove of nothing is true"), nil
}

func (p *planner) Schedules(ctx context.Context, q core.ScheduleQuery) ([]core.ScheduleRecord, error) {
	if _, err := p.enter(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	keys := slices.Sorted(maps.Keys(p.plans))
	if !p.keeps("schedules are listed by length of key") {
		slices.SortStableFunc(keys, func(a, b string) int { return len(a) - len(b) })
	}
	var out []core.ScheduleRecord
	for _, key := range keys {
		r := p.plans[key]
		switch {
		case q.Key != "" && q.Key != key && p.keeps("the key is no filter"):
		case q.Name != "" && q.Name != r.Request.Name && p.keeps("the name is no filter"):
		case q.Group != nil && *q.Group != r.Group && p.keeps("the group is no filter") &&
			(p.keeps("no group is any group") || *q.Group != ""):
		default:
			out = append(out, p.show(r))
		}
	}
	return out, nil
}

func (p *planner) DueSchedules(ctx context.Context, limit int) (core.DueSchedules, error) {
	if limit < 0 && p.keeps("a limit below zero is none") {
		return core.DueSchedules{}, &core.InvalidError{Field: "limit"}
	}
	now, err := p.enter(ctx)
	if err != nil {
		return core.DueSchedules{}, err
	}
	defer p.mu.Unlock()
	out := core.DueSchedules{Now: now}
	if !p.keeps("Now is in a zone") {
		out.Now = now.In(time.FixedZone("", 3600))
	}
	var due []*core.ScheduleRecord
	for _, r := range p.plans {
		at := r.NextAt
		if r.RetryAt.After(at) && p.keeps("what was put off is due") {
			at = r.RetryAt
		}
		if !r.RetryAt.IsZero() && !p.keeps("RetryAt counts alone") {
			at = r.RetryAt
		}
		if at.Before(now) || at.Equal(now) && p.keeps("due only after NextAt") {
			due = append(due, r)
			continue
		}
		in := at.Sub(now)
		if !r.RetryAt.IsZero() && !p.keeps("NextIn leaves out what was put off") {
			continue
		}
		if out.NextIn == 0 || in < out.NextIn {
			out.NextIn = in
		}
	}
	slices.SortFunc(due, func(a, b *core.ScheduleRecord) int {
		if !p.keeps("due by key only") {
			return cmp.Compare(a.Key, b.Key)
		}
		if !p.keeps("equals in reverse") {
			return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(b.Key, a.Key))
		}
		return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.Key, b.Key))
	})
	if len(due) > limit && p.keeps("NextIn knows nothing of what is left over") {
		out.NextIn = 1
	}
	if limit == 0 && !p.keeps("limit 0 is no limit") {
		limit = len(due)
	}
	if !p.keeps("one over the limit") {
		limit++
	}
	for _, r := range due[:max(0, min(limit, len(due)))] {
		out.Due = append(out.Due, p.show(r))
	}
	return out, nil
}

func (p *planner) TickSchedule(ctx context.Context, t core.Tick) (bool, error) {
	if err := t.Validate(); err != nil && p.keeps("a tick of anything") {
		return false, err
	}
	now, err := p.enter(ctx)
	if err != nil {
		return false, err
	}
	fired, woken := p.tick(t, now)
	p.mu.Unlock()
	if p.keeps("a tick wakes nobody") {
		for _, q := range woken {
			p.tell("tick", q)
		}
	}
	return fired, nil
}

func (p *planner) tick(t core.Tick, now time.Time) (fired bool, woken []string) {
	r := p.plans[t.Key]
	if r == nil {
		return !p.keeps("a tick of nothing is true"), nil
	}
	expect := core.Micros(t.Expect)
	if !p.keeps("ticks are compared by the nanosecond") {
		expect = t.Expect
	}
	switch same := r.NextAt.Equal(expect); {
	case same:
	case !p.keeps("NextAt is not compared"):
	case !p.keeps("NextAt is compared by the second") && r.NextAt.Sub(t.Expect).Abs() < time.Second:
	case !p.keeps("an earlier tick is as good") && t.Expect.Before(r.NextAt):
	case !p.keeps("a stale error is stored") && t.Err != "":
	case !p.keeps("a stale tick is true"):
		return true, nil
	default:
		return false, nil
	}
	if t.Err != "" && p.keeps("errors are no errors") {
		return p.putOff(r, t, now), nil
	}
	for i, slot := range t.Slots {
		if i > 0 && !p.keeps("one slot per tick") || i < len(t.Slots)-1 && !p.keeps("only the newest slot of a tick") {
			continue
		}
		if p.insertSlot(r, slot, now, i) {
			woken = append(woken, r.Request.Queue)
		}
	}
	if p.keeps("a tick does not say what passed") {
		r.LastSlot = core.Micros(t.Passed)
	}
	if !p.keeps("the last slot is the last that was made") && len(t.Slots) > 0 {
		r.LastSlot = core.Micros(t.Slots[len(t.Slots)-1])
	}
	if p.keeps("a tick stays where it is") && (len(t.Slots) > 0 || p.keeps("a tick without slots stays where it is")) {
		r.NextAt = core.Micros(t.Next)
	}
	if p.keeps("a good tick keeps the error") {
		r.LastError, r.Failures = "", 0
	}
	if p.keeps("a good tick keeps RetryAt") {
		r.RetryAt = time.Time{}
	}
	return true, woken
}

func (p *planner) putOff(r *core.ScheduleRecord, t core.Tick, now time.Time) bool {
	if r.RetryAt.After(now) && p.keeps("every sweep counts an error") {
		return false
	}
	r.LastError, r.Failures = t.Err, r.Failures+1
	if p.keeps("errors put nothing off") {
		r.RetryAt = core.Micros(now.Add(t.RetryIn))
	}
	if !p.keeps("put off from the slot, not from now") {
		r.RetryAt = core.Micros(r.NextAt.Add(t.RetryIn))
	}
	if !p.keeps("an error moves on") {
		r.NextAt, r.LastSlot = core.Micros(t.Next), core.Micros(t.Passed)
	}
	if !p.keeps("failures are not counted") {
		r.Failures = 1
	}
	return p.keeps("an error that is stored answers false")
}

// insertSlot makes a slot's job and reports whether there is a new one.
func (p *planner) insertSlot(r *core.ScheduleRecord, slot, now time.Time, nth int) bool {
	if last := p.find(r.LastID); r.Overlap == core.OverlapSkip && last != nil {
		pending := last.State.Pending()
		switch p.fault {
		case "runs that must not overlap do":
			pending = false
		case "only active runs overlap":
			pending = last.State == core.StateActive
		case "delayed runs don't overlap":
			pending = pending && last.State != core.StateDelayed
		case "finished runs overlap, too":
			pending = true
		case "slots of one tick don't overlap":
			pending = pending && nth == 0
		}
		if pending {
			if !p.keeps("a slot that was skipped is the last job") {
				r.LastID = core.SlotID(r.Key, slot)
			}
			return false
		}
	} else if !p.keeps("no runs overlap") && last != nil && last.State.Pending() {
		return false
	}
	req := r.SlotRequest(slot)
	there := p.find(req.ID)
	switch {
	case there != nil && p.keeps("a slot's job is made again"):
		if p.keeps("a job that was there is not the last one") {
			r.LastID = req.ID
		}
		return false
	case there != nil:
		p.jobs = slices.DeleteFunc(p.jobs, func(j *modelJob) bool { return j == there })
	}
	p.spoil(&req, r, slot)
	id := req.ID
	req.ID = "" // Enqueue takes no such id
	j := p.find(p.enqueue(req, now).ID)
	j.ID = id
	if !p.keeps("a slot's job is enqueued at its slot") {
		j.EnqueuedAt, j.RunAt = core.Micros(slot), core.Micros(slot)
	}
	if p.keeps("the last job is not noted") {
		r.LastID = id
	}
	return true
}

// spoil changes what a slot's job is.
func (p *planner) spoil(req *core.EnqueueRequest, r *core.ScheduleRecord, slot time.Time) {
	switch p.fault {
	case "the slot is not in the metadata":
		req.Metadata = r.Request.Metadata
	case "the caller's metadata says which slot it is":
		maps.Copy(req.Metadata, r.Request.Metadata)
	case "ids by the second":
		req.ID = core.SlotID(r.Key, slot.Truncate(time.Second))
	case "jobs lose their priority":
		req.Priority = 0
	case "jobs lose their timeout":
		req.Timeout = 0
	case "jobs lose their keep":
		req.Keep = core.Keep{}
	case "jobs lose their backoff":
		req.Backoff = core.Backoff{}
	case "jobs lose their attempts":
		req.MaxAttempts = 1
	case "payloads are text":
		req.Payload = bytes.ToValidUTF8(req.Payload, []byte("?"))
	}
}

// show is a record as the caller may have it.
func (p *planner) show(r *core.ScheduleRecord) core.ScheduleRecord {
	c := *r
	c.ScheduleSpec = p.own(r.ScheduleSpec, "records are shared")
	switch p.fault {
	case "groups are not kept":
		c.Group = ""
	case "policies are not kept":
		c.Misfire, c.CatchUp, c.Overlap = "", 0, ""
	case "zones are spelt out":
		c.Zone = cmp.Or(c.Zone, "UTC")
	}
	return c
}

// own gives a schedule slices and maps of its own.
func (p *planner) own(s core.ScheduleSpec, fault string) core.ScheduleSpec {
	if p.keeps(fault) {
		s.Request.Payload, s.Request.Metadata = bytes.Clone(s.Request.Payload), maps.Clone(s.Request.Metadata)
	}
	return s
}
