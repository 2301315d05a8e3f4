package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

const busy = 5 // SQLITE_BUSY; the bits above say why

// startOver empties the database at path if it is quickstart's and nobody else's, and leaves any other file as it
// is. It reports whether there was something to empty. The file itself stays: between a look at a file and its
// removal another run could open it, while dropping tables happens under SQLite's own lock.
func startOver(ctx context.Context, path string) (emptied bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("it is no regular file")
	case err == nil && info.Size() == 0:
		return false, nil
	case err == nil:
		err = empty(ctx, path)
	}
	if locked, ok := errors.AsType[*sqlite.Error](err); ok && locked.Code()&0xff == busy {
		err = fmt.Errorf("it is in use, so stop the other run first: %w", err)
	}
	if err != nil {
		return false, fmt.Errorf("-fresh leaves %s as it is: %w", path, err)
	}
	return true, nil
}

func empty(ctx context.Context, path string) error {
	// Read-only first: even opening somebody else's database for writing could move its log into it.
	err := inFile(ctx, path, "mode=ro", func(tx *sql.Tx) error {
		_, err := own(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	// An exclusive handle is refused while another process, or another part of this one, has the file open.
	return inFile(ctx, path, "mode=rw&_txlock=exclusive&_pragma=locking_mode(exclusive)", func(tx *sql.Tx) error {
		entries, err := own(ctx, tx)
		for _, e := range entries {
			if err == nil {
				_, err = tx.ExecContext(ctx, "drop "+e.kind+` if exists "`+strings.ReplaceAll(e.name, `"`, `""`)+`"`)
			}
		}
		return err
	})
}

// entry is a table, view or trigger.
type entry struct{ kind, name string }

// own lists what is in the database, or says what is in it that is not quickstart's.
func own(ctx context.Context, tx *sql.Tx) ([]entry, error) {
	rows, err := tx.QueryContext(ctx, "select type, name from sqlite_schema where type <> 'index'")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err says it
	var entries []entry
	ours := false
	for rows.Next() {
		var e entry
		if err := rows.Scan(&e.kind, &e.name); err != nil {
			return nil, err
		}
		switch {
		case strings.HasPrefix(e.name, "sqlite_"): // SQLite's, and not to be dropped
			continue
		case e.name == resultsTable:
			ours = true
		case !strings.HasPrefix(e.name, "stint_"):
			return nil, fmt.Errorf("it holds the %s %q, which is not quickstart's", e.kind, e.name)
		}
		entries = append(entries, e)
	}
	if !ours && len(entries) > 0 {
		return nil, fmt.Errorf("it holds stint's jobs, but no table %s: they are somebody else's", resultsTable)
	}
	return entries, rows.Err()
}

// inFile calls f in a transaction on the database at path.
func inFile(ctx context.Context, path, settings string, f func(*sql.Tx) error) (err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: settings}
	connector, err := sqlite.NewConnector(uri.String())
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
