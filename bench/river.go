package main

import (
	"context"
	"database/sql"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// riverQueue inserts with InsertMany. It starts a client per worker.
type riverQueue struct {
	db     *sql.DB
	adding atomic.Pointer[river.Client[*sql.Tx]]
	idle   *river.Client[*sql.Tx]
}

type riverJob struct {
	Text string `json:"text"`
}

func (riverJob) Kind() string { return "noop" }

func openRiver(folder string) (queue, error) {
	db, err := openSQLite(folder)
	if err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riversqlite.New(db), &rivermigrate.Config{Logger: silent()})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(context.Background(), rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	q := &riverQueue{db: db}
	if q.idle, err = river.NewClient(riversqlite.New(db), &river.Config{Logger: silent()}); err != nil {
		return nil, err
	}
	q.adding.Store(q.idle)
	return q, nil
}

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (q *riverQueue) insert(ctx context.Context, n int) error {
	return chunks(n, func(n int) error {
		jobs := make([]river.InsertManyParams, n)
		for i := range jobs {
			jobs[i].Args = riverJob{text}
		}
		_, err := q.adding.Load().InsertMany(ctx, jobs)
		return err
	})
}

func (q *riverQueue) insertOne(ctx context.Context) error {
	_, err := q.adding.Load().Insert(ctx, riverJob{text}, nil)
	return err
}

func (q *riverQueue) start(handle func()) (func() error, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[riverJob]) error {
		handle()
		return nil
	}))
	c, err := river.NewClient(riversqlite.New(q.db), &river.Config{
		Logger: silent(), Workers: workers,
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 500}},
		FetchCooldown: time.Millisecond, FetchPollInterval: 5 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	if err := c.Start(context.Background()); err != nil {
		return nil, err
	}
	q.adding.Store(c)
	return func() error {
		q.adding.Store(q.idle)
		return c.Stop(context.Background())
	}, nil
}

func (q *riverQueue) left(ctx context.Context) (int, error) {
	return count(ctx, q.db, "select count(*) from river_job where state <> 'completed'")
}

func (q *riverQueue) close() error { return q.db.Close() }
