// Quickstart measures every file in a folder: one job per file, kept in SQLite, run by a worker in this process.
//
//	go run ./examples/quickstart [flags] [folder]
//	go run ./examples/quickstart -store 'postgres://user@host/database?sslmode=disable' [folder]
//
// On Postgres it makes a schema "quickstart", or the one that search_path names in the connection string; a password
// is better left to PGPASSWORD or ~/.pgpass.
//
// Interrupt it, or kill -9 the process that its first line names (go run is another one), and start it again: it goes
// on where it was, and every file is counted exactly once, because a file's row and the end of its job are written by one transaction. Start it in two
// terminals, and the two share the work.
//
// It exits with 0 when every file was measured or has failed for good, 1 on errors, 2 on bad arguments, and
// 130 when SIGINT or SIGTERM stopped it before the end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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

const lease = 5 * time.Second

// run is the whole program: open the store, enqueue, work, report.
func run(ctx context.Context, cfg config, out *screen) (err error) {
	db, err := open(ctx, cfg, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	did := &tally{start: time.Now()}
	err = enqueue(ctx, db, cfg, out)
	if err == nil {
		err = work(ctx, db, cfg, out, did)
	}
	interrupted := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	switch {
	case err == nil:
		return report(ctx, db, out, did)
	case interrupted:
		return errors.Join(err, show(ctx, db, did, out))
	}
	return err
}

// enqueue stores a job for every file that has none yet.
func enqueue(ctx context.Context, db database, cfg config, out *screen) error {
	if err := sameFolder(ctx, db, cfg.folder); err != nil {
		return err
	}
	out.printf("Process %d. %s", os.Getpid(), db.Where()) // whom to kill: below go run it is not the shell's own child
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
		out.status("%s files found so far", grouped(found))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if found == 0 {
		out.printf("no files in %s", printable(cfg.folder))
		return nil
	}
	out.printf("%s files in %s, %s of them known from an earlier run", grouped(found), printable(cfg.folder), grouped(known))
	return nil
}

// work runs the jobs until none is left, or until ctx ends. It counts what this process did.
func work(ctx context.Context, db database, cfg config, out *screen, did *tally) error {
	w, err := core.NewWorker(db, core.WorkerOptions{
		Concurrency: cfg.takers,
		// A worker that is killed leaves its jobs leased, and others wait for the leases to end. The default of
		// 30 s suits machines that pause and networks that fail; here a restart has the lost files back within
		// ten seconds. Not shorter: a call to the store is given a sixth of the lease, and may have to wait for
		// another process that writes. Measured with two at once, leases of 2 s were not always renewed in time.
		Lease:           lease,
		StalledInterval: 2 * time.Second,
		Grace:           5 * time.Second,
		Logger:          cfg.log,
		OnFailure:       did.failure,
	})
	if err != nil {
		return err
	}
	measure.Handle(w, func(ctx context.Context, f File) (Stats, error) {
		did.running.Add(1)
		defer did.running.Add(-1)
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
			did.done.Add(1)
		}
		return stats, err
	})

	working, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan error, 1)
	go func() {
		defer stop() // a worker never ends by itself: there might always be more
		watched <- watch(working, db, did, out)
	}()
	err = w.Run(working)
	return errors.Join(err, <-watched, context.Cause(ctx))
}
