package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/uptrace/bun"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
)

// sqliteFile keeps jobs and results in one file.
type sqliteFile struct {
	*bunstore.Store
	path string
}

const resultsTable = "quickstart_results"

// result is a row beside the jobs. No file can have two: the second insert fails, and its transaction with it.
type result struct {
	bun.BaseModel `bun:"table:quickstart_results"`

	File string `bun:",pk"`
	Stats
}

func openSQLite(ctx context.Context, path string) (*sqliteFile, error) {
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
	return &sqliteFile{store, path}, nil
}

func resolveFile(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func (s *sqliteFile) Save(ctx context.Context, file string, st Stats, complete func(core.TxView) error) error {
	return s.DB().RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewInsert().Model(&result{File: file, Stats: st}).Exec(ctx); err != nil {
			return err
		}
		return complete(s.WithTx(tx))
	})
}

func (s *sqliteFile) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	err := s.DB().NewSelect().Model((*result)(nil)).
		ColumnExpr("count(*), coalesce(sum(size), 0), coalesce(sum(lines), 0), coalesce(sum(words), 0)").
		Scan(ctx, &t.Files, &t.Size, &t.Lines, &t.Words)
	return t, err
}

func (s *sqliteFile) Where() string { return "Jobs and results are kept in " + printable(s.path) }

// Owns matters when the file is in the folder: closing any handle on it would drop this process' locks on it.
func (s *sqliteFile) Owns(path string) bool {
	suffix, ours := strings.CutPrefix(path, s.path)
	return ours && (suffix == "" || suffix == "-wal" || suffix == "-shm")
}
