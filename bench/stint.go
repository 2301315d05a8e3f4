package main

import (
	"context"
	"path/filepath"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// stint is a store of ours under the worker that applications use, with its default settings but for concurrency.
type stint struct {
	store interface {
		core.Store
		core.Inspector
		Close() error
	}
	task *core.Task[stintJob]
}

type stintJob struct {
	Text string `json:"text"`
}

func openStint(synchronous string) func(string) (queue, error) {
	return func(folder string) (queue, error) {
		store, err := bunstore.OpenSQLite(filepath.Join(folder, "jobs.db"), bunstore.Options{Synchronous: synchronous})
		if err != nil {
			return nil, err
		}
		return stint{store, core.NewTask[stintJob]("noop")}, nil
	}
}

func openMemory(string) (queue, error) {
	return stint{memstore.New(memstore.Options{}), core.NewTask[stintJob]("noop")}, nil
}

func (s stint) insert(ctx context.Context, n int) error {
	return chunks(n, func(n int) error {
		jobs := make([]stintJob, n)
		for i := range jobs {
			jobs[i].Text = text
		}
		_, err := s.task.EnqueueMany(ctx, s.store, jobs)
		return err
	})
}

func (s stint) insertOne(ctx context.Context) error {
	_, err := s.task.Enqueue(ctx, s.store, stintJob{text})
	return err
}

func (s stint) start(handle func()) (func() error, error) {
	w, err := core.NewWorker(s.store, core.WorkerOptions{Concurrency: 100})
	if err != nil {
		return nil, err
	}
	s.task.Handle(w, func(context.Context, stintJob) error {
		handle()
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}

func (s stint) left(ctx context.Context) (int, error) {
	counts, err := s.store.Counts(ctx, "")
	left := 0
	for state, n := range counts {
		if state != core.StateCompleted {
			left += int(n)
		}
	}
	return left, err
}

func (s stint) close() error { return s.store.Close() }
