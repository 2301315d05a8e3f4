package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// skipping is a schedule whose runs must not overlap.
func skipping(s *core.ScheduleSpec) { s.Overlap = core.OverlapSkip }

func overlapAllow(k *kit) {
	at := k.now()
	for _, o := range []core.Overlap{"", core.OverlapAllow} {
		key := "k" + string(o)
		k.put(scheduled(key, func(s *core.ScheduleSpec) { s.Overlap = o }), at)
		k.fires(step(key, at))
		k.takeID(core.SlotID(key, at))
		k.fires(step(key, at.Add(time.Minute)))
		k.takeID(core.SlotID(key, at.Add(time.Minute)))
	}
}

func overlapSkip(k *kit) {
	at := k.now()
	k.put(scheduled("k", skipping), at)
	id := core.SlotID("k", at)
	pass := func(last string) {
		k.Helper()
		k.fires(step("k", at))
		at = at.Add(time.Minute)
		k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("k", skipping), NextAt: at, LastSlot: at.Add(-time.Minute), LastID: last})
	}
	skipped := func(why string) {
		k.Helper()
		was := core.SlotID("k", at)
		pass(id)
		k.gone(was)
		k.total(1)
	}
	pass(id)
	skipped("it waits")
	h := k.takeID(id)
	skipped("it is active")
	k.endIn(h, core.OutcomeRetry, time.Hour, core.StateDelayed)
	skipped("it is delayed")
	k.advance(time.Hour)
	skipped("it is due")
	h = k.takeID(id)
	k.none("the others were skipped")
	k.end(h, core.OutcomeFail, core.StateFailed)
	second := core.SlotID("k", at)
	pass(second)
	k.end(k.takeID(second), core.OutcomeComplete, core.StateCompleted)
	third := core.SlotID("k", at)
	pass(third)
	k.takeID(third)
}

func overlapSkipRemoved(k *kit) {
	at := k.now()
	k.put(scheduled("k", skipping), at)
	k.fires(step("k", at))
	k.cancel(core.SlotID("k", at), core.StateCancelled)
	at = at.Add(time.Minute)
	k.fires(step("k", at))
	removed, err := k.admin.Remove(k.ctx, core.SlotID("k", at))
	k.ok("Remove", err)
	eq(k, "Remove of the slot's job", removed, true)
	at = at.Add(time.Minute)
	k.fires(step("k", at))
	k.takeID(core.SlotID("k", at))
	k.none("the others ended")
}

func overlapSkipSlots(k *kit) {
	at := k.now()
	slot := func(n int) time.Time { return at.Add(time.Duration(n) * time.Minute) }
	k.put(scheduled("k", skipping), at)
	k.fires(core.Tick{Key: "k", Expect: at, Slots: []time.Time{slot(1), slot(2), slot(3)}, Passed: slot(3), Next: slot(4)})
	first := core.SlotID("k", slot(1))
	k.wantSchedule(core.ScheduleRecord{ScheduleSpec: scheduled("k", skipping), NextAt: slot(4), LastSlot: slot(3), LastID: first})
	h := k.drain("jobs", first).leases()[0]
	k.fires(core.Tick{Key: "k", Expect: slot(4), Slots: []time.Time{slot(4), slot(5)}, Passed: slot(5), Next: slot(6)})
	k.none("the first one runs")
	k.ack(core.Ack{Lease: h, Outcome: core.OutcomeComplete})

	// Slots whose jobs are there make none, and hold up those behind them while they are pending.
	k.put(scheduled("k", skipping, func(s *core.ScheduleSpec) { s.Every = time.Hour }), at)
	k.fires(core.Tick{Key: "k", Expect: at, Slots: []time.Time{slot(1), slot(2), slot(3)}, Passed: slot(3), Next: slot(4)})
	k.drain("jobs", core.SlotID("k", slot(2)))
	eq(k, "LastID", k.schedule("k").LastID, core.SlotID("k", slot(2)))
}

func tickWakes(k *kit) {
	at := oddTime()
	k.put(scheduled("k"), at)
	k.wakes("a tick", theQueue, func() func() {
		return func() {
			k.fires(step("k", at))
			at = at.Add(time.Minute)
		}
	})
}

func schedOtherHandle(k *kit) {
	o := k.other()
	at := k.now()
	want := core.ScheduleRecord{ScheduleSpec: fullSchedule("k"), NextAt: at}
	k.put(want.ScheduleSpec, at)
	o.wantSchedule(want)
	o.wantDue(10, 0, "k")
	o.fires(core.Tick{Key: "k", Expect: at, Err: "why", RetryIn: time.Minute})
	k.wantDue(10, time.Minute)
	eq(k, "LastError", k.schedule("k").LastError, "why")
	o.fires(step("k", at))
	k.stale(step("k", at))
	want.NextAt, want.LastSlot, want.LastID = at.Add(time.Minute), at, core.SlotID("k", at)
	k.wantSchedule(want)
	removed, err := o.sched.RemoveSchedule(k.ctx, "k")
	k.ok("RemoveSchedule", err)
	eq(k, "RemoveSchedule", removed, true)
	k.stale(step("k", at.Add(time.Minute)))
	k.wantKeys(core.ScheduleQuery{})
}

func concurrentTicks(k *kit) { tickAll(k, k.sched) }

func concurrentTickHandles(k *kit) { tickAll(k, k.sched, k.other().sched) }

// tickAll has 8 sweeps tick each of some slots, and then all slots late.
func tickAll(k *kit, scheds ...core.Scheduler) {
	const racers, slots = 8, 15
	at := core.Micros(oddTime())
	k.put(scheduled("k"), at)
	done := newTally()
	ids := make([]string, slots)
	for i := range slots {
		slot := at.Add(time.Duration(i) * time.Minute)
		ids[i] = core.SlotID("k", slot)
		k.race(racers, func(ctx context.Context, worker int) error {
			fired, err := scheds[worker%len(scheds)].TickSchedule(ctx, step("k", slot))
			if err == nil && fired && done.add(ids[i]) > 1 {
				return fmt.Errorf("two ticks of %v were done", slot)
			}
			return err
		})
		eq(k, "ticks that were done of "+ids[i], done.n[ids[i]], 1)
	}
	k.drain("jobs", ids...)
	eq(k, "NextAt", k.schedule("k").NextAt, at.Add(slots*time.Minute))
}

// concurrentPuts has a schedule put while sweeps tick it, slot by slot. The cadence is the same, so that its first slot,
// which is an old one, must not matter.
func concurrentPuts(k *kit) {
	const tickers, slots = 4, 20
	at := core.Micros(oddTime())
	k.put(scheduled("k"), at)
	done := newTally()
	ids := make([]string, slots)
	for i := range slots {
		slot := at.Add(time.Duration(i) * time.Minute)
		ids[i] = core.SlotID("k", slot)
		s := scheduled("k", making(payload([]byte{byte(i)})))
		k.race(tickers+1, func(ctx context.Context, worker int) error {
			if worker == tickers {
				return k.sched.PutSchedule(ctx, s, at)
			}
			fired, err := k.sched.TickSchedule(ctx, step("k", slot))
			if err == nil && fired && done.add(ids[i]) > 1 {
				return fmt.Errorf("two ticks of %v were done", slot)
			}
			return err
		})
		if done.n[ids[i]] == 0 { // each came upon the Put at work
			k.fires(step("k", slot))
		}
		k.wantSchedule(core.ScheduleRecord{ScheduleSpec: s, NextAt: slot.Add(time.Minute), LastSlot: slot, LastID: ids[i]})
	}
	k.drain("jobs", ids...)
}
