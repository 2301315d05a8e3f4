package main

import (
	"context"
	"database/sql"
	_ "embed"
	"time"

	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"
)

// goqiteSchema is goqite's, which its users copy into their own migrations.
//
//go:embed goqite.sql
var goqiteSchema string

// goqiteQueue sends in transactions of many. Its runner receives one job per transaction, and deletes it in
// another.
type goqiteQueue struct {
	db    *sql.DB
	queue *goqite.Queue
}

func openGoqite(folder string) (queue, error) {
	db, err := openSQLite(folder)
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec(goqiteSchema); err != nil {
		return nil, err
	}
	return goqiteQueue{db, goqite.New(goqite.NewOpts{DB: db, Name: "jobs", Timeout: 30 * time.Second})}, nil
}

func (q goqiteQueue) insert(ctx context.Context, n int) error {
	return chunks(n, func(n int) error {
		return within(ctx, q.db, func(tx *sql.Tx) error {
			for range n {
				if _, err := jobs.CreateTx(ctx, tx, q.queue, "noop", goqite.Message{Body: []byte(text)}); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (q goqiteQueue) insertOne(ctx context.Context) error {
	_, err := jobs.Create(ctx, q.queue, "noop", goqite.Message{Body: []byte(text)})
	return err
}

func (q goqiteQueue) start(handle func()) (func() error, error) {
	runner := jobs.NewRunner(jobs.NewRunnerOpts{Queue: q.queue, Limit: 10, PollInterval: time.Millisecond, Extend: 30 * time.Second})
	runner.Register("noop", func(context.Context, []byte) error {
		handle()
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		runner.Start(ctx)
	}()
	return func() error {
		cancel()
		<-done
		return nil
	}, nil
}

func (q goqiteQueue) left(ctx context.Context) (int, error) {
	return count(ctx, q.db, "select count(*) from goqite")
}

func (q goqiteQueue) close() error { return q.db.Close() }
