package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// schedSpy is a store whose planning can be watched, failed or changed. A nil function passes the call on.
type schedSpy struct {
	*memstore.Store
	due  func(limit int) (core.DueSchedules, error)
	tick func(t core.Tick) (bool, error)

	mu    sync.Mutex
	asked []time.Time
	ticks []core.Tick
}

func (s *schedSpy) Unwrap() core.Store { return s.Store }

func (s *schedSpy) DueSchedules(ctx context.Context, limit int) (core.DueSchedules, error) {
	s.mu.Lock()
	s.asked = append(s.asked, time.Now())
	s.mu.Unlock()
	if s.due != nil {
		return s.due(limit)
	}
	return s.Store.DueSchedules(ctx, limit)
}

func (s *schedSpy) TickSchedule(ctx context.Context, t core.Tick) (bool, error) {
	s.mu.Lock()
	s.ticks = append(s.ticks, t)
	s.mu.Unlock()
	if s.tick != nil {
		return s.tick(t)
	}
	return s.Store.TickSchedule(ctx, t)
}

// asks is how often the store was asked what is due, and forgets it.
func (s *schedSpy) asks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.asked = nil }()
	return len(s.asked)
}

var tickJob = core.NewTask[string]("tick")

// ran collects the slots that handlers saw, and when.
type ran struct {
	mu    sync.Mutex
	slots []time.Time
	late  []time.Duration
}

func (r *ran) handle(ctx context.Context, _ string) error {
	slot, ok := core.Slot(ctx)
	if !ok {
		return errBoom
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots, r.late = append(r.slots, slot), append(r.late, time.Since(slot))
	return nil
}

func (r *ran) all() ([]time.Time, []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]time.Time(nil), r.slots...), append([]time.Duration(nil), r.late...)
}

func schedBubble(t *testing.T, test func(t *testing.T, s *schedSpy)) {
	t.Helper()
	bubble(t, func(t *testing.T, s *memstore.Store) { test(t, &schedSpy{Store: s}) })
}

func schedule(t *testing.T, s core.Store, key string, sch core.Schedule[string]) {
	t.Helper()
	require.NoError(t, tickJob.Schedule(context.Background(), s, key, sch))
}

func record(t *testing.T, s *schedSpy, key string) core.ScheduleRecord {
	t.Helper()
	recs, err := s.Schedules(context.Background(), core.ScheduleQuery{Key: key})
	require.NoError(t, err)
	require.Len(t, recs, 1)
	return recs[0]
}

// TestEverySlotOnce: a fleet makes each slot's job once, within a second of its time, and asks the store little more
// than once per slot (Q26).
func TestEverySlotOnce(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		schedule(t, s, "minutes", core.Schedule[string]{Cron: "* * * * *"})
		schedule(t, s, "grid", core.Schedule[string]{Every: 90 * time.Second})
		began := time.Now()
		var seen ran
		const workers = 5
		for range workers {
			w := newWorker(t, s, core.WorkerOptions{})
			tickJob.Handle(w, seen.handle)
			start(t, w)
		}
		time.Sleep(time.Hour + 30*time.Second)
		synctest.Wait()
		slots, late := seen.all()
		require.Len(t, slots, 60+40)
		distinct := make(map[time.Time]int)
		for i, slot := range slots {
			distinct[slot]++
			require.Less(t, late[i], time.Second)
			require.GreaterOrEqual(t, late[i], time.Duration(0))
		}
		for slot, n := range distinct {
			grid := slot.Sub(began)%(90*time.Second) == 0
			require.True(t, grid || slot.Second() == 0, slot)
			require.LessOrEqual(t, n, 2, slot)
		}
		require.Less(t, s.asks(), workers*(100*4+120+10))
	})
}

// TestMidnight: where many slots come at once, a fleet shares them, and does not try each one everywhere.
func TestMidnight(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		s.tick = func(tick core.Tick) (bool, error) {
			time.Sleep(2 * time.Millisecond)
			return s.Store.TickSchedule(context.Background(), tick)
		}
		const schedules, workers = 300, 20
		for i := range schedules {
			schedule(t, s, fmt.Sprint("k", i), core.Schedule[string]{Cron: "@hourly"})
		}
		for range workers {
			start(t, newWorker(t, s, core.WorkerOptions{}))
		}
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		require.EqualValues(t, schedules, counts(t, s)[core.StateWaiting])
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Less(t, len(s.ticks), 3*schedules)
	})
}

// TestLooksAtOnceAndRarely: what is due at the start runs at once; without schedules the store is asked twice a minute.
func TestLooksAtOnceAndRarely(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		schedule(t, s, "k", core.Schedule[string]{Every: time.Hour})
		time.Sleep(90 * time.Minute)
		start(t, newWorker(t, s, core.WorkerOptions{}))
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, counts(t, s)[core.StateWaiting])
		_, err := s.RemoveSchedule(t.Context(), "k")
		require.NoError(t, err)
		s.asks()
		time.Sleep(time.Hour)
		require.InDelta(t, 120, s.asks(), 40)
	})
}

// TestNewsOfSchedules: a schedule that another process puts, or moves to an earlier time, is noticed at once.
func TestNewsOfSchedules(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		var seen ran
		w := newWorker(t, s, core.WorkerOptions{})
		tickJob.Handle(w, seen.handle)
		start(t, w)
		time.Sleep(time.Second)
		schedule(t, s, "k", core.Schedule[string]{Cron: "0 0 1 1 *"})
		time.Sleep(5 * time.Second)
		schedule(t, s, "k", core.Schedule[string]{Every: 2 * time.Second})
		time.Sleep(7 * time.Second)
		synctest.Wait()
		slots, late := seen.all()
		require.Len(t, slots, 3)
		require.Less(t, late[0], time.Second)
	})
}

// TestManyNews: news that don't end are no reason to ask without end (Q24).
func TestManyNews(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		start(t, newWorker(t, s, core.WorkerOptions{}))
		for range 1000 {
			require.NoError(t, s.PutSchedule(t.Context(), tickJob.Declare("k", core.Schedule[string]{Cron: "0 0 1 1 *"}).Spec, time.Now().Add(time.Hour)))
			time.Sleep(10 * time.Millisecond)
		}
		require.Less(t, s.asks(), 45)
	})
}

// TestPoison: a schedule that can't be planned, or whose slot is refused, is put off for longer and longer, tells why, and
// holds up nobody (Q26).
func TestPoison(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		var log bytes.Buffer
		var healed atomic.Bool
		s.tick = func(tick core.Tick) (bool, error) {
			if tick.Key == "refused" && tick.Err == "" && !healed.Load() {
				return false, &core.ConflictError{Name: "other", ID: "x\x00"}
			}
			return s.Store.TickSchedule(context.Background(), tick)
		}
		s.due = func(limit int) (core.DueSchedules, error) {
			due, err := s.Store.DueSchedules(context.Background(), limit)
			for i := range due.Due {
				if due.Due[i].Key == "unknown" {
					due.Due[i].Zone = "Europe/Atlantis" // as on a machine that doesn't know the zone
				}
			}
			return due, err
		}
		schedule(t, s, "good", core.Schedule[string]{Cron: "* * * * *"})
		schedule(t, s, "refused", core.Schedule[string]{Cron: "*/2 * * * *"})
		schedule(t, s, "unknown", core.Schedule[string]{Cron: "*/3 * * * *", Zone: "Europe/Berlin"})
		stop := start(t, newWorker(t, s, core.WorkerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		require.EqualValues(t, 60, counts(t, s)[core.StateWaiting])
		for key, why := range map[string]string{"refused": "held by a job", "unknown": "Atlantis"} {
			rec := record(t, s, key)
			require.Contains(t, rec.LastError, why)
			require.InDelta(t, 8+12, rec.Failures, 4, "1 s, doubling, up to 5 min")
			require.True(t, rec.RetryAt.After(time.Now().Add(-time.Second)))
			require.Zero(t, rec.LastSlot)
		}
		healed.Store(true)
		time.Sleep(7 * time.Minute)
		synctest.Wait()
		rec := record(t, s, "refused")
		require.Empty(t, rec.LastError)
		require.Zero(t, rec.Failures)
		require.NoError(t, stop())
		require.Equal(t, 1, strings.Count(log.String(), "schedule makes jobs again"))
	})
}

// TestPlanningThroughAnOutage: a store that is away is asked again, not often, told of once; then slots go on.
func TestPlanningThroughAnOutage(t *testing.T) {
	for _, failing := range []string{"due", "tick"} {
		schedBubble(t, func(t *testing.T, s *schedSpy) {
			var log bytes.Buffer
			var mu sync.Mutex
			away := false
			outage := func(call string) error {
				mu.Lock()
				defer mu.Unlock()
				if away && call == failing {
					return fmt.Errorf("no route: %w", core.ErrUnavailable)
				}
				return nil
			}
			s.due = func(limit int) (core.DueSchedules, error) {
				if err := outage("due"); err != nil {
					return core.DueSchedules{}, err
				}
				return s.Store.DueSchedules(context.Background(), limit)
			}
			s.tick = func(tick core.Tick) (bool, error) {
				if err := outage("tick"); err != nil {
					return false, err
				}
				return s.Store.TickSchedule(context.Background(), tick)
			}
			for i := range 20 {
				schedule(t, s, fmt.Sprint("k", i), core.Schedule[string]{Every: time.Minute})
			}
			stop := start(t, newWorker(t, s, core.WorkerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
			set := func(v bool) { mu.Lock(); away = v; mu.Unlock() }
			set(true)
			time.Sleep(10*time.Minute - 20*time.Second)
			require.Less(t, s.asks(), 250)
			s.mu.Lock()
			require.Less(t, len(s.ticks), 3*250)
			s.mu.Unlock()
			set(false)
			time.Sleep(21 * time.Second)
			synctest.Wait()
			require.EqualValues(t, 20*2, counts(t, s)[core.StateWaiting], "one for what was missed, and the tenth")
			require.Zero(t, record(t, s, "k7").Failures)
			require.NoError(t, stop())
			require.Equal(t, 1, strings.Count(log.String(), "were not planned"))
			require.Equal(t, 1, strings.Count(log.String(), "planned again"))
		})
	}
}

// TestOneStuckSchedule: one whose row can't be had holds up others for no longer than its call takes.
func TestOneStuckSchedule(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		s.tick = func(tick core.Tick) (bool, error) {
			if tick.Key == "stuck" {
				return false, core.ErrUnavailable
			}
			return s.Store.TickSchedule(context.Background(), tick)
		}
		var seen ran
		schedule(t, s, "stuck", core.Schedule[string]{Every: 10 * time.Second})
		schedule(t, s, "good", core.Schedule[string]{Every: 10 * time.Second})
		w := newWorker(t, s, core.WorkerOptions{})
		tickJob.Handle(w, seen.handle)
		start(t, w)
		time.Sleep(5*time.Minute + time.Second)
		synctest.Wait()
		slots, late := seen.all()
		require.Len(t, slots, 30)
		for _, d := range late {
			require.Less(t, d, time.Second)
		}
		require.Less(t, s.asks(), 300)
	})
}

// TestOthersAreAtIt: ticks that move nothing, as those of rows that are held elsewhere, are repeated with patience (Q24).
func TestOthersAreAtIt(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		s.tick = func(core.Tick) (bool, error) { return false, nil }
		schedule(t, s, "k", core.Schedule[string]{Every: time.Second})
		start(t, newWorker(t, s, core.WorkerOptions{}))
		time.Sleep(10 * time.Minute)
		require.Less(t, s.asks(), 700)
	})
}

// TestStoresClock: a worker's own clock, hours off, decides nothing.
func TestStoresClock(t *testing.T) {
	for _, off := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := &schedSpy{Store: memstore.New(memstore.Options{Clock: offClock(off)})}
			schedule(t, s, "k", core.Schedule[string]{Cron: "0 * * * *"})
			var seen ran
			w := newWorker(t, s, core.WorkerOptions{})
			tickJob.Handle(w, seen.handle)
			start(t, w)
			time.Sleep(3*time.Hour + time.Minute)
			synctest.Wait()
			slots, late := seen.all()
			require.Len(t, slots, 3)
			require.Less(t, late[2]+off, time.Second)
			require.GreaterOrEqual(t, late[2]+off, time.Duration(0))
		})
	}
}

type offClock time.Duration

func (c offClock) Now() time.Time { return time.Now().Add(time.Duration(c)) }

// TestPlanningEnds: with Run, and where the store has no schedules at all.
func TestPlanningEnds(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		s.due = func(int) (core.DueSchedules, error) {
			return core.DueSchedules{}, &core.UnsupportedError{Op: "DueSchedules"}
		}
		start(t, newWorker(t, s, core.WorkerOptions{}))
		time.Sleep(time.Hour)
		require.Equal(t, 1, s.asks())
	})
	synctest.Test(t, func(t *testing.T) {
		plain := struct{ core.Store }{memstore.New(memstore.Options{})}
		stop := start(t, newWorker(t, plain, core.WorkerOptions{}))
		time.Sleep(time.Hour)
		require.NoError(t, stop())
		require.ErrorIs(t, tickJob.Schedule(t.Context(), plain, "k", core.Schedule[string]{Cron: "@daily"}), errors.ErrUnsupported)
	})
}
