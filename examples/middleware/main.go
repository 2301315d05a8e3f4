// Command middleware shows the two places where a program sees its jobs run: middleware around each run, which here logs,
// and hooks, which are told afterwards what the store did, and here count for a page of metrics. It needs no library for
// either, runs for a second or two, and prints the metrics as a scrape would get them:
//
//	go run ./examples/middleware
//
// With OpenTelemetry take the package otel instead.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(ctx, memstore.New(memstore.Options{}), logger, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var resize = core.NewTask[string]("resize", core.JobOptions[string]{
	Queue: "pictures", MaxAttempts: 2, Backoff: core.Fixed(200 * time.Millisecond),
})

// handle does the work, knows nothing of logs and metrics, and fails where it is told to.
func handle(ctx context.Context, picture string) error {
	time.Sleep(50 * time.Millisecond)
	run, _ := core.Current(ctx)
	switch {
	case picture == "torn.png":
		return core.Unrecoverable(errors.New("not a picture"))
	case picture == "late.png" && run.Attempt == 1:
		return errors.New("disk is busy")
	case picture == "odd.png":
		panic("odd size")
	}
	return nil
}

func run(ctx context.Context, store core.Store, logger *slog.Logger, page io.Writer) error {
	metrics := newMetrics()
	worker, err := core.NewWorker(store, core.WorkerOptions{
		Concurrency: 4,
		Middleware:  []core.Middleware{logged(logger)},
		Hooks:       []core.Hooks{metrics.hooks()},
	})
	if err != nil {
		return err
	}
	resize.Handle(worker, handle)
	pictures := []string{"a.png", "b.png", "torn.png", "late.png", "odd.png", "c.png"}
	if _, err := resize.EnqueueMany(ctx, store, pictures); err != nil {
		return err
	}
	if _, err := resize.Enqueue(ctx, store, "tomorrow.png", core.Delay(24*time.Hour)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
	defer cancel()
	if err := worker.Run(ctx); err != nil { // it waits for the hooks, too
		return err
	}
	return metrics.write(context.WithoutCancel(ctx), page, store)
}
