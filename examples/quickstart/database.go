package main

import (
	"context"
	"errors"
	"strings"

	"github.com/stintmq/stint/core"
)

// database is a job store with room for the results beside the jobs.
type database interface {
	core.Store
	core.Inspector

	// Save stores a file's result and calls complete, in one transaction.
	Save(ctx context.Context, file string, s Stats, complete func(core.TxView) error) error
	// Totals adds up all results.
	Totals(ctx context.Context) (Totals, error)
	// Where says in words where the jobs are.
	Where() string
	// Owns says whether the database lives in that file.
	Owns(path string) bool
	Close() error
}

// Totals is the sum of all results.
type Totals struct{ Files, Size, Lines, Words int64 }

// open opens the store that -store names. One more kind of store is one more case.
func open(ctx context.Context, cfg config, out *screen) (database, error) {
	kind, path, _ := strings.Cut(cfg.store, ":")
	switch {
	case kind == "memory" && path == "":
		return newMemory(), nil
	case kind == "sqlite" && path != "":
		if cfg.fresh {
			emptied, err := startOver(ctx, path)
			if err != nil {
				return nil, err
			}
			if emptied {
				out.printf("starting over: emptied %s", printable(path))
			}
		}
		return openSQLite(ctx, path)
	case (kind == "postgres" || kind == "postgresql") && path != "": // both begin URLs
		if strings.HasPrefix(path, "//") {
			path = cfg.store // a URL
		}
		return openPostgres(ctx, path, cfg.fresh, out)
	}
	// Not what it is instead: there may be a password in it.
	return nil, usageError{errors.New("unknown -store: use memory, sqlite:PATH or postgres:DSN")}
}
