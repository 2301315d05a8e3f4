package robust_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintmq/stint/core"
)

// child is a worker process. It works until its standard input ends, or until it is killed.
type child struct {
	Driver string
	// Journal makes it one of a journal, on pgx.
	Journal bool
	At      target // of the store
	Schema  string
	Notes   target // of the marks, past any proxy
	Table   string
	ID      string
	Queues  []string
	Takers  int           // per queue
	Lease   time.Duration // and the rest of it in proportion
	Poll    time.Duration
	Work    time.Duration // a run takes up to this
}

// payload is what a job says about its run.
type payload struct {
	N int
	// For is how long the run takes; 0: a random time up to the worker's Work.
	For time.Duration
}

// kind is the kind of work of a queue: one name has one queue per worker.
func kind(queue string) *core.Task[payload] {
	return core.NewTask[payload]("work-"+queue, core.JobOptions[payload]{Queue: queue})
}

func (c *child) run() error {
	d, err := driverNamed(c.Driver)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is the word to stop
		stop()
	}()
	notes, err := newNotes(ctx, c.Notes, c.Table)
	if err != nil {
		return err
	}
	defer notes.close()
	if c.Journal {
		return c.runJournal(ctx, notes)
	}
	s, err := c.open(ctx, d)
	if err != nil {
		return err
	}
	w, err := core.NewWorker(s, c.options(slog.New(slog.NewTextHandler(os.Stderr, nil))))
	if err != nil {
		return err
	}
	for _, queue := range c.Queues {
		kind(queue).Handle(w, func(ctx context.Context, p payload) error { return notes.work(ctx, p, c.Work) })
	}
	fmt.Println("working")
	return errors.Join(w.Run(ctx), s.close())
}

// open tries until the server is there.
func (c *child) open(ctx context.Context, d driver) (*store, error) {
	for {
		s, err := d.open(ctx, openOptions{at: c.At, schema: c.Schema})
		if err == nil || !errors.Is(err, core.ErrUnavailable) || ctx.Err() != nil {
			return s, err
		}
		pause(50 * time.Millisecond)
	}
}

// options are those of a worker that finds out about the dead soon.
func (c *child) options(log *slog.Logger) core.WorkerOptions {
	return core.WorkerOptions{
		ID: c.ID, Concurrency: c.Takers, Lease: c.Lease, StalledInterval: c.Lease / 5, Poll: c.Poll, MaxStalls: 1000,
		Grace: 10 * time.Second, Logger: log,
	}
}

// notes are the marks of runs: one worker's way to the test's own table.
type notes struct {
	pool  *pgxpool.Pool
	table string
}

func newNotes(ctx context.Context, at target, table string) (*notes, error) {
	pool, err := pgxpool.New(ctx, at.with(map[string]string{"application_name": "notes"}).dsn())
	if err != nil {
		return nil, err
	}
	return &notes{pool, table}, nil
}

func (n *notes) close() { n.pool.Close() }

// work is a handler: a mark, a while, another mark. It does not mind its context: whether its end counts is the
// store's to say.
func (n *notes) work(ctx context.Context, p payload, upTo time.Duration) error {
	run, _ := core.Current(ctx)
	err := n.mark(`insert into `+n.table+` (ref, token, job, fence, n, pid, started) values ($1, $2, $3, $4, $5, $6, clock_timestamp())
		on conflict do nothing`, run.Lease.Ref, run.Lease.Token, run.ID, run.Fence, p.N, os.Getpid())
	if err != nil {
		return err
	}
	if p.For == 0 && upTo > 0 {
		p.For = rand.N(upTo)
	}
	pause(p.For)
	return n.mark(`update `+n.table+` set ended = clock_timestamp() where ref = $1 and token = $2 and ended is null`,
		run.Lease.Ref, run.Lease.Token)
}

// mark tries until it is written: the server may be down. It may be repeated.
func (n *notes) mark(sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		_, err := n.pool.Exec(ctx, sql, args...)
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause(20 * time.Millisecond)
	}
}

// pause is time that work takes.
func pause(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
