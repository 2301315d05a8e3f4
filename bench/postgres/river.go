package postgres

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverQueue inserts with InsertManyFast, which is COPY. It starts a client per worker.
type riverQueue struct {
	pool   *pgxpool.Pool
	config func() *river.Config
	adding *atomic.Pointer[river.Client[pgx.Tx]] // the one that runs, if one does, as an application would
	idle   *river.Client[pgx.Tx]
}

type riverJob struct {
	Text string `json:"text"`
}

func (riverJob) Kind() string { return "noop" }

// benched are the settings of River's own bench.
func benched(workers int) func() *river.Config {
	return func() *river.Config {
		c := plain(workers)()
		c.FetchCooldown, c.FetchPollInterval = 2*time.Millisecond, 20*time.Millisecond
		return c
	}
}

// plain are River's defaults.
func plain(workers int) func() *river.Config {
	return func() *river.Config {
		return &river.Config{
			Logger: slog.New(slog.DiscardHandler),
			Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		}
	}
}

func openRiver(config func() *river.Config) func(context.Context, string) (queue, error) {
	return func(ctx context.Context, dsn string) (queue, error) {
		pool, err := connect(ctx, dsn)
		if err != nil {
			return nil, err
		}
		logger := slog.New(slog.DiscardHandler)
		migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: logger})
		if err != nil {
			return nil, err
		}
		if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return nil, err
		}
		q := riverQueue{pool: pool, config: config, adding: new(atomic.Pointer[river.Client[pgx.Tx]])}
		if q.idle, err = river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: logger}); err != nil {
			return nil, err
		}
		q.adding.Store(q.idle)
		return q, nil
	}
}

func (q riverQueue) insert(ctx context.Context, n int) error {
	return chunks(n, func(n int) error {
		jobs := make([]river.InsertManyParams, n)
		for i := range jobs {
			jobs[i].Args = riverJob{text}
		}
		_, err := q.adding.Load().InsertManyFast(ctx, jobs)
		return err
	})
}

func (q riverQueue) insertOne(ctx context.Context) error {
	_, err := q.adding.Load().Insert(ctx, riverJob{text}, nil)
	return err
}

func (q riverQueue) insertTx(ctx context.Context) error {
	return pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
		_, err := q.adding.Load().InsertTx(ctx, tx, riverJob{text}, nil)
		return err
	})
}

func (q riverQueue) start(handle func()) (func() error, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[riverJob]) error {
		handle()
		return nil
	}))
	config := q.config()
	config.Workers = workers
	c, err := river.NewClient(riverpgxv5.New(q.pool), config)
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

func (q riverQueue) left(ctx context.Context) (n int, err error) {
	err = q.pool.QueryRow(ctx, "select count(*) from river_job where state <> 'completed'").Scan(&n)
	return n, err
}

func (q riverQueue) close() error {
	q.pool.Close()
	return nil
}
