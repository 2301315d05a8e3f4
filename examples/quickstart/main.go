// Quickstart measures every file in a folder: one job per file, kept in SQLite, run by a worker in this process.
//
//	go run ./examples/quickstart [flags] [folder]
//
// Interrupt it, or kill it with kill -9, and start it again: it goes on where it was, and every file is counted
// exactly once, because a file's row and the end of its job are written by one transaction. Start it in two
// terminals, and the two share the work.
//
// It exits with 0 when every file was measured or has failed for good, 1 on errors, 2 on bad arguments, and
// 130 when SIGINT or SIGTERM stopped it before the end.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// measure is the kind of work: its name, its payload and its result. Producers and workers share it.
var measure = core.NewJob[File, Stats]("measure-file", core.JobOptions[File]{
	// Enqueueing the same file twice is harmless: the second one is a duplicate, even of a finished job.
	Key:         File.key,
	MaxAttempts: 3,
	// A job whose worker dies four times is under suspicion of killing it, and fails. Here it is you who kills.
	MaxStalls: 1000,
})

// run is the whole program: open the store, enqueue, work, report.
func run(ctx context.Context, cfg config, out *screen) (err error) {
	db, err := open(ctx, cfg, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	start := time.Now()
	if err := enqueue(ctx, db, cfg, out); err != nil {
		return err
	}
	done, err := work(ctx, db, cfg, out)
	if err != nil {
		return err
	}
	return report(context.WithoutCancel(ctx), db, out, done, time.Since(start))
}

// enqueue stores a job for every file that has none yet.
func enqueue(ctx context.Context, db database, cfg config, out *screen) error {
	if err := sameFolder(ctx, db, cfg.folder); err != nil {
		return err
	}
	found, known := 0, 0
	for batch := range batches(ctx, walk(cfg.folder, db.Owns, out), 500) {
		results, err := measure.EnqueueMany(ctx, db, batch)
		if err != nil {
			return err
		}
		for i, r := range results {
			if r.Err != nil { // each item stands for itself
				return fmt.Errorf("enqueue %q: %w", batch[i].Path, r.Err)
			}
			if r.Duplicate {
				known++
			}
		}
		found += len(results)
		out.status("%s files found", grouped(found))
	}
	out.printf("%s files in %s, %s of them known from an earlier run", grouped(found), printable(cfg.folder), grouped(known))
	return context.Cause(ctx)
}

// work runs the jobs until none is left, or until ctx ends. It returns how many files this process measured.
func work(ctx context.Context, db database, cfg config, out *screen) (int64, error) {
	var tally tally
	w, err := core.NewWorker(db, core.WorkerOptions{
		Concurrency: cfg.takers,
		// A worker that is killed leaves its jobs leased, and others wait for the leases to end. The default of
		// 30 s suits machines that pause and networks that fail. Here nothing but this process can stand still,
		// so short leases are safe, and a restart after kill -9 has the lost files back within seconds.
		Lease:           5 * time.Second,
		StalledInterval: 2 * time.Second,
		Grace:           5 * time.Second,
		Logger:          cfg.log,
		OnFailure:       tally.failure,
	})
	if err != nil {
		return 0, err
	}
	measure.Handle(w, func(ctx context.Context, f File) (Stats, error) {
		// The slow part comes first. SQLite has one writer, so the transaction must only write.
		stats, err := count(ctx, f.path())
		switch {
		case hopeless(err):
			return Stats{}, core.Unrecoverable(err)
		case err != nil:
			return Stats{}, err // costs one attempt of three
		}
		err = db.Save(ctx, f.key(), stats, func(in core.TxView) error {
			return measure.Complete(ctx, in, stats) // same transaction: both or neither
		})
		if err == nil {
			tally.done.Add(1)
		}
		return stats, err
	})

	working, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan error, 1)
	go func() {
		defer stop() // a worker never ends by itself: there might always be more
		watched <- watch(working, db, &tally, out)
	}()
	err = w.Run(working)
	return tally.done.Load(), errors.Join(err, <-watched, context.Cause(ctx))
}
