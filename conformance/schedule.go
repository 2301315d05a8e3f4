package conformance

import (
	"fmt"
	"reflect"
	"time"

	"github.com/stintmq/stint/core"
)

// scheduleCases are about what is stored; those about time and ticks are in schedule_due.go and schedule_tick.go.
func scheduleCases() []testCase {
	needs := []Capability{CapSchedule}
	cases := []testCase{
		{rule: "Q26", name: "every-field", run: schedEveryField, needs: needs,
			demands: "a schedule comes back as it was put, with its first slot cut to the microsecond"},
		{rule: "Q26", name: "zero-fields", run: schedZeroFields, needs: needs, timeless: true,
			demands: "a schedule without options comes back without any"},
		{rule: "Q26", name: "order", run: schedOrder, needs: needs, timeless: true,
			demands: "Schedules lists by key, byte by byte"},
		{rule: "Q26", name: "filters", run: schedFilters, needs: needs, timeless: true,
			demands: "Schedules filters by key, group and name; all that is set must hold, and no group is a group"},
		{rule: "Q26", name: "put-again", run: schedPutAgain, needs: needs,
			demands: "Put replaces everything under the key but what happened so far; an unchanged cadence keeps its next slot"},
		{rule: "Q26", name: "put-changed-cadence", run: schedPutChanged, needs: needs,
			demands: "a changed cadence takes the first slot that Put names; what happened so far stays"},
		{rule: "Q26", name: "applied", run: schedApplied, needs: needs, timeless: true,
			demands: "ApplySchedules puts nothing again that is stored as declared"},
		{rule: "Q26", name: "remove", run: schedRemove, needs: needs,
			demands: "Remove says whether there was one; jobs stay; another one under the key starts anew"},
		{rule: "Q13", name: "invalid-put", run: schedInvalidPut, needs: needs, timeless: true,
			demands: "what is wrong with a schedule is an InvalidError that names the field; nothing is stored or replaced"},
		{rule: "Q13", name: "bounds", run: schedBounds, needs: needs,
			demands: "what is exactly at a bound is accepted and comes back as it was"},
		{rule: "Q13", name: "copies", run: schedCopies, needs: needs,
			demands: "the store keeps nothing of the caller's, hands out nothing of its own, and jobs share nothing with schedules"},
		{rule: "Q15", name: "put-wakes-control", run: schedPutWakes, needs: append(needs, CapWake), timeless: true,
			demands: "a Put sets Control, for waiters of any queue and of none"},
		{rule: "Q15", name: "put-wakes-others", run: schedPutWakesOthers, needs: append(needs, CapWake, CapOpen), timeless: true,
			demands: "a Put in one process sets Control in the others"},
		{rule: "Guarantees", name: "ended", run: schedEnded, needs: needs,
			demands: "a call whose context had ended does nothing and says so: its error wraps the context's and core.ErrUnavailable"},
		{rule: "Guarantees", name: "closed", run: schedClosed, needs: append(needs, CapClose), closes: true,
			demands: "every method of a closed store returns an error that wraps core.ErrUnavailable"},
	}
	return append(append(cases, dueCases()...), tickCases()...)
}

// scheduled is a schedule of a default job every minute.
func scheduled(key string, mods ...func(*core.ScheduleSpec)) core.ScheduleSpec {
	s := core.ScheduleSpec{Key: key, Every: time.Minute, Request: request("")}
	for _, m := range mods {
		m(&s)
	}
	return s
}

func inGroup(g string) func(*core.ScheduleSpec) { return func(s *core.ScheduleSpec) { s.Group = g } }

func making(mods ...mod) func(*core.ScheduleSpec) {
	return func(s *core.ScheduleSpec) {
		for _, m := range mods {
			m(&s.Request)
		}
	}
}

// fullSchedule sets every field.
func fullSchedule(key string) core.ScheduleSpec {
	r := fullRequest("")
	r.Delay, r.Trace = 0, nil
	return core.ScheduleSpec{
		Key: key, Group: "billing/é", Cron: "30 2 * * mon-fri", Zone: "Europe/Berlin", Misfire: core.MisfireAll, CatchUp: 17,
		Overlap: core.OverlapSkip, Request: r,
	}
}

// put stores a schedule.
func (k *kit) put(s core.ScheduleSpec, first time.Time) {
	k.Helper()
	k.ok("PutSchedule of "+s.Key, k.sched.PutSchedule(k.ctx, s, first))
}

func (k *kit) schedules(q core.ScheduleQuery) []core.ScheduleRecord {
	k.Helper()
	got, err := k.sched.Schedules(k.ctx, q)
	k.ok("Schedules", err)
	return got
}

// wantKeys checks which schedules a query finds.
func (k *kit) wantKeys(q core.ScheduleQuery, keys ...string) {
	k.Helper()
	eqs(k, fmt.Sprintf("schedules of %+v", q), scheduleKeys(k.schedules(q)), keys)
}

func scheduleKeys(rs []core.ScheduleRecord) []string {
	keys := make([]string, len(rs))
	for i, r := range rs {
		keys[i] = r.Key
	}
	return keys
}

// schedule is the one under a key.
func (k *kit) schedule(key string) core.ScheduleRecord {
	k.Helper()
	got := k.schedules(core.ScheduleQuery{Key: key})
	if len(got) != 1 || got[0].Key != key {
		k.failf("Schedules of key %q answered %v", key, scheduleKeys(got))
	}
	return got[0]
}

// wantSchedule checks everything that is known of a schedule.
func (k *kit) wantSchedule(want core.ScheduleRecord) {
	k.Helper()
	k.sameSchedule("Schedules", k.schedule(want.Key), want)
}

func (k *kit) sameSchedule(what string, got, want core.ScheduleRecord) {
	k.Helper()
	for _, r := range []*core.ScheduleRecord{&got, &want} {
		if len(r.Request.Payload) == 0 {
			r.Request.Payload = nil
		}
		if len(r.Request.Metadata) == 0 {
			r.Request.Metadata = nil
		}
	}
	if !reflect.DeepEqual(got, want) {
		k.failf("%s of %q:\n\tgot  %+v\n\twant %+v", what, want.Key, got, want)
	}
}

// oddTime is an instant with nanoseconds and a zone of its own.
func oddTime() time.Time {
	return time.Date(2031, time.July, 9, 11, 22, 33, 987_654_999, time.FixedZone("odd", -7*60*60))
}

func schedEveryField(k *kit) {
	s := fullSchedule("report")
	first := oddTime()
	k.put(s, first)
	want := core.ScheduleRecord{ScheduleSpec: s, NextAt: core.Micros(first)}
	k.wantSchedule(want)
	s = scheduled("grid", func(s *core.ScheduleSpec) { s.Every = 90*time.Minute + time.Microsecond })
	k.put(s, k.clock.Now())
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: s, NextAt: k.now()})
	k.wantSchedule(want)
	k.none("no slot was ticked")
}

func schedZeroFields(k *kit) {
	s := core.ScheduleSpec{Key: "k", Cron: "* * * * *", Request: core.EnqueueRequest{Name: "n", Queue: "q", MaxAttempts: 1}}
	k.put(s, oddTime())
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: s, NextAt: core.Micros(oddTime())})
}

func schedOrder(k *kit) {
	k.wantKeys(core.ScheduleQuery{})
	for _, key := range []string{"b", "é", "a", "B", "a/b", "a b", "a-b", "Z"} {
		k.put(scheduled(key), oddTime())
	}
	k.wantKeys(core.ScheduleQuery{}, "B", "Z", "a", "a b", "a-b", "a/b", "b", "é")
}

func schedFilters(k *kit) {
	group := func(g string) *string { return &g }
	k.put(scheduled("a", inGroup("g"), making(named("one"))), oddTime())
	k.put(scheduled("b", inGroup("g"), making(named("two"))), oddTime())
	k.put(scheduled("c", making(named("one"))), oddTime())
	k.put(scheduled("d", inGroup("h"), making(named("one"))), oddTime())
	for _, c := range []struct {
		q    core.ScheduleQuery
		keys []string
	}{
		{core.ScheduleQuery{}, []string{"a", "b", "c", "d"}},
		{core.ScheduleQuery{Group: group("g")}, []string{"a", "b"}},
		{core.ScheduleQuery{Group: group("")}, []string{"c"}},
		{core.ScheduleQuery{Group: group("nobody")}, nil},
		{core.ScheduleQuery{Name: "one"}, []string{"a", "c", "d"}},
		{core.ScheduleQuery{Name: "on"}, nil},
		{core.ScheduleQuery{Key: "b"}, []string{"b"}},
		{core.ScheduleQuery{Key: "x"}, nil},
		{core.ScheduleQuery{Key: "a\x00"}, nil},
		{core.ScheduleQuery{Key: "\xff", Name: "\xff", Group: group("\x00")}, nil},
		{core.ScheduleQuery{Name: "one", Group: group("g")}, []string{"a"}},
		{core.ScheduleQuery{Key: "a", Name: "two", Group: group("g")}, nil},
	} {
		k.wantKeys(c.q, c.keys...)
	}
	k.put(scheduled("a", making(named("one"))), oddTime()) // it leaves its group
	k.wantKeys(core.ScheduleQuery{Group: group("g")}, "b")
	k.wantKeys(core.ScheduleQuery{Group: group("")}, "a", "c")
}

func schedPutAgain(k *kit) {
	first := k.now().Add(time.Minute)
	next := first.Add(24 * time.Hour)
	old := fullSchedule("k")
	old.Zone = ""
	k.put(old, first)
	k.put(scheduled("other"), first)
	k.fires(core.Tick{Key: "k", Expect: first, Slots: []time.Time{first}, Passed: first, Next: next})
	for _, zone := range []string{"UTC", ""} {
		s := core.ScheduleSpec{Key: "k", Cron: old.Cron, Zone: zone, Request: request("", named("new"), onQueue("elsewhere"), prio(-3), payload([]byte{0, 255}))}
		k.put(s, first.Add(7*time.Hour))
		k.wantSchedule(core.ScheduleRecord{ScheduleSpec: s, NextAt: next, LastSlot: first, LastID: core.SlotID("k", first)})
	}
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("other"), NextAt: first})
}

func schedPutChanged(k *kit) {
	first := k.now().Add(time.Minute)
	cron := func(expr, zone string) func(*core.ScheduleSpec) {
		return func(s *core.ScheduleSpec) { s.Cron, s.Zone, s.Every = expr, zone, 0 }
	}
	s := scheduled("k")
	k.put(s, first)
	k.fires(core.Tick{Key: "k", Expect: first, Slots: []time.Time{first}, Passed: first, Next: first.Add(time.Minute)})
	at := first
	for _, change := range []func(*core.ScheduleSpec){
		func(s *core.ScheduleSpec) { s.Every = time.Minute + time.Microsecond },
		cron("0 2 * * *", ""), cron("0 2 * * *", "Europe/Berlin"), cron("0 3 * * *", "Europe/Berlin"), cron("0 3 * * *", "UTC"),
		func(s *core.ScheduleSpec) { s.Cron, s.Zone, s.Every = "", "", time.Hour },
	} {
		change(&s)
		at = at.Add(10*time.Minute + 999)
		k.put(s, at)
		k.wantSchedule(core.ScheduleRecord{ScheduleSpec: s, NextAt: core.Micros(at), LastSlot: first, LastID: core.SlotID("k", first)})
	}
	k.put(s, first) // the same again, and back in time
	eq(k, "NextAt", k.schedule("k").NextAt, core.Micros(at))
}

func schedRemove(k *kit) {
	remove := func(key string, want bool) {
		k.Helper()
		got, err := k.sched.RemoveSchedule(k.ctx, key)
		k.ok("RemoveSchedule of "+key, err)
		eq(k, "RemoveSchedule of "+key, got, want)
	}
	first := k.now()
	k.put(scheduled("a"), first)
	k.put(scheduled("b"), first)
	k.fires(core.Tick{Key: "a", Expect: first, Slots: []time.Time{first}, Passed: first, Next: first.Add(time.Minute)})
	remove("a", true)
	remove("a", false)
	for _, key := range []string{"never", "", "B", "b\x00", "\xff"} {
		remove(key, false)
	}
	k.wantKeys(core.ScheduleQuery{}, "b")
	k.takeID(core.SlotID("a", first))
	k.put(scheduled("a"), first.Add(time.Hour))
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("a"), NextAt: first.Add(time.Hour)})
}
