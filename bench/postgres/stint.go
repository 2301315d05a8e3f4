package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
	pgxstore "github.com/stintmq/stint/drivers/pgx"
)

// stint is a store of ours under the worker that applications use. What begins a transaction differs by driver.
type stint struct {
	store interface {
		core.Store
		core.Inspector
		Close() error
	}
	task    *core.Task[stintJob]
	options core.WorkerOptions
	within  func(ctx context.Context, f func(core.TxView) error) error
	release func() error
}

type stintJob struct {
	Text string `json:"text"`
}

func tuned() core.WorkerOptions {
	return core.WorkerOptions{Concurrency: 500, Poll: time.Hour}
}

func defaults() core.WorkerOptions { return core.WorkerOptions{Concurrency: 100} }

func openStint(options func() core.WorkerOptions) func(context.Context, string) (queue, error) {
	return func(ctx context.Context, dsn string) (queue, error) {
		store, pool, err := openStore(ctx, dsn, "")
		if err != nil {
			return nil, err
		}
		within := func(ctx context.Context, f func(core.TxView) error) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return f(store.WithTx(tx)) })
		}
		release := func() error {
			pool.Close()
			return nil
		}
		return stint{store, core.NewTask[stintJob]("noop"), options(), within, release}, nil
	}
}

// openStore opens a store of ours in a schema.
func openStore(ctx context.Context, dsn, schema string) (*pgxstore.Store, *pgxpool.Pool, error) {
	pool, err := connect(ctx, dsn)
	if err != nil {
		return nil, nil, err
	}
	if err := pgxstore.Migrate(ctx, pool, schema); err != nil {
		return nil, nil, err
	}
	store, err := pgxstore.New(pool, pgxstore.Options{Schema: schema})
	return store, pool, err
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

func (s stint) insertTx(ctx context.Context) error {
	return s.within(ctx, func(view core.TxView) error {
		_, err := s.task.Enqueue(ctx, view, stintJob{text})
		return err
	})
}

func (s stint) start(handle func()) (func() error, error) {
	w, err := core.NewWorker(s.store, s.options)
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

func (s stint) left(ctx context.Context) (int, error) { return pending(ctx, s.store) }

// pending counts a store's jobs that have not completed.
func pending(ctx context.Context, store core.Inspector) (int, error) {
	counts, err := store.Counts(ctx, "")
	left := 0
	for state, n := range counts {
		if state != core.StateCompleted {
			left += int(n)
		}
	}
	return left, err
}

func (s stint) close() error {
	err := s.store.Close()
	if closeErr := s.release(); err == nil {
		err = closeErr
	}
	return err
}
