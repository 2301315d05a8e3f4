// Command customdriver runs a worker on a driver of its own making, the file store in ./filestore. Five letters are
// to be sent. Pull the plug in the middle, then start it again:
//
//	go run ./examples/customdriver -fresh -crash
//	go run ./examples/customdriver
//
// The letter that was being sent when the power went is sent again, the ones before it are not. -file says where the
// letters wait, and -fresh forgets those that an earlier run left there, so that all can be sent once more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/examples/customdriver/filestore"
)

// A letter's key makes enqueueing it twice harmless: the second time it is a duplicate.
var letters = core.NewTask("letter", core.JobOptions[string]{Key: func(to string) string { return to }})

const (
	postage = 400 * time.Millisecond // the time that a letter takes
	lease   = time.Second            // how long the next start waits for a sender that is gone, about
	quiet   = 5 * time.Second        // without a letter: longer than it takes to take one back (Q7)
)

func main() {
	path := flag.String("file", filepath.Join(os.TempDir(), "stint-letters.json"), "where the letters wait")
	crash := flag.Bool("crash", false, "pull the plug while the third letter is being sent")
	fresh := flag.Bool("fresh", false, "start over: first remove the file, if it is this driver's and not in use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	plug := func() {}
	if *crash {
		plug = func() { fmt.Println("power cut"); os.Exit(1) }
	}
	var err error
	if *fresh {
		err = startOver(os.Stdout, *path)
	}
	if err == nil {
		err = run(ctx, os.Stdout, *path, plug)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startOver removes the file at path. Opening it first proves that it is a queue of this driver, and takes the lock
// that every other process would need to use it.
func startOver(out io.Writer, path string) (err error) {
	store, err := filestore.Open(path, filestore.Options{})
	if err != nil {
		return fmt.Errorf("-fresh leaves %s as it is: %w", path, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	err = os.Remove(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		_, err = fmt.Fprintf(out, "starting over: removed %s\n", path)
	}
	return err
}

// run sends the letters that wait in the file at path and returns when it has been quiet for a while. plug is called
// while the third letter is being sent.
func run(ctx context.Context, out io.Writer, path string, plug func()) (err error) {
	store, err := filestore.Open(path, filestore.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if e := store.Close(); err == nil {
			err = e
		}
	}()
	if err := enqueue(ctx, out, store, path); err != nil {
		return err
	}

	worker, err := core.NewWorker(store, core.WorkerOptions{Lease: lease, StalledInterval: lease / 2})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	idle := time.AfterFunc(quiet, stop)
	defer idle.Stop()
	sent := 0
	letters.Handle(worker, func(ctx context.Context, to string) error { // one at a time: Concurrency is 1
		idle.Stop()
		defer idle.Reset(quiet)
		return send(ctx, out, to, func() {
			if sent++; sent == 3 {
				plug()
			}
		})
	})
	if err := worker.Run(ctx); err != nil {
		return err
	}
	hint := ""
	if sent == 0 {
		hint = "; -fresh starts over"
	}
	_, err = fmt.Fprintf(out, "%d sent, and no more for a while%s\n", sent, hint)
	return err
}

func enqueue(ctx context.Context, out io.Writer, to core.Enqueuer, path string) error {
	res, err := letters.EnqueueMany(ctx, to, []string{"Ada", "Barbara", "Edsger", "Grace", "Ken"})
	if err != nil {
		return err
	}
	fresh := 0
	for _, r := range res {
		if r.Err != nil {
			return r.Err
		}
		if !r.Duplicate {
			fresh++
		}
	}
	_, err = fmt.Fprintf(out, "%d new letters, %d known ones in %s\n", fresh, len(res)-fresh, path)
	return err
}

// send pretends to.
func send(ctx context.Context, out io.Writer, to string, midway func()) error {
	again := ""
	if r, ok := core.Current(ctx); ok && r.Fence > 1 {
		again = fmt.Sprintf(" (start %d)", r.Fence)
	}
	_, _ = fmt.Fprintf(out, "  to %s%s ... ", to, again)
	select {
	case <-time.After(postage):
	case <-ctx.Done():
		_, _ = fmt.Fprintln(out, "stopped")
		return ctx.Err()
	}
	midway()
	_, _ = fmt.Fprintln(out, "sent")
	return nil
}
