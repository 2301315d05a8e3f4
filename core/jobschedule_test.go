package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

func scheduleKeys(t *testing.T, s core.Scheduler, q core.ScheduleQuery) (keys []string) {
	t.Helper()
	recs, err := s.Schedules(context.Background(), q)
	require.NoError(t, err)
	for _, r := range recs {
		keys = append(keys, r.Key)
	}
	return keys
}

// TestDeclare: a schedule's slots enqueue what one Enqueue would, but for what each slot has of its own.
func TestDeclare(t *testing.T) {
	job := core.NewTask("report", core.JobOptions[string]{
		Queue: "reports", MaxAttempts: 3,
		Key:      func(string) string { return "" },
		Dedupe:   func(string) core.Dedupe { return core.Dedupe{Key: "d"} },
		Metadata: func(p string) map[string]string { return map[string]string{"p": p} },
	})
	d := job.Declare("k", core.Schedule[string]{
		Cron: "0 2 * * *", Zone: "Europe/Berlin", Payload: "x", Misfire: core.MisfireAll, CatchUp: 5, Overlap: core.OverlapSkip, Group: "g",
		Options: []core.EnqueueOption{core.Priority(3), core.WithTimeout(time.Minute), core.WithMetadata(map[string]string{"m": "n"})},
	})
	require.NoError(t, d.Err)
	require.Equal(t, core.ScheduleSpec{
		Key: "k", Group: "g", Cron: "0 2 * * *", Zone: "Europe/Berlin", Misfire: core.MisfireAll, CatchUp: 5, Overlap: core.OverlapSkip,
		Request: core.EnqueueRequest{
			Name: "report", Queue: "reports", Payload: []byte(`"x"`), Priority: 3, MaxAttempts: 3, Backoff: core.DefaultBackoff(),
			Timeout: time.Minute, Metadata: map[string]string{"p": "x", "m": "n"},
		},
	}, d.Spec)

	every := core.Schedule[string]{Every: time.Hour}
	for field, change := range map[string]func(*core.Schedule[string]){
		"ID":    func(s *core.Schedule[string]) { s.Options = []core.EnqueueOption{core.ID("x")} },
		"Delay": func(s *core.Schedule[string]) { s.Options = []core.EnqueueOption{core.Delay(0)} },
		"RunAt": func(s *core.Schedule[string]) { s.Options = []core.EnqueueOption{core.At(time.Now())} },
		"Dedupe": func(s *core.Schedule[string]) {
			s.Options = []core.EnqueueOption{core.WithDedupe(core.Dedupe{Key: "x"})}
		},
		"Priority": func(s *core.Schedule[string]) { s.Options = []core.EnqueueOption{core.Priority(10)} },
		"Cron":     func(s *core.Schedule[string]) { s.Cron = "@daily" },
		"Every":    func(s *core.Schedule[string]) { s.Every = time.Millisecond },
		"Zone":     func(s *core.Schedule[string]) { s.Zone = "UTC" },
		"Misfire":  func(s *core.Schedule[string]) { s.Misfire = "most" },
		"Overlap":  func(s *core.Schedule[string]) { s.Overlap = "some" },
		"CatchUp":  func(s *core.Schedule[string]) { s.CatchUp = -1 },
		"Group":    func(s *core.Schedule[string]) { s.Group = strings.Repeat("g", 256) },
	} {
		sch := every
		change(&sch)
		var invalid *core.InvalidError
		require.True(t, errors.As(job.Declare("k", sch).Err, &invalid), field)
		require.Equal(t, field, invalid.Field)
		require.ErrorAs(t, job.Schedule(t.Context(), memstore.New(memstore.Options{}), "k", sch), &invalid)
	}
	require.Error(t, job.Declare("", every).Err)
	require.Error(t, core.NewTask[chan int]("x").Declare("k", core.Schedule[chan int]{Every: time.Hour}).Err, "a payload that can't be encoded")
}

// TestScheduleKeys: a key belongs to one job, and a group's to the group.
func TestScheduleKeys(t *testing.T) {
	s := memstore.New(memstore.Options{})
	other := core.NewTask[string]("other")
	every := core.Schedule[string]{Every: time.Hour}
	require.NoError(t, tickJob.Schedule(t.Context(), s, "k", every))
	var held *core.ScheduleConflictError
	require.ErrorAs(t, other.Schedule(t.Context(), s, "k", every), &held)
	require.Equal(t, core.ScheduleConflictError{Key: "k", Name: "tick"}, *held)
	_, err := other.Unschedule(t.Context(), s, "k")
	require.ErrorAs(t, err, &held)

	grouped := every
	grouped.Group = "g"
	require.NoError(t, tickJob.Schedule(t.Context(), s, "k", grouped))
	require.NoError(t, tickJob.Schedule(t.Context(), s, "k", grouped))
	require.ErrorAs(t, tickJob.Schedule(t.Context(), s, "k", every), &held)
	require.Equal(t, "g", held.Group)
	require.ErrorContains(t, held, `group "g"`)

	for _, want := range []bool{true, false} {
		there, err := tickJob.Unschedule(t.Context(), s, "k")
		require.NoError(t, err)
		require.Equal(t, want, there)
	}
	there, err := tickJob.Unschedule(t.Context(), s, "")
	require.NoError(t, err)
	require.False(t, there)
	_, err = tickJob.Unschedule(t.Context(), struct{ core.Store }{s}, "k")
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// TestApplySchedules: a group becomes what is declared, what else it has is told or removed, and others are not touched.
func TestApplySchedules(t *testing.T) {
	schedBubble(t, func(t *testing.T, s *schedSpy) {
		every := func(d time.Duration) core.Schedule[string] { return core.Schedule[string]{Every: d} }
		apply := func(opts core.ApplyOptions, declared ...core.Declared) core.Applied {
			t.Helper()
			done, err := core.ApplySchedules(t.Context(), s, "g", opts, declared...)
			require.NoError(t, err)
			return done
		}
		schedule(t, s, "free", every(time.Hour))
		foreign := every(time.Hour)
		foreign.Group = "other"
		schedule(t, s, "foreign", foreign)

		a, b, c := tickJob.Declare("a", every(time.Hour)), tickJob.Declare("b", every(time.Hour)), tickJob.Declare("c", every(time.Hour))
		require.Equal(t, core.Applied{Put: []string{"a", "b", "c"}}, apply(core.ApplyOptions{}, c, a, b))
		first := record(t, s, "a").NextAt
		time.Sleep(time.Minute)
		faster := tickJob.Declare("b", every(time.Minute))
		require.Equal(t, core.Applied{Put: []string{"b"}, Kept: []string{"a"}, Stale: []string{"c"}}, apply(core.ApplyOptions{}, a, faster))
		require.Equal(t, first, record(t, s, "a").NextAt)
		require.True(t, record(t, s, "b").NextAt.Equal(time.Now().Add(time.Minute)))
		require.Equal(t, core.Applied{Kept: []string{"a"}, Removed: []string{"b", "c"}}, apply(core.ApplyOptions{Remove: true}, a))
		require.Equal(t, core.Applied{Removed: []string{"a"}}, apply(core.ApplyOptions{Remove: true}))
		require.Equal(t, []string{"foreign", "free"}, scheduleKeys(t, s, core.ScheduleQuery{}))

		// A schedule that is put off is put again, which has it tried again at once.
		apply(core.ApplyOptions{}, a)
		time.Sleep(2 * time.Hour)
		moved, err := s.TickSchedule(t.Context(), core.Tick{Key: "a", Expect: record(t, s, "a").NextAt, Err: "why", RetryIn: time.Hour})
		require.NoError(t, err)
		require.True(t, moved)
		require.Equal(t, core.Applied{Put: []string{"a"}}, apply(core.ApplyOptions{}, a))
		require.Empty(t, record(t, s, "a").LastError)
	})
}

// TestApplySchedulesRefused: nothing is stored before everything was looked at.
func TestApplySchedulesRefused(t *testing.T) {
	s := memstore.New(memstore.Options{})
	every := core.Schedule[string]{Every: time.Hour}
	foreign, free := every, every
	foreign.Group = "other"
	require.NoError(t, tickJob.Schedule(t.Context(), s, "foreign", foreign))
	require.NoError(t, tickJob.Schedule(t.Context(), s, "free", free))
	before, err := s.Schedules(t.Context(), core.ScheduleQuery{})
	require.NoError(t, err)
	good := tickJob.Declare("a", every)
	for _, c := range []struct {
		about, group string
		declared     []core.Declared
		want         any
	}{
		{"no group", "", []core.Declared{good}, new(*core.InvalidError)},
		{"a key twice", "g", []core.Declared{good, tickJob.Declare("b", every), good}, new(*core.InvalidError)},
		{"an error", "g", []core.Declared{good, tickJob.Declare("b", core.Schedule[string]{})}, new(*core.InvalidError)},
		{"a spec that was not checked", "g", []core.Declared{good, {Spec: core.ScheduleSpec{Key: "b"}}}, new(*core.InvalidError)},
		{"another group's declaration", "g", []core.Declared{good, tickJob.Declare("b", foreign)}, new(*core.InvalidError)},
		{"another group's key", "g", []core.Declared{good, tickJob.Declare("foreign", every)}, new(*core.ScheduleConflictError)},
		{"nobody's key", "g", []core.Declared{good, tickJob.Declare("free", every)}, new(*core.ScheduleConflictError)},
	} {
		_, err := core.ApplySchedules(t.Context(), s, c.group, core.ApplyOptions{Remove: true}, c.declared...)
		require.ErrorAs(t, err, c.want, c.about)
		after, err := s.Schedules(t.Context(), core.ScheduleQuery{})
		require.NoError(t, err)
		require.Equal(t, before, after, c.about)
	}
	_, err = core.ApplySchedules(t.Context(), struct{ core.Store }{s}, "g", core.ApplyOptions{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// TestScheduleStoreErrors: a store that fails says so through every call.
func TestScheduleStoreErrors(t *testing.T) {
	s := memstore.New(memstore.Options{})
	require.NoError(t, s.Close())
	every := core.Schedule[string]{Every: time.Hour}
	require.ErrorIs(t, tickJob.Schedule(t.Context(), s, "k", every), core.ErrUnavailable)
	_, err := tickJob.Unschedule(t.Context(), s, "k")
	require.ErrorIs(t, err, core.ErrUnavailable)
	_, err = core.ApplySchedules(t.Context(), s, "g", core.ApplyOptions{}, tickJob.Declare("k", every))
	require.ErrorIs(t, err, core.ErrUnavailable)
}
