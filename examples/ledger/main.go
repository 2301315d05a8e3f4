// Ledger is a small bank on the journal: it imports a file of transfers, posts a webhook for each one that went through,
// and keeps a table of balances beside.
//
//	go run ./examples/ledger [flags] [transfers.csv]
//	go run ./examples/ledger -store 'postgres://user@host/database?sslmode=disable'
//
// Kill it with -9 at any moment (the process that its first line names) and start it again, or start two at once: each
// transfer is recorded once, each webhook counted once, and the balances are those of a run that nobody disturbed. It
// checks that at the end, against the events themselves. To start over, remove the file, or drop the schema "ledger",
// or whichever search_path names in the connection string.
//
// It exits with 0 when all is imported and exact, 1 on errors and when something is not exact, 2 on bad arguments, and
// 130 when SIGINT or SIGTERM stopped it before the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as shells say it
)

var errInterrupted = errors.New("interrupted; start it again and it goes on from here")

// usageError is a command line that makes no sense.
type usageError struct{ error }

// config is what the command line asks for.
type config struct {
	store, file string
	generate    int
	batch       int           // transfers per transaction
	look        time.Duration // between looks at the progress
	lease       time.Duration // of webhooks: how long after a kill those that were under way are taken up again
	log         *slog.Logger  // nil: none
}

func main() {
	cfg, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		err = launch(cfg, os.Stdout)
	}
	os.Exit(exitCode(err, os.Stderr))
}

func parse(args []string, usage io.Writer) (config, error) {
	cfg := config{look: time.Second, lease: 5 * time.Second} // 30 s, the default, suits networks that fail
	flags := flag.NewFlagSet("ledger", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are exitCode's to print, once
	flags.StringVar(&cfg.store, "store", "sqlite:stint-ledger.db", "where the bank is: sqlite:PATH or postgres:DSN")
	flags.IntVar(&cfg.generate, "generate", 0, "print a file of so many transfers, and do nothing else")
	flags.IntVar(&cfg.batch, "batch", 200, "transfers in a transaction: fewer are slower, and more keep others waiting")
	verbose := flags.Bool("v", false, "log what journal and worker do to stderr")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprintln(usage, "usage: ledger [flags] [transfers.csv]")
		flags.SetOutput(usage)
		flags.PrintDefaults()
		return cfg, err
	case err != nil:
		return cfg, usageError{err}
	case flags.NArg() > 1 || cfg.generate < 0:
		return cfg, usageError{errors.New("one file at most, and flags before it")}
	case cfg.batch < 1 || cfg.batch > journal.MaxEvents/2: // one account may have all of them
		return cfg, usageError{fmt.Errorf("-batch must be 1 to %d", journal.MaxEvents/2)}
	}
	cfg.file = flags.Arg(0)
	if *verbose {
		cfg.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return cfg, nil
}

// exitCode says what went wrong, in words and as a number.
func exitCode(err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	_, _ = fmt.Fprintln(stderr, "ledger:", err)
	if _, wrong := errors.AsType[usageError](err); wrong {
		return exitUsage
	}
	if errors.Is(err, errInterrupted) {
		return exitInterrupted
	}
	return exitFailed
}

// launch runs the program until it is done or told to stop.
func launch(cfg config, out io.Writer) error {
	if cfg.generate > 0 {
		return generate(out, cfg.generate)
	}
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	context.AfterFunc(ctx, release) // a second signal ends the process at once; that loses nothing either
	err := run(ctx, cfg, out)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", errInterrupted, err)
	}
	return err
}

// run is the whole program: open the bank, import while a worker reacts, wait for that to be done, check everything.
func run(ctx context.Context, cfg config, out io.Writer) (err error) {
	in, err := openFile(cfg.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	db, where, err := open(ctx, cfg.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	shop, err := openShop(db.DB())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.Close()) }()
	b, err := newBank(db.Store, shop, cfg.log)
	if err != nil {
		return err
	}
	printf(out, "Process %d. The bank is in %s", os.Getpid(), where) // whom to kill: go run is another process

	w, err := b.Worker(journal.WorkerOptions{Core: core.WorkerOptions{
		Concurrency: callers, Lease: cfg.lease, StalledInterval: cfg.lease / 2, Logger: cfg.log,
	}})
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	var crew sync.WaitGroup
	var failed error
	crew.Go(func() { defer stop(); failed = w.Run(working) })
	crew.Go(func() { b.watch(working, cfg.look, out) })
	began := time.Now()
	did, err := b.load(working, in, cfg.batch)
	took := time.Since(began)
	if err == nil {
		err = b.WaitIdle(working)
	}
	stop()
	crew.Wait()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	did.print(out, took, time.Since(began))
	return b.audit(ctx, out)
}

// callers is how many webhooks are under way at once: they wait most of the time.
const callers = 32

func printf(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format+"\n", args...) // a reader that is gone is no reason to stop
}
