package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as shells say it
)

// defaultTakers are more than there are processors: most of them wait for their turn to write, and the more of
// them wait, the more jobs the worker's own calls claim and settle at once.
const defaultTakers = 16

// config is what the command line asks for.
type config struct {
	folder string // absolute, without symbolic links
	store  string
	fresh  bool
	takers int
	log    *slog.Logger // nil: none
}

func main() {
	cfg, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = launch(cfg, newScreen(os.Stdout))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
	}
	os.Exit(exitCode(err))
}

// launch runs the program until it is done or told to stop.
func launch(cfg config, out *screen) error {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	context.AfterFunc(ctx, release) // a second signal ends the process at once; that loses nothing either
	err := run(ctx, cfg, out)
	out.end()
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("%w; start it again and it goes on from here (%w)", errInterrupted, err)
	}
	return err
}

var errInterrupted = errors.New("interrupted")

// usageError is a command line that makes no sense.
type usageError struct{ error }

func (e usageError) Error() string { return e.error.Error() + " (-h lists the flags)" }
func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &usage):
		return exitUsage
	default:
		return exitFailed
	}
}

func parse(args []string, usage io.Writer) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are main's to print, once
	flags.StringVar(&cfg.store, "store", "sqlite:stint-quickstart.db", "where the jobs live: memory, sqlite:PATH or postgres:DSN")
	flags.IntVar(&cfg.takers, "takers", defaultTakers, "files measured at once")
	flags.BoolVar(&cfg.fresh, "fresh", false, "start over: first empty the file or schema of -store, if it is quickstart's")
	verbose := flags.Bool("v", false, "log what the worker does to stderr")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprintln(usage, "usage: quickstart [flags] [folder]\n\nMeasures every file in folder (default: the source of Go).")
		flags.SetOutput(usage)
		flags.PrintDefaults()
		return cfg, err
	case err != nil:
		return cfg, usageError{err}
	case flags.NArg() > 1:
		return cfg, usageError{fmt.Errorf("one folder at most, and flags before it, but got %d arguments", flags.NArg())}
	case cfg.takers < 1:
		return cfg, usageError{fmt.Errorf("-takers must be at least 1, not %d", cfg.takers)}
	}
	if *verbose {
		cfg.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	folder := flags.Arg(0)
	if folder == "" {
		if folder, err = goSource(); err != nil {
			return cfg, err
		}
	}
	cfg.folder, err = resolve(folder)
	return cfg, err
}

// goSource is a folder that everybody who can run this has: about ten thousand files.
func goSource() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", usageError{fmt.Errorf("name a folder: the default is Go's source, and go env GOROOT says: %w", err)}
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src"), nil
}

func resolve(folder string) (string, error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", fmt.Errorf("folder %q: %w", folder, err)
	}
	if info, err := os.Stat(abs); err != nil {
		return "", fmt.Errorf("folder %q: %w", folder, err)
	} else if !info.IsDir() {
		return "", fmt.Errorf("%q is no folder", folder)
	}
	return abs, nil
}
