package conformance

import (
	"strings"
	"time"

	"github.com/stintmq/stint/core"
)

func tickCases() []testCase {
	needs := []Capability{CapSchedule}
	admin := append(needs, CapAdmin)
	const limit = 60 * time.Second
	return []testCase{
		{rule: "Q26", name: "tick", run: tickTick, needs: needs,
			demands: "a tick makes the job of its slot and moves the schedule on"},
		{rule: "Q26", name: "tick-stale", run: tickStale, needs: needs,
			demands: "a tick that expects another NextAt, or knows no such schedule, does nothing and answers false"},
		{rule: "Q26", name: "tick-removed-schedule", run: tickRemovedSchedule, needs: needs,
			demands: "after Remove a tick makes no job and brings no schedule back"},
		{rule: "Q26", name: "tick-micros", run: tickMicros, needs: needs,
			demands: "the times of a tick are cut to the microsecond and compared to it, in whatever zone"},
		{rule: "Q26", name: "tick-fields", run: tickFields, needs: needs,
			demands: "a slot's job is what the stored request says, with the slot in its id and metadata, enqueued now"},
		{rule: "Q13", name: "tick-bytes", run: tickBytes, needs: needs,
			demands: "payload bytes of a slot's job are those of the schedule"},
		{rule: "Q26", name: "tick-stored", run: tickStored, needs: needs,
			demands: "a tick enqueues what the schedule says now, not what it said when the sweep read it"},
		{rule: "Q26", name: "tick-slots", run: tickSlots, needs: needs,
			demands: "one tick makes the jobs of several slots, in their order, and none of a slot that it leaves out"},
		{rule: "Q26", name: "tick-catch-up", run: tickCatchUp, needs: needs, limit: limit,
			demands: "one tick makes as many jobs as there may be slots to catch up with"},
		{rule: "Q26", name: "tick-there-already", run: tickThere, needs: needs,
			demands: "a slot whose job is there already, of whatever name, makes none; the schedule moves on"},
		{rule: "Q26", name: "tick-removed-job", run: tickRemovedJob, needs: admin,
			demands: "once a slot was ticked it makes no job again, also when its job was removed"},
		{rule: "Q26", name: "tick-pruned-job", run: tickPrunedJob, needs: append(needs, CapRetain),
			demands: "once a slot was ticked it makes no job again, also when its job was pruned"},
		{rule: "Q13", name: "tick-invalid", run: tickInvalid, needs: needs,
			demands: "a tick that could make a slot twice, or is out of range, is an InvalidError, and nothing happens"},
		{rule: "Q26", name: "tick-ordinary-jobs", run: tickOrdinary, needs: needs,
			demands: "slot jobs wait in line with others, by priority and place, and end like others"},
		{rule: "Q8", name: "tick-paused", run: tickPaused, needs: admin,
			demands: "a slot's job on a paused queue is made and waits"},
		{rule: "Q26", name: "overlap-allow", run: overlapAllow, needs: needs,
			demands: "slots run beside one another unless the schedule says otherwise"},
		{rule: "Q26", name: "overlap-skip", run: overlapSkip, needs: needs,
			demands: "with OverlapSkip a slot makes no job while the last one's is pending: waiting, delayed or active"},
		{rule: "Q26", name: "overlap-skip-removed", run: overlapSkipRemoved, needs: admin,
			demands: "with OverlapSkip a job that was cancelled or removed holds up no slot"},
		{rule: "Q26", name: "overlap-skip-slots", run: overlapSkipSlots, needs: needs,
			demands: "with OverlapSkip the slots of one tick are as if each had a tick of its own: the first makes a job"},
		{rule: "Q15", name: "tick-wakes", run: tickWakes, needs: append(needs, CapWake), timeless: true,
			demands: "a slot's job wakes its queue"},
		{rule: "Q26", name: "other-handle", run: schedOtherHandle, needs: append(needs, CapOpen),
			demands: "all processes see the same schedules, and a slot that one ticked no other does"},
		{rule: "Q26", name: "concurrent-ticks", run: concurrentTicks, needs: needs, limit: limit, timeless: true,
			demands: "of concurrent ticks of one slot exactly one is done; none fails"},
		{rule: "Q26", name: "concurrent-handles", run: concurrentTickHandles, needs: append(needs, CapOpen), limit: limit, timeless: true,
			demands: "of concurrent ticks of one slot through two handles exactly one is done; none fails"},
		{rule: "Q26", name: "concurrent-puts", run: concurrentPuts, needs: needs, limit: limit, timeless: true,
			demands: "a Put that races ticks takes none of them back, and nothing of it is lost"},
	}
}

// tick ticks and answers whether it was done.
func (k *kit) tick(t core.Tick) bool {
	k.Helper()
	done, err := k.sched.TickSchedule(k.ctx, t)
	k.ok("TickSchedule of "+t.Key, err)
	return done
}

// fires ticks what must be there.
func (k *kit) fires(t core.Tick) {
	k.Helper()
	if !k.tick(t) {
		k.failf("TickSchedule of %q, whose NextAt is %v, answered false", t.Key, t.Expect)
	}
}

// stale ticks what must not be there.
func (k *kit) stale(t core.Tick) {
	k.Helper()
	if k.tick(t) {
		k.failf("TickSchedule of %q, whose NextAt is not %v, answered true", t.Key, t.Expect)
	}
}

// step is a tick of one slot a minute before the next.
func step(key string, slot time.Time) core.Tick {
	return core.Tick{Key: key, Expect: slot, Slots: []time.Time{slot}, Passed: slot, Next: slot.Add(time.Minute)}
}

func tickTick(k *kit) {
	at := k.now()
	k.put(scheduled("k"), at)
	k.put(scheduled("other"), at)
	for range 3 {
		k.fires(step("k", at))
		k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("k"), NextAt: at.Add(time.Minute), LastSlot: at, LastID: core.SlotID("k", at)})
		k.drain("the slot's job", core.SlotID("k", at))
		k.stale(step("k", at))
		k.none("the slot was ticked already")
		at = at.Add(time.Minute)
	}
	k.fires(core.Tick{Key: "k", Expect: at, Passed: at, Next: at.Add(time.Hour)}) // without a job
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("k"), NextAt: at.Add(time.Hour), LastSlot: at,
		LastID: core.SlotID("k", at.Add(-time.Minute))})
	k.none("a tick without slots makes no job")
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("other"), NextAt: k.now()})
}

func tickStale(k *kit) {
	at := k.now()
	k.put(scheduled("k"), at)
	for _, off := range []time.Duration{-time.Microsecond, time.Microsecond, -time.Minute, time.Minute} {
		k.stale(step("k", at.Add(off)))
	}
	for _, key := range []string{"", "nobody", "K", "k\x00", "\xff", strings.Repeat("k", core.MaxIDBytes)} {
		k.stale(step(key, at))
	}
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("k"), NextAt: at})
	k.none("no tick was of what is there")
	k.wantKeys(core.ScheduleQuery{}, "k")
	k.total(0)
}

func tickRemovedSchedule(k *kit) {
	at := k.now()
	k.put(scheduled("k"), at)
	_, err := k.sched.RemoveSchedule(k.ctx, "k")
	k.ok("RemoveSchedule", err)
	k.stale(step("k", at))
	k.none("the schedule was removed")
	k.wantKeys(core.ScheduleQuery{})
}

func tickMicros(k *kit) {
	at, cut := oddTime(), core.Micros(oddTime())
	k.put(scheduled("k"), at)
	k.stale(step("k", cut.Add(-time.Microsecond)))
	next := at.Add(time.Minute)
	k.fires(core.Tick{Key: "k", Expect: cut.Add(999), Slots: []time.Time{at, at.Add(time.Microsecond)}, Passed: at.Add(time.Microsecond), Next: next})
	second := core.SlotID("k", cut.Add(time.Microsecond))
	c := k.drain("jobs of two slots a microsecond apart", core.SlotID("k", cut), second)
	eq(k, "slot of the second", c.Jobs[1].Metadata[core.SlotMetadata], "2031-07-09T18:22:33.987655Z")
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("k"), NextAt: core.Micros(next),
		LastSlot: cut.Add(time.Microsecond), LastID: second})
}

func tickFields(k *kit) {
	s := fullSchedule("daily report")
	s.Request.Metadata = map[string]string{"tenant": "a:b/c", "é": "ü", core.SlotMetadata: "the caller's"}
	slot := k.now().Add(-3 * time.Hour)
	k.put(s, slot)
	k.advance(time.Second)
	k.fires(step(s.Key, slot))
	r := s.Request
	want := core.Record{
		ID: core.SlotID(s.Key, slot), Name: r.Name, Queue: r.Queue, State: core.StateWaiting, Payload: r.Payload,
		Metadata: map[string]string{"tenant": "a:b/c", "é": "ü", core.SlotMetadata: slot.Format(time.RFC3339Nano)},
		Priority: r.Priority, MaxAttempts: r.MaxAttempts, MaxStalls: r.MaxStalls, Backoff: r.Backoff, Keep: r.Keep,
		Timeout: r.Timeout, EnqueuedAt: k.now(), RunAt: k.now(),
	}
	k.look(want.ID, func(got core.Record) {
		want.Ref = got.Ref
		k.sameRecord("Get", got, want)
	})
	c := k.claim(core.Want{Queue: r.Queue, Names: []string{r.Name}, Limit: 10})
	eqs(k, "jobs", c.ids(), []string{want.ID})
	want.State, want.Fence, want.ClaimedAt, want.Ref = core.StateActive, 1, k.now(), c.Jobs[0].Ref
	k.sameRecord("Claim", c.Jobs[0], want)
}

func tickBytes(k *kit) {
	all := make([]byte, 1024)
	for i := range all {
		all[i] = byte(i)
	}
	at := k.now()
	for _, p := range [][]byte{nil, {}, {0}, []byte("null"), []byte(`{"n":1234567890123456,"x":0.3333333333333333,"a":[]}`), all} {
		k.put(scheduled("k", making(payload(p))), at)
		k.sameBytes("payload of the schedule", k.schedule("k").Request.Payload, p)
		k.fires(step("k", at))
		k.sameBytes("payload of the job", k.takeID(core.SlotID("k", at)).Payload, p)
		at = at.Add(time.Minute)
	}
}

func tickStored(k *kit) {
	at := k.now()
	k.put(scheduled("k", making(payload([]byte("old")))), at)
	due := k.due(1)
	eq(k, "due", len(due.Due), 1)
	k.put(scheduled("k", making(payload([]byte("new")), prio(2))), at)
	k.fires(step("k", due.Due[0].NextAt))
	h := k.takeID(core.SlotID("k", at))
	eq(k, "payload", string(h.Payload), "new")
	eq(k, "priority", h.Priority, 2)
}

func tickSlots(k *kit) {
	at := k.now()
	slot := func(n int) time.Time { return at.Add(time.Duration(n) * time.Minute) }
	k.put(scheduled("k"), at)
	k.add("before")
	k.fires(core.Tick{Key: "k", Expect: at, Slots: []time.Time{slot(1), slot(2), slot(4)}, Passed: slot(5), Next: slot(6)})
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("k"), NextAt: slot(6), LastSlot: slot(5), LastID: core.SlotID("k", slot(4))})
	k.drain("jobs", "before", core.SlotID("k", slot(1)), core.SlotID("k", slot(2)), core.SlotID("k", slot(4)))
}

func tickCatchUp(k *kit) {
	at := k.now()
	slots, ids := make([]time.Time, core.MaxCatchUp), make([]string, core.MaxCatchUp)
	for i := range slots {
		slots[i] = at.Add(time.Duration(i) * time.Second)
		ids[i] = core.SlotID("k", slots[i])
	}
	k.put(scheduled("k", func(s *core.ScheduleSpec) { s.Every = time.Second }), at)
	last := slots[len(slots)-1]
	k.fires(core.Tick{Key: "k", Expect: at, Slots: slots, Passed: last, Next: last.Add(time.Second)})
	eqs(k, "jobs", k.claim(want(2*core.MaxCatchUp)).ids(), ids)
	eq(k, "LastID", k.schedule("k").LastID, ids[len(ids)-1])
}

// tickThere goes back to a slot that was ticked, which only a Put with another cadence can.
func tickThere(k *kit) {
	at := k.now()
	id := core.SlotID("k", at)
	k.put(scheduled("k"), at)
	k.fires(step("k", at))
	hourly := scheduled("k", func(s *core.ScheduleSpec) { s.Every = time.Hour })
	k.put(hourly, at)
	k.fires(step("k", at))
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: hourly, NextAt: at.Add(time.Minute), LastSlot: at, LastID: id})
	h := k.takeID(id)
	k.none("the slot has its job")
	k.end(h, core.OutcomeComplete, core.StateCompleted)
	other := scheduled("k", making(named("other")))
	k.put(other, at)
	k.fires(core.Tick{Key: "k", Expect: at, Slots: []time.Time{at, at.Add(time.Minute)}, Passed: at.Add(time.Minute), Next: at.Add(time.Hour)})
	k.wantState(id, core.StateCompleted)
	c := k.claim(core.Want{Queue: theQueue, Names: []string{theName, "other"}, Limit: 10})
	eqs(k, "jobs", c.ids(), []string{core.SlotID("k", at.Add(time.Minute))})
	_, err := k.sched.RemoveSchedule(k.ctx, "k")
	k.ok("RemoveSchedule", err)
	k.put(scheduled("k"), at)
	k.fires(step("k", at))
	eq(k, "LastID of a job that was there already", k.schedule("k").LastID, id)
	k.none("the slot has its job")
	k.total(2)
}

func tickRemovedJob(k *kit) {
	at := k.now()
	k.put(scheduled("k"), at)
	k.fires(step("k", at))
	removed, err := k.admin.Remove(k.ctx, core.SlotID("k", at))
	k.ok("Remove", err)
	eq(k, "Remove of the slot's job", removed, true)
	want := k.schedule("k")
	k.stale(step("k", at))
	k.wantSchedule(want)
	k.none("the slot was ticked")
	k.gone(core.SlotID("k", at))
}

func tickPrunedJob(k *kit) {
	at := k.now()
	id := core.SlotID("k", at)
	k.put(scheduled("k"), at)
	k.fires(step("k", at))
	k.end(k.takeID(id), core.OutcomeComplete, core.StateCompleted)
	r, _ := core.As[core.Retainer](k.store)
	n, err := r.Prune(k.ctx, core.PruneRequest{Default: core.Keep{Completed: core.KeepRule{None: true}}})
	k.ok("Prune", err)
	eq(k, "jobs pruned", n, 1)
	want := k.schedule("k")
	k.stale(step("k", at))
	k.wantSchedule(want)
	k.none("the slot was ticked")
	k.gone(id)
}

func tickInvalid(k *kit) {
	at := k.now()
	in := func(d time.Duration) time.Time { return at.Add(d) }
	far := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	k.put(scheduled("k"), at)
	for _, c := range []struct {
		field string
		spoil func(*core.Tick)
	}{
		{"Expect", func(t *core.Tick) { t.Expect = time.Time{} }},
		{"Expect", func(t *core.Tick) { t.Expect = far }},
		{"Next", func(t *core.Tick) { t.Next = time.Time{} }},
		{"Next", func(t *core.Tick) { t.Next = far }},
		{"Passed", func(t *core.Tick) { t.Passed = time.Time{} }},
		{"Passed", func(t *core.Tick) { t.Passed = in(-time.Microsecond) }},
		{"Passed", func(t *core.Tick) { t.Passed = t.Next }},
		{"Passed", func(t *core.Tick) { t.Next = t.Expect }}, // it would be ticked again
		{"Slots", func(t *core.Tick) { t.Slots = []time.Time{in(-time.Microsecond)} }},
		{"Slots", func(t *core.Tick) { t.Slots = []time.Time{t.Next} }},
		{"Slots", func(t *core.Tick) { t.Slots = []time.Time{in(time.Second), in(0)} }},
		{"Slots", func(t *core.Tick) { t.Slots = []time.Time{at, at.Add(999)} }},
		{"Slots", func(t *core.Tick) { t.Slots = make([]time.Time, core.MaxCatchUp+1) }},
		{"Err", func(t *core.Tick) { t.Err = "a\x00" }},
		{"Err", func(t *core.Tick) { t.Err = "\xff" }},
		{"Err", func(t *core.Tick) { t.Err = strings.Repeat("x", core.MaxFailureBytes+1) }},
		{"RetryIn", func(t *core.Tick) { t.Err, t.RetryIn = "why", -1 }},
	} {
		t := step("k", at)
		c.spoil(&t)
		done, err := k.sched.TickSchedule(k.ctx, t)
		e := wantError[*core.InvalidError](k, "TickSchedule with a bad "+c.field, err)
		eq(k, "InvalidError.Field", e.Field, c.field)
		eq(k, "answer beside an error", done, false)
	}
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("k"), NextAt: at})
	k.none("no tick was done")
	long := strings.Repeat("x", core.MaxFailureBytes)
	k.fires(core.Tick{Key: "k", Expect: at, Err: long})
	eq(k, "LastError", k.schedule("k").LastError, long)
}

func tickOrdinary(k *kit) {
	at := k.now()
	k.put(scheduled("a"), at)
	k.put(scheduled("b", making(prio(1), func(r *core.EnqueueRequest) { r.MaxAttempts = 1 })), at)
	k.add("first")
	k.fires(step("a", at))
	k.add("second")
	k.fires(step("b", at))
	a, b := core.SlotID("a", at), core.SlotID("b", at)
	c := k.drain("jobs by priority and place", b, "first", a, "second")
	for i, outcome := range []core.Outcome{core.OutcomeFail, core.OutcomeComplete, core.OutcomeRetry, core.OutcomeCancel} {
		k.ack(core.Ack{Lease: c.leases()[i], Outcome: outcome})
	}
	k.wantLedger(b, core.OutcomeFail)
	k.wantLedger(a, core.OutcomeRetry)
	k.drain("the job that is tried again", a)
	e := wantError[*core.InvalidError](k, "Enqueue with a slot's id", k.enqueue(request(core.SlotID("a", at.Add(time.Minute))))[0].Err)
	eq(k, "InvalidError.Field", e.Field, "ID")
}

func tickPaused(k *kit) {
	at := k.now()
	k.pause(theQueue)
	k.put(scheduled("k"), at)
	k.fires(step("k", at))
	k.none("the queue is paused")
	k.wantState(core.SlotID("k", at), core.StateWaiting)
	k.resume(theQueue)
	k.takeID(core.SlotID("k", at))
}
