package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestNilArguments: what must be there is asked for by name, where it is missing and not where it is used.
func TestNilArguments(t *testing.T) {
	ctx := t.Context()
	s := memstore.New(memstore.Options{})
	task := core.NewTask[int]("task")
	w := newWorker(t, s, core.WorkerOptions{})
	var typed *memstore.Store
	run := func(context.Context, int) error { return nil }
	for name, c := range map[string]struct {
		field string
		call  func() error
	}{
		"NewWorker":          {"Store", func() error { _, err := core.NewWorker(nil, core.WorkerOptions{}); return err }},
		"NewWorker, typed":   {"Store", func() error { _, err := core.NewWorker(typed, core.WorkerOptions{}); return err }},
		"Enqueue":            {"Store", func() error { _, err := task.Enqueue(ctx, nil, 1); return err }},
		"Enqueue, typed":     {"Store", func() error { _, err := task.Enqueue(ctx, typed, 1); return err }},
		"EnqueueMany":        {"Store", func() error { _, err := task.EnqueueMany(ctx, nil, []int{1}); return err }},
		"EnqueueMany, empty": {"Store", func() error { _, err := task.EnqueueMany(ctx, nil, nil); return err }},
		"Execute":            {"Store", func() error { _, err := task.Execute(ctx, nil, 1); return err }},
		"Await":              {"Store", func() error { _, err := task.Await(ctx, nil, "a"); return err }},
		"Await, typed":       {"Store", func() error { _, err := task.Await(ctx, typed, "a"); return err }},
		"Complete":           {"TxView", func() error { return task.Complete(ctx, nil) }},
		"Schedule":           {"Store", func() error { return task.Schedule(ctx, nil, "k", core.Schedule[int]{Cron: "@daily"}) }},
		"Unschedule":         {"Store", func() error { _, err := task.Unschedule(ctx, nil, "k"); return err }},
		"ApplySchedules":     {"Store", func() error { _, err := core.ApplySchedules(ctx, nil, "g", core.ApplyOptions{}); return err }},
		"Middleware": {"Middleware", func() error {
			_, err := core.NewWorker(s, core.WorkerOptions{Middleware: []core.Middleware{nil}})
			return err
		}},
		"Handle, worker":      {"Worker", panics(func() { task.Handle(nil, run) })},
		"Handle, task's func": {"Handler", panics(func() { task.Handle(w, nil) })},
		"Handle, job's func":  {"Handler", panics(func() { core.NewJob[int, int]("job").Handle(w, nil) })},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.call()
			invalid, ok := errors.AsType[*core.InvalidError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.field, invalid.Field)
			require.Contains(t, invalid.Reason, "must not be nil")
		})
	}
}

// panics makes what a registration panics with an error.
func panics(f func()) func() error {
	return func() (err error) {
		defer func() { err, _ = recover().(error) }()
		f()
		return nil
	}
}
