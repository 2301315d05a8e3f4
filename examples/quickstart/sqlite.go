package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
)

// sqlite keeps jobs and results in one file.
type sqlite struct {
	*bunstore.Store
	path string
}

// result is a row beside the jobs. No file can have two: the second insert fails, and its transaction with it.
type result struct {
	bun.BaseModel `bun:"table:quickstart_results"`

	File string `bun:",pk"`
	Stats
}

func openSQLite(ctx context.Context, path string, fresh bool) (*sqlite, error) {
	if fresh {
		// The log first: SQLite would play one that was left behind into the new file.
		for _, suffix := range []string{"-wal", "-shm", ""} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("start over: %w", err)
			}
		}
	}
	store, err := bunstore.OpenSQLite(path)
	if err != nil {
		return nil, err
	}
	if path, err = resolveFile(path); err == nil {
		_, err = store.DB().NewCreateTable().Model((*result)(nil)).IfNotExists().Exec(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &sqlite{store, path}, nil
}

func resolveFile(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func (s *sqlite) Save(ctx context.Context, file string, st Stats, complete func(core.TxView) error) error {
	return s.DB().RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewInsert().Model(&result{File: file, Stats: st}).Exec(ctx); err != nil {
			return err
		}
		return complete(s.WithTx(tx))
	})
}

func (s *sqlite) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	err := s.DB().NewSelect().Model((*result)(nil)).
		ColumnExpr("count(*), coalesce(sum(size), 0), coalesce(sum(lines), 0), coalesce(sum(words), 0)").
		Scan(ctx, &t.Files, &t.Size, &t.Lines, &t.Words)
	return t, err
}

// Owns matters when the file is in the folder: closing any handle on it would drop this process' locks on it.
func (s *sqlite) Owns(path string) bool {
	suffix, ours := strings.CutPrefix(path, s.path)
	return ours && (suffix == "" || suffix == "-wal" || suffix == "-shm")
}
