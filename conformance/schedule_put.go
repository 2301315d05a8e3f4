package conformance

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
)

func schedApplied(k *kit) {
	declared := []core.Declared{
		{Spec: fullSchedule("a")}, {Spec: scheduled("b")}, {Spec: scheduled("c", making(payload([]byte{})))},
		{Spec: scheduled("d", making(func(r *core.EnqueueRequest) { r.Metadata = map[string]string{} }))},
	}
	for i := range declared {
		declared[i].Spec.Group = "g"
	}
	for _, want := range []core.Applied{{Put: []string{"a", "b", "c", "d"}}, {Kept: []string{"a", "b", "c", "d"}}} {
		done, err := core.ApplySchedules(k.ctx, k.store, "g", core.ApplyOptions{}, declared...)
		k.ok("ApplySchedules", err)
		eq(k, "what it did", fmt.Sprintf("%+v", done), fmt.Sprintf("%+v", want))
	}
}

func schedInvalidPut(k *kit) {
	long := func(n int) string { return strings.Repeat("x", n) }
	there := scheduled("there")
	k.put(there, oddTime())
	for _, c := range []struct {
		field string
		spoil func(*core.ScheduleSpec)
	}{
		{"Key", func(s *core.ScheduleSpec) { s.Key = "" }},
		{"Key", func(s *core.ScheduleSpec) { s.Key = "a\x00" }},
		{"Key", func(s *core.ScheduleSpec) { s.Key = "\xff" }},
		{"Key", func(s *core.ScheduleSpec) { s.Key = long(core.MaxKeyBytes + 1) }},
		{"Group", inGroup("a\n")},
		{"Group", inGroup(long(core.MaxKeyBytes + 1))},
		{"Cron", func(s *core.ScheduleSpec) { s.Every = 0 }},
		{"Cron", func(s *core.ScheduleSpec) { s.Cron = "* * * * *" }},
		{"Cron", func(s *core.ScheduleSpec) { s.Cron, s.Every = "every day", 0 }},
		{"Cron", func(s *core.ScheduleSpec) { s.Cron, s.Every = "0 0 30 2 *", 0 }},
		{"Zone", func(s *core.ScheduleSpec) { s.Zone = "UTC" }},
		{"Zone", func(s *core.ScheduleSpec) { s.Cron, s.Zone, s.Every = "@daily", "Mars/Olympus", 0 }},
		{"Every", func(s *core.ScheduleSpec) { s.Every = core.MinEvery - time.Microsecond }},
		{"Every", func(s *core.ScheduleSpec) { s.Every = -time.Hour }},
		{"Every", func(s *core.ScheduleSpec) { s.Every = time.Hour + 1 }},
		{"Misfire", func(s *core.ScheduleSpec) { s.Misfire = "never" }},
		{"CatchUp", func(s *core.ScheduleSpec) { s.CatchUp = -1 }},
		{"CatchUp", func(s *core.ScheduleSpec) { s.CatchUp = core.MaxCatchUp + 1 }},
		{"Overlap", func(s *core.ScheduleSpec) { s.Overlap = "wait" }},
		{"Request", making(func(r *core.EnqueueRequest) { r.ID = "mine" })},
		{"Request", making(keyed("k"))},
		{"Request", making(delay(1))},
		{"Request", making(runAt(oddTime()))},
		{"Request", making(func(r *core.EnqueueRequest) { r.Dedupe = &core.Dedupe{Key: "k"} })},
		{"Request", making(func(r *core.EnqueueRequest) { r.Trace = &core.Trace{} })},
		{"Name", making(named(""))},
		{"Name", making(named("a:b"))},
		{"Queue", making(onQueue(""))},
		{"Payload", making(payload(make([]byte, core.DefaultPayload+1)))},
		{"Metadata", making(tagged("", "v"))},
		{"Metadata", making(tagged("k", long(core.MaxMetadataBytes-1)))}, // no room for the slot
		{"Priority", making(prio(core.MaxPriority + 1))},
		{"MaxAttempts", making(func(r *core.EnqueueRequest) { r.MaxAttempts = 0 })},
		{"MaxStalls", making(maxStalls(-2))},
		{"Timeout", making(func(r *core.EnqueueRequest) { r.Timeout = -1 })},
		{"Backoff", making(func(r *core.EnqueueRequest) { r.Backoff = core.Fixed(-1) })},
		{"Keep.Failed", making(func(r *core.EnqueueRequest) { r.Keep.Failed.Count = -1 })},
	} {
		bad := scheduled("there", inGroup("other"), c.spoil)
		e := wantError[*core.InvalidError](k, "Put with a bad "+c.field, k.sched.PutSchedule(k.ctx, bad, oddTime()))
		eq(k, "InvalidError.Field", e.Field, c.field)
	}
	for _, first := range []time.Time{{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)} {
		e := wantError[*core.InvalidError](k, "Put with a bad first slot", k.sched.PutSchedule(k.ctx, scheduled("new"), first))
		eq(k, "InvalidError.Field", e.Field, "first")
	}
	k.wantKeys(core.ScheduleQuery{}, "there")
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: there, NextAt: core.Micros(oddTime())})
}

// schedBounds is at every bound at once; the slot leaves its mark in the metadata.
func schedBounds(k *kit) {
	slot := len(core.SlotMetadata) + len("2006-01-02T15:04:05.000000Z")
	at := time.Date(9998, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	s := core.ScheduleSpec{
		Key: strings.Repeat("k", core.MaxKeyBytes), Group: strings.Repeat("g", core.MaxKeyBytes), Every: math.MaxInt64 / 1000 * 1000,
		CatchUp: core.MaxCatchUp, Request: core.EnqueueRequest{
			Name: strings.Repeat("n", core.MaxNameBytes), Queue: strings.Repeat("q", core.MaxNameBytes), Priority: core.MinPriority,
			MaxAttempts: math.MaxInt32, MaxStalls: math.MaxInt32, Timeout: math.MaxInt64,
			Payload:  make([]byte, core.DefaultPayload),
			Metadata: map[string]string{"k": strings.Repeat("v", core.MaxMetadataBytes-1-slot)},
			Keep:     core.Keep{Failed: core.KeepRule{Count: math.MaxInt32, Age: math.MaxInt64}},
		},
	}
	k.put(s, at)
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: s, NextAt: core.Micros(at)})
	eq(k, "NextIn is given", k.due(1).NextIn > time.Hour, true)
	k.fires(core.Tick{Key: s.Key, Expect: at, Slots: []time.Time{at}, Passed: at, Next: at.Add(time.Hour)})
	c := k.claim(core.Want{Queue: s.Request.Queue, Names: []string{s.Request.Name}, Limit: 1})
	eqs(k, "jobs", c.ids(), []string{core.SlotID(s.Key, at)})
	k.sameBytes("payload", c.Jobs[0].Payload, s.Request.Payload)
	first := time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)
	k.put(scheduled("old"), first)
	due := k.due(10)
	eqs(k, "due", scheduleKeys(due.Due), []string{"old"})
	k.wantTime("NextAt", due.Due[0].NextAt, first)
}

// schedCopies changes everything that it gave and got, each time.
func schedCopies(k *kit) {
	fresh := func() core.ScheduleSpec {
		return scheduled("k", making(payload([]byte("payload")), tagged("key", "value")))
	}
	spoil := func(r *core.EnqueueRequest) {
		clear(r.Payload)
		r.Metadata["key"], r.Metadata["more"] = "spoilt", "spoilt"
	}
	want := core.ScheduleRecord{ScheduleSpec: fresh(), NextAt: k.now()}
	given := fresh()
	k.put(given, want.NextAt)
	spoil(&given.Request)
	for range 2 {
		listed := k.schedule("k")
		k.sameSchedule("Schedules", listed, want)
		spoil(&listed.Request)
		due := k.due(1).Due
		eq(k, "due", len(due), 1)
		k.sameSchedule("DueSchedules", due[0], want)
		spoil(&due[0].Request)
		given = fresh()
		k.put(given, want.NextAt)
		spoil(&given.Request)
	}
	at := want.NextAt
	for range 2 {
		k.fires(core.Tick{Key: "k", Expect: at, Slots: []time.Time{at}, Passed: at, Next: at.Add(time.Minute)})
		h := k.takeID(core.SlotID("k", at))
		eq(k, "metadata of the job", h.Metadata["key"], "value")
		k.sameBytes("payload", h.Payload, want.Request.Payload)
		clear(h.Payload)
		h.Metadata["key"] = "spoilt"
		want.LastSlot, want.LastID = at, h.ID
		at = at.Add(time.Minute)
		want.NextAt = at
		k.wantSchedule(want)
	}
}

func schedPutWakes(k *kit) {
	for _, queues := range [][]string{{theQueue}, {"one", "two"}, nil} {
		since := k.current(queues...)
		w := k.await(queues, since)
		w.stays()
		k.put(scheduled("k"), oddTime())
		k.must("an AwaitWake called before the Put", w)
		k.controlled("an AwaitWake called after the Put", queues, since)
	}
}

func schedPutWakesOthers(k *kit) {
	o := k.other()
	since := o.settled(theQueue)
	k.put(scheduled("k"), oddTime())
	o.controlled("Put in another process", nil, since)
}

// planning are the scheduler's methods, of which each would change or show something of the schedule "k", due at a time.
func (k *kit) planning(at time.Time) []method {
	return []method{
		{"PutSchedule", func(ctx context.Context) error { return k.sched.PutSchedule(ctx, scheduled("new"), at) }},
		{"RemoveSchedule", func(ctx context.Context) error { _, err := k.sched.RemoveSchedule(ctx, "k"); return err }},
		{"Schedules", func(ctx context.Context) error {
			_, err := k.sched.Schedules(ctx, core.ScheduleQuery{})
			return err
		}},
		{"DueSchedules", func(ctx context.Context) error { _, err := k.sched.DueSchedules(ctx, 1); return err }},
		{"TickSchedule", func(ctx context.Context) error {
			_, err := k.sched.TickSchedule(ctx, core.Tick{Key: "k", Expect: at, Slots: []time.Time{at}, Passed: at, Next: at.Add(time.Minute)})
			return err
		}},
		{"TickSchedule with an error", func(ctx context.Context) error {
			_, err := k.sched.TickSchedule(ctx, core.Tick{Key: "k", Expect: at, Err: "why"})
			return err
		}},
	}
}

func schedEnded(k *kit) {
	at := k.now()
	k.put(scheduled("k"), at)
	for _, m := range k.planning(at) {
		k.refuses(m, core.ErrUnavailable)
	}
	k.wantKeys(core.ScheduleQuery{}, "k")
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("k"), NextAt: at})
	k.none("no tick was done")
}

func schedClosed(k *kit) {
	at := k.now()
	k.put(scheduled("k"), at)
	k.close()
	for _, m := range k.planning(at) {
		k.is(m.name+" of a closed store", m.call(k.ctx), core.ErrUnavailable)
	}
}
