package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestErrorTexts: one prefix, then what was tried, then why not. What is wrapped is still found.
func TestErrorTexts(t *testing.T) {
	ctx := t.Context()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	open, closed := memstore.New(memstore.Options{}), memstore.New(memstore.Options{})
	require.NoError(t, closed.Close())
	task := core.NewTask[int]("t")
	one := func(s core.Store, opts ...core.EnqueueOption) error {
		_, err := task.Enqueue(ctx, s, 1, opts...)
		return err
	}
	many := func(s core.Store, opts ...core.EnqueueOption) error {
		res, err := task.EnqueueMany(ctx, s, []int{1}, opts...)
		if err != nil {
			return err
		}
		return res[0].Err
	}
	const notAt, noID = "stint: enqueue t: invalid RunAt: At needs a time", "stint: enqueue t: invalid ID: must not be empty"
	const priority = "stint: enqueue t: invalid Priority: must be -9 to 9"
	var invalid *core.InvalidError
	for _, c := range []struct {
		err  error
		want string
		is   error // nil: an InvalidError
	}{
		{one(open, core.ID("")), noID, nil},
		{many(open, core.ID("")), noID, nil},
		{one(open, core.At(time.Time{})), notAt, nil},
		{many(open, core.At(time.Time{})), notAt, nil},
		{many(open, core.ID("a")), "stint: enqueue 1 of t: invalid ID: one id cannot serve a batch", nil},
		{one(open, core.Priority(10)), priority, nil},
		{many(open, core.Priority(10)), priority, nil},
		{one(closed), "stint: enqueue t: the store is closed", core.ErrClosed},
		{many(closed), "stint: enqueue 1 of t: the store is closed", core.ErrClosed},
		{
			func() error { _, err := task.Enqueue(ended, open, 1); return err }(),
			"stint: enqueue t: store unavailable, nothing was done: context canceled", context.Canceled,
		},
		{
			func() error { _, err := task.Await(ctx, closed, "a"); return err }(),
			"stint: await a: the store is closed", core.ErrClosed,
		},
		{
			task.Schedule(ctx, open, "k", core.Schedule[int]{Cron: "@daily", Misfire: "foo"}),
			`stint: schedule k: invalid Misfire: unknown policy "foo": must be one of "one", "skip" and "all"`, nil,
		},
		{
			task.Schedule(ctx, open, "k", core.Schedule[int]{Cron: "@daily", Overlap: "foo"}),
			`stint: schedule k: invalid Overlap: unknown policy "foo": must be "allow" or "skip"`, nil,
		},
		{
			task.Schedule(ctx, closed, "k", core.Schedule[int]{Cron: "@daily"}),
			"stint: schedule k: the store is closed", core.ErrClosed,
		},
		{
			func() error { _, err := core.ApplySchedules(ctx, closed, "g", core.ApplyOptions{}); return err }(),
			"stint: schedules of group g: the store is closed", core.ErrClosed,
		},
	} {
		require.EqualError(t, c.err, c.want)
		if c.is == nil {
			require.ErrorAs(t, c.err, &invalid)
		} else {
			require.ErrorIs(t, c.err, c.is)
		}
	}
	require.PanicsWithValue(t, `stint: NewJob("a:b"): invalid Name: `+nameReason(), func() { core.NewTask[int]("a:b") })
}

func nameReason() string {
	invalid, _ := errors.AsType[*core.InvalidError](core.ValidateName("Name", "a:b"))
	return invalid.Reason
}
