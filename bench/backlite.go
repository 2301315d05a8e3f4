package main

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	"github.com/mikestefanello/backlite"
)

// backliteQueue adds many tasks per transaction. Its dispatcher claims as many as there are idle workers, and
// each worker ends its task in a transaction.
type backliteQueue struct {
	db      *sql.DB
	adding  atomic.Pointer[backlite.Client] // the one that runs, if one does: it must hear of new tasks
	retired *backlite.Client
}

type backliteTask struct {
	Text string `json:"text"`
}

func (backliteTask) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "noop", MaxAttempts: 10, Timeout: time.Minute}
}

func openBacklite(folder string) (queue, error) {
	db, err := openSQLite(folder)
	if err != nil {
		return nil, err
	}
	q := &backliteQueue{db: db}
	if q.retired, err = q.client(); err != nil {
		return nil, err
	}
	q.adding.Store(q.retired)
	return q, q.retired.Install()
}

func (q *backliteQueue) client() (*backlite.Client, error) {
	return backlite.NewClient(backlite.ClientConfig{DB: q.db, NumWorkers: 1000, ReleaseAfter: time.Hour})
}

func (q *backliteQueue) insert(ctx context.Context, n int) error {
	return chunks(n, func(n int) error {
		tasks := make([]backlite.Task, n)
		for i := range tasks {
			tasks[i] = backliteTask{text}
		}
		_, err := q.adding.Load().Add(tasks...).Ctx(ctx).Save()
		return err
	})
}

func (q *backliteQueue) insertOne(ctx context.Context) error {
	_, err := q.adding.Load().Add(backliteTask{text}).Ctx(ctx).Save()
	return err
}

func (q *backliteQueue) start(handle func()) (func() error, error) {
	c, err := q.client()
	if err != nil {
		return nil, err
	}
	c.Register(backlite.NewQueue(func(context.Context, backliteTask) error {
		handle()
		return nil
	}))
	c.Start(context.Background())
	q.adding.Store(c)
	return func() error {
		q.adding.Store(q.retired)
		c.Stop(context.Background())
		return nil
	}, nil
}

func (q *backliteQueue) left(ctx context.Context) (int, error) {
	return count(ctx, q.db, "select count(*) from backlite_tasks")
}

func (q *backliteQueue) close() error { return q.db.Close() }
