package main

import "context"

// queue is what a contender must do to be measured. The jobs are no-ops with a text of 20 bytes.
type queue interface {
	// insert stores n jobs in the contender's best way for many.
	insert(ctx context.Context, n int) error
	// insertOne stores one job, durably, in a call of its own.
	insertOne(ctx context.Context) error
	// start runs a worker that calls handle for every job, perhaps concurrently. stop returns once every
	// outcome is stored.
	start(handle func()) (stop func() error, err error)
	// left counts jobs that have not ended.
	left(ctx context.Context) (int, error)
	close() error
}

// contender is one row of the table.
type contender struct {
	name  string
	fast  bool                               // drains -n jobs; the others a quarter
	boost int                                // or so many times -n
	note  string                             // settings, and what it does with jobs that ended
	open  func(folder string) (queue, error) // in an empty folder
}

func (c contender) jobs(n int) int {
	switch {
	case c.boost > 0:
		return n * c.boost
	case c.fast:
		return n
	default:
		return n / 4
	}
}

// contenders are all there are, in the order of the table. One more is a file with a queue and a line here.
func contenders() []contender {
	return []contender{
		{name: "stint SQLite", fast: true, note: "concurrency 100, synchronous NORMAL; keeps jobs and history", open: openStint("NORMAL")},
		{name: "stint SQLite FULL", fast: true, note: "the same, synchronous FULL, its default: survives a power cut", open: openStint("FULL")},
		{name: "goqite", note: "jobs.Runner, limit 10, poll 1 ms; deletes", open: openGoqite},
		{name: "backlite", note: "1,000 workers; deletes", open: openBacklite},
		{name: "riversqlite", note: "500 workers, cooldown 1 ms, poll 5 ms; keeps jobs", open: openRiver},
		{name: "bare SQL", fast: true, note: "a loop without a worker: one lean table, claim and ack 100 at a time; keeps rows", open: openBare},
		{name: "stint memory", boost: 5, note: "concurrency 100; nothing durable", open: openMemory},
	}
}

// text is every job's payload.
const text = "twenty bytes of text"

// chunk is how many jobs a contender inserts per call or transaction.
const chunk = 1000

// chunks calls f with the sizes that make up n.
func chunks(n int, f func(n int) error) error {
	for ; n > 0; n -= chunk {
		if err := f(min(n, chunk)); err != nil {
			return err
		}
	}
	return nil
}
