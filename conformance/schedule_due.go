package conformance

import (
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func dueCases() []testCase {
	needs := []Capability{CapSchedule}
	return []testCase{
		{rule: "Q26", name: "due-boundary", run: dueBoundary, needs: needs,
			demands: "a schedule is due when its NextAt has come, not a microsecond earlier; NextIn is how long that is"},
		{rule: "Q26", name: "due-order", run: dueOrder, needs: needs,
			demands: "DueSchedules answers the earliest first, then by key, up to the limit; 1 ns says that more are due"},
		{rule: "Q26", name: "due-nothing", run: dueNothing, needs: needs, timeless: true,
			demands: "with limit 0 nothing is answered but the store's time and how long there is until one is due"},
		{rule: "Q26", name: "due-next-in", run: dueNextIn, needs: needs,
			demands: "NextIn follows what is put, ticked and removed; schedules that were put off count from RetryAt"},
		{rule: "Q26", name: "due-record", run: dueRecord, needs: needs,
			demands: "DueSchedules answers records as Schedules does"},
		{rule: "Q26", name: "error", run: dueError, needs: needs,
			demands: "a tick with Err stores the error and puts the schedule off, and moves nothing else"},
		{rule: "Q26", name: "error-once", run: dueErrorOnce, needs: needs,
			demands: "while a schedule is put off another error of the same slot is not stored; a good tick is"},
		{rule: "Q26", name: "error-alone", run: dueErrorAlone, needs: needs,
			demands: "a schedule that cannot be ticked holds up no other"},
		{rule: "Q26", name: "error-cleared", run: dueErrorCleared, needs: needs,
			demands: "a good tick and a Put clear the error; after a Put the slot is due at once"},
		{rule: "Q26", name: "error-stale", run: dueErrorStale, needs: needs,
			demands: "a tick with Err whose Expect is stale stores nothing"},
	}
}

// due asks for due schedules and checks what holds for every answer.
func (k *kit) due(limit int) core.DueSchedules {
	k.Helper()
	got, err := k.sched.DueSchedules(k.ctx, limit)
	k.ok("DueSchedules", err)
	k.wantTime("DueSchedules.Now", got.Now, k.nowOrAny())
	if len(got.Due) > limit || got.NextIn < 0 {
		k.failf("DueSchedules with limit %d answered %d, NextIn %v", limit, len(got.Due), got.NextIn)
	}
	return got
}

// wantDue checks which schedules are due, and how long it is to the next.
func (k *kit) wantDue(limit int, in time.Duration, keys ...string) {
	k.Helper()
	got := k.due(limit)
	eqs(k, "due schedules", scheduleKeys(got.Due), keys)
	eq(k, "NextIn", got.NextIn, in)
}

func dueBoundary(k *kit) {
	k.wantDue(10, 0)
	k.put(scheduled("k"), k.now().Add(time.Minute))
	k.wantDue(10, time.Minute)
	k.advance(time.Minute - time.Microsecond)
	k.wantDue(10, time.Microsecond)
	k.advance(time.Microsecond)
	k.wantDue(10, 0, "k")
	k.advance(time.Hour)
	k.wantDue(10, 0, "k") // until it is ticked
}

func dueOrder(k *kit) {
	now := k.now()
	for i, key := range []string{"d", "b", "é", "B", "c"} {
		k.put(scheduled(key), now.Add(-time.Hour*time.Duration(i/4)))
	}
	k.put(scheduled("a"), now.Add(-time.Microsecond))
	k.put(scheduled("later"), now.Add(time.Second))
	order := []string{"c", "a", "B", "b", "d", "é"}
	for n := range order {
		k.wantDue(n, 1, order[:n]...)
	}
	k.wantDue(len(order), time.Second, order...)
	k.wantDue(1000, time.Second, order...)
}

func dueNothing(k *kit) {
	eq(k, "NextIn without schedules", k.due(0).NextIn, 0)
	k.put(scheduled("k"), k.nowOrAny().Add(time.Hour))
	if in := k.due(0).NextIn; in <= 0 || in > time.Hour {
		k.failf("NextIn is %v, with a schedule that is due in an hour", in)
	}
	k.put(scheduled("past"), k.nowOrAny().Add(-time.Hour))
	eq(k, "NextIn with a due schedule", k.due(0).NextIn, 1)
	_, err := k.sched.DueSchedules(k.ctx, -1)
	wantError[*core.InvalidError](k, "DueSchedules with limit -1", err)
}

func dueNextIn(k *kit) {
	now := k.now()
	k.put(scheduled("a"), now.Add(time.Hour))
	k.put(scheduled("b"), now.Add(time.Minute))
	k.put(scheduled("c"), now)
	k.wantDue(10, time.Minute, "c")
	k.fires(core.Tick{Key: "c", Expect: now, Slots: []time.Time{now}, Passed: now, Next: now.Add(30 * time.Second)})
	k.wantDue(10, 30*time.Second)
	k.put(scheduled("c", func(s *core.ScheduleSpec) { s.Every = time.Hour }), now.Add(2*time.Hour))
	k.wantDue(10, time.Minute)
	k.advance(time.Minute)
	k.fires(core.Tick{Key: "b", Expect: now.Add(time.Minute), Err: "why", RetryIn: 90 * time.Second})
	k.wantDue(10, 90*time.Second) // not at once, and no later
	k.wantDue(0, 90*time.Second)
	_, err := k.sched.RemoveSchedule(k.ctx, "b")
	k.ok("RemoveSchedule", err)
	k.wantDue(10, 59*time.Minute)
	k.fires(core.Tick{Key: "a", Expect: now.Add(time.Hour), Err: "early", RetryIn: time.Second})
	k.wantDue(10, 59*time.Minute) // RetryAt alone makes nothing due
	k.advance(59 * time.Minute)
	k.wantDue(10, time.Hour, "a")
}

func dueRecord(k *kit) {
	first := k.now()
	s := fullSchedule("k")
	k.put(s, first.Add(-24*time.Hour))
	was := first.Add(-24 * time.Hour)
	k.fires(core.Tick{Key: "k", Expect: was, Slots: []time.Time{was}, Passed: was, Next: first})
	k.fires(core.Tick{Key: "k", Expect: first, Err: "why", RetryIn: time.Second})
	k.advance(time.Second)
	due := k.due(5).Due
	eq(k, "due", len(due), 1)
	k.sameSchedule("DueSchedules", due[0], core.ScheduleRecord{ScheduleSpec: s, NextAt: first, LastSlot: was,
		LastID: core.SlotID("k", was), LastError: "why", RetryAt: k.now(), Failures: 1})
	k.sameSchedule("Schedules", k.schedule("k"), due[0])
}

func dueError(k *kit) {
	at := k.now()
	want := core.ScheduleRecord{ScheduleSpec: scheduled("k"), NextAt: at}
	k.put(want.ScheduleSpec, at)
	for n := 1; n <= 3; n++ {
		in := time.Duration(n) * time.Minute
		want.LastError, want.RetryAt, want.Failures = fmt.Sprintf("é\n%d", n), k.now().Add(in), n
		// What else a tick says counts for nothing beside an error.
		k.fires(core.Tick{Key: "k", Expect: at, Err: want.LastError, RetryIn: in + 999,
			Slots: []time.Time{at}, Passed: at, Next: at.Add(time.Hour)})
		k.wantSchedule(want)
		k.none("a tick with an error makes no job")
		k.wantDue(10, in)
		k.advance(in - time.Microsecond)
		k.wantDue(10, time.Microsecond)
		k.advance(time.Microsecond)
		k.wantDue(10, 0, "k")
	}
}

func dueErrorOnce(k *kit) {
	at := k.now()
	k.put(scheduled("k"), at)
	k.fires(core.Tick{Key: "k", Expect: at, Err: "first", RetryIn: time.Minute})
	want := k.schedule("k")
	k.stale(core.Tick{Key: "k", Expect: at, Err: "second", RetryIn: time.Hour})
	k.wantSchedule(want)
	k.advance(time.Minute - time.Microsecond)
	k.stale(core.Tick{Key: "k", Expect: at, Err: "third", RetryIn: time.Hour})
	k.wantSchedule(want)
	k.advance(time.Microsecond)
	k.fires(core.Tick{Key: "k", Expect: at, Err: "fourth"})
	eq(k, "Failures", k.schedule("k").Failures, 2)
	k.fires(core.Tick{Key: "k", Expect: at, Err: "fifth", RetryIn: time.Hour}) // the fourth waited for nothing
	k.fires(core.Tick{Key: "k", Expect: at, Slots: []time.Time{at}, Passed: at, Next: at.Add(time.Hour)})
	k.takeID(core.SlotID("k", at))
}

func dueErrorAlone(k *kit) {
	at := k.now()
	k.put(scheduled("bad"), at.Add(-time.Hour))
	k.put(scheduled("good"), at)
	k.wantDue(1, 1, "bad")
	k.fires(core.Tick{Key: "bad", Expect: at.Add(-time.Hour), Err: "why", RetryIn: time.Hour})
	k.wantDue(1, time.Hour, "good")
	k.fires(core.Tick{Key: "good", Expect: at, Slots: []time.Time{at}, Passed: at, Next: at.Add(time.Minute)})
	k.takeID(core.SlotID("good", at))
	eq(k, "LastError of the bad one", k.schedule("bad").LastError, "why")
	eq(k, "LastError of the good one", k.schedule("good").LastError, "")
}

func dueErrorCleared(k *kit) {
	at := k.now()
	k.put(scheduled("k"), at)
	k.fires(core.Tick{Key: "k", Expect: at, Err: "why", RetryIn: time.Hour})
	k.wantDue(10, time.Hour)
	changed := scheduled("k", making(prio(3)))
	k.put(changed, at.Add(time.Minute))
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: changed, NextAt: at})
	k.wantDue(10, 0, "k")
	k.fires(core.Tick{Key: "k", Expect: at, Err: "again"})
	eq(k, "Failures", k.schedule("k").Failures, 1)
	k.fires(core.Tick{Key: "k", Expect: at, Passed: at, Next: at.Add(time.Minute)})
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: changed, NextAt: at.Add(time.Minute), LastSlot: at})
}

func dueErrorStale(k *kit) {
	at := k.now()
	k.put(scheduled("k"), at)
	k.fires(core.Tick{Key: "k", Expect: at, Passed: at, Next: at.Add(time.Minute)})
	k.stale(core.Tick{Key: "k", Expect: at, Err: "why", RetryIn: time.Hour})
	k.stale(core.Tick{Key: "nobody", Expect: at, Err: "why", RetryIn: time.Hour})
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("k"), NextAt: at.Add(time.Minute), LastSlot: at})
}
