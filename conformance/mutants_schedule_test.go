package conformance

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

func scheduleMutants() []mutant {
	ms := []mutant{
		replanned("ticks are two steps", func(s *memstore.Store) core.Scheduler { return &twoSteps{Scheduler: s} }),
		replanned("a Put takes back a tick", func(s *memstore.Store) core.Scheduler { return takesBack{s} }),
		replanned("a closed store has no schedules", func(s *memstore.Store) core.Scheduler { return neverCloses{s} }),
		replanned("a tick whose context had ended is done", func(s *memstore.Store) core.Scheduler { return deafTicks{s} }),
	}
	for _, fault := range []string{
		"a Put of anything", "a first slot of any time", "a Put does not look at its context", "Put keeps the caller's slices",
		"first slots keep their nanoseconds", "a Put wakes nobody", "UTC is another zone than none", "zones make no difference",
		"expressions make no difference", "intervals make no difference", "an unchanged cadence takes the new first slot",
		"a changed cadence keeps its next slot", "an unchanged cadence keeps all the rest, too", "a Put forgets the last slot",
		"a Put forgets the last job", "a Put keeps the error", "a Put keeps putting off", "Remove removes nothing",
		"Remove takes the jobs with it", "Remove of nothing is true", "schedules are listed by length of key",
		"the key is no filter", "the name is no filter", "the group is no filter", "no group is any group",
		"a limit below zero is none", "Now is in a zone", "what was put off is due", "RetryAt counts alone", "due only after NextAt",
		"NextIn leaves out what was put off", "due by key only", "equals in reverse", "NextIn knows nothing of what is left over",
		"limit 0 is no limit", "one over the limit", "a tick of anything", "a tick wakes nobody", "a tick of nothing is true",
		"ticks are compared by the nanosecond", "NextAt is not compared", "NextAt is compared by the second",
		"an earlier tick is as good", "a stale error is stored", "a stale tick is true", "errors are no errors",
		"one slot per tick", "only the newest slot of a tick", "a tick does not say what passed",
		"the last slot is the last that was made", "a tick stays where it is", "a tick without slots stays where it is",
		"a good tick keeps the error", "a good tick keeps RetryAt", "every sweep counts an error", "errors put nothing off",
		"put off from the slot, not from now", "an error moves on", "failures are not counted",
		"an error that is stored answers false", "runs that must not overlap do", "only active runs overlap",
		"delayed runs don't overlap", "finished runs overlap, too", "slots of one tick don't overlap",
		"a slot that was skipped is the last job", "no runs overlap", "a slot's job is made again",
		"a job that was there is not the last one", "a slot's job is enqueued at its slot", "the last job is not noted",
		"the slot is not in the metadata", "the caller's metadata says which slot it is", "ids by the second",
		"jobs lose their priority", "jobs lose their timeout", "jobs lose their keep", "jobs lose their backoff",
		"jobs lose their attempts", "payloads are text", "records are shared", "groups are not kept", "policies are not kept",
		"zones are spelt out",
	} {
		ms = append(ms, misplanned(fault))
	}
	return ms
}

// replanned makes a mutant of the memory store that has another Scheduler.
func replanned(fault string, breaks func(*memstore.Store) core.Scheduler) mutant {
	h := hookedHarness(func(*hooked) {})
	inner, begin := h.New, h.Begin
	h.New = func(t testing.TB, clock core.Clock) core.Store {
		real := inner(t, clock).(*hooked)
		return withScheduler{real, breaks(real.Store)}
	}
	h.Begin = func(t testing.TB, s core.Store) (core.TxView, func() error, func() error) {
		return begin(t, s.(withScheduler).jobs)
	}
	return mutant{fault, h}
}

// jobs is a memory store, of which withScheduler hides the Scheduler.
type jobs = *hooked

type withScheduler struct {
	jobs
	sched core.Scheduler
}

func (w withScheduler) PutSchedule(ctx context.Context, s core.ScheduleSpec, first time.Time) error {
	return w.sched.PutSchedule(ctx, s, first)
}

func (w withScheduler) RemoveSchedule(ctx context.Context, key string) (bool, error) {
	return w.sched.RemoveSchedule(ctx, key)
}

func (w withScheduler) Schedules(ctx context.Context, q core.ScheduleQuery) ([]core.ScheduleRecord, error) {
	return w.sched.Schedules(ctx, q)
}

func (w withScheduler) DueSchedules(ctx context.Context, limit int) (core.DueSchedules, error) {
	return w.sched.DueSchedules(ctx, limit)
}

func (w withScheduler) TickSchedule(ctx context.Context, t core.Tick) (bool, error) {
	return w.sched.TickSchedule(ctx, t)
}

// twoSteps looks first and ticks then, and takes it that nobody came between.
type twoSteps struct {
	core.Scheduler
	ticking atomic.Int64
}

func (s *twoSteps) TickSchedule(ctx context.Context, t core.Tick) (bool, error) {
	if t.Err != "" {
		return s.Scheduler.TickSchedule(ctx, t)
	}
	s.ticking.Add(1)
	defer s.ticking.Add(-1)
	rs, err := s.Schedules(ctx, core.ScheduleQuery{})
	stands := err == nil && slices.ContainsFunc(rs, func(r core.ScheduleRecord) bool {
		return r.Key == t.Key && r.NextAt.Equal(core.Micros(t.Expect))
	})
	if stands { // while it works, others come
		for until := time.Now().Add(2 * time.Millisecond); s.ticking.Load() < 2 && time.Now().Before(until); {
			runtime.Gosched()
		}
	}
	done, err := s.Scheduler.TickSchedule(ctx, t)
	return done || stands && err == nil, err
}

// takesBack reads a schedule and writes it back with the NextAt that it read.
type takesBack struct{ core.Scheduler }

func (s takesBack) PutSchedule(ctx context.Context, c core.ScheduleSpec, first time.Time) error {
	rs, err := s.Schedules(ctx, core.ScheduleQuery{})
	at := slices.IndexFunc(rs, func(r core.ScheduleRecord) bool { return r.Key == c.Key && r.LastError == "" })
	if err != nil || at < 0 || c.Validate(core.Limits{}) != nil || !rs[at].SameCadence(&c) {
		return s.Scheduler.PutSchedule(ctx, c, first)
	}
	for until := time.Now().Add(200 * time.Microsecond); time.Now().Before(until); {
		runtime.Gosched() // while it works, others tick
	}
	other := c
	other.Cron, other.Zone, other.Every = "", "", 12345*time.Hour
	if err := s.Scheduler.PutSchedule(ctx, other, first); err != nil {
		return err
	}
	return s.Scheduler.PutSchedule(ctx, c, rs[at].NextAt)
}

// neverCloses has its schedules in a store that nobody closes.
type neverCloses struct{ *memstore.Store }

func (n neverCloses) Schedules(ctx context.Context, q core.ScheduleQuery) ([]core.ScheduleRecord, error) {
	rs, err := n.Store.Schedules(ctx, q)
	if err != nil && ctx.Err() == nil {
		return nil, nil
	}
	return rs, err
}

// deafTicks refuses ticks whose context had ended, and does them.
type deafTicks struct{ *memstore.Store }

func (d deafTicks) TickSchedule(ctx context.Context, t core.Tick) (bool, error) {
	done, err := d.Store.TickSchedule(deaf(ctx), t)
	if late := late(ctx); late != nil {
		return false, late
	}
	return done, err
}
