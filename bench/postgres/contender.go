package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// queue is what a contender must do to be measured. The jobs are no-ops with a text of 20 bytes.
type queue interface {
	// insert stores n jobs in the contender's best way for many, chunk at a time.
	insert(ctx context.Context, n int) error
	// start runs a worker that calls handle for every job, perhaps concurrently. stop returns once every
	// outcome is stored.
	start(handle func()) (stop func() error, err error)
	// left counts jobs that have not ended.
	left(ctx context.Context) (int, error)
	close() error
}

// enqueuer is a contender that an application could use.
type enqueuer interface {
	queue
	// insertOne stores one job.
	insertOne(ctx context.Context) error
	// insertTx begins a transaction, stores one job in it, and commits.
	insertTx(ctx context.Context) error
}

// contender is one row of the table.
type contender struct {
	name string
	note string // settings, and what it does with jobs that ended
	slow bool   // gets a fraction of the jobs
	open func(ctx context.Context, dsn string) (queue, error)
}

func (c contender) jobs(n int) int {
	if c.slow {
		return max(n/20, 1000)
	}
	return n
}

// The names by which targets find their rows.
const (
	stintTuned    = "stint pgx"
	stintDefault  = "stint pgx default"
	stintPQ       = "stint pq default"
	riverFew      = "River 500"
	riverMany     = "River 2000"
	riverDefault  = "River default"
	bareLoop      = "stint bare"
	leanLoop      = "lean SQL"
	graphileBatch = "graphile-worker"
)

// contenders are all there are, in the order of the table. One more is a file with a queue and a line here.
func contenders(cfg Config) []contender {
	list := []contender{
		{name: stintTuned, note: "500 takers, poll 1 h; keeps jobs and history", open: openStint(tuned)},
		{name: stintDefault, note: "100 takers, the rest default", open: openStint(defaults)},
		{name: stintPQ, note: "the same through database/sql and lib/pq", open: openStintPQ},
		{name: riverFew, note: "pgx, 500 workers, cooldown 2 ms, poll 20 ms (its own bench's); keeps jobs", open: openRiver(benched(500))},
		{name: riverMany, note: "2,000 workers, the same", open: openRiver(benched(2000))},
		{name: riverDefault, slow: true, note: "100 workers, the rest default (cooldown 100 ms, poll 1 s)", open: openRiver(plain(100))},
		{name: bareLoop, note: "stint's Claim and Ack in 4 loops without a worker, 100 at a time", open: openBare},
		{name: leanLoop, note: "hand-written SQL: three tables, claim and ack and nothing else, 4 loops, 100 at a time", open: openLean},
	}
	if cfg.Graphile != "" {
		list = append(list, contender{name: graphileBatch, open: openGraphile(cfg.Graphile),
			note: "concurrency 24, local queue 500, completions batched without delay; deletes"})
	}
	return list
}

const (
	text  = "twenty bytes of text" // every job's payload
	chunk = 1000                   // jobs per call or transaction
	loops = 4                      // of contenders without a worker
	batch = 100                    // jobs per claim of theirs
	conns = 24                     // of each contender's pool at most
)

// chunks calls f with the sizes that make up n.
func chunks(n int, f func(n int) error) error {
	for ; n > 0; n -= chunk {
		if err := f(min(n, chunk)); err != nil {
			return err
		}
	}
	return nil
}

// connect opens a pool as all contenders on pgx have it.
func connect(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = conns
	return pgxpool.NewWithConfig(ctx, cfg)
}
