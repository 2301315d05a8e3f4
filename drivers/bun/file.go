package bunstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/litesql"
	"github.com/stintmq/stint/internal/sqlexec"
	"github.com/stintmq/stint/internal/stdsql"
)

// FileError: the file can't be used. Where a look at it was enough to tell, nothing was written to it.
type FileError struct {
	Path, Reason string
	Err          error // SQLite's, if it said so
}

func (e *FileError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("stint: cannot use %q: %s: %v", e.Path, e.Reason, e.Err)
	}
	return fmt.Sprintf("stint: cannot use %q: %s", e.Path, e.Reason)
}

// Unwrap returns SQLite's error.
func (e *FileError) Unwrap() error { return e.Err }

// magic is how a SQLite database begins.
var magic = []byte("SQLite format 3\x00")

// inspect looks at a file before anything is written to it. A file that is not there, or empty, is fine.
func inspect(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("stint: open %q: %w", path, err)
	case !info.Mode().IsRegular():
		return &FileError{Path: path, Reason: "it is no regular file"}
	case info.Size() == 0:
		return nil
	}
	if err := checkMagic(path); err != nil {
		return err
	}
	db, err := handle(path, 1, "mode=ro", "_pragma=query_only(1)")
	if err != nil {
		return err
	}
	err = inspectSchema(ctx, db)
	if litesql.Unreadable(err) {
		err = &FileError{Path: path, Reason: "it is damaged", Err: err}
	} else if err != nil {
		err = fmt.Errorf("stint: open %q: %w", path, err)
	}
	return errors.Join(err, db.Close())
}

func checkMagic(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("stint: open %q: %w", path, err)
	}
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	err = errors.Join(err, f.Close())
	if err == nil && bytes.Equal(head, magic) {
		return nil
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("stint: open %q: %w", path, err)
	}
	return &FileError{Path: path, Reason: "it is no SQLite database"}
}

// inspectSchema reads the schema's version and, where there is one, a row of each table: cheap at any size, and
// enough to meet a file that was cut short or overwritten at its beginning.
func inspectSchema(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	x := stdsql.In(tx)
	err = litesql.CheckSchema(ctx, x)
	var schema *core.SchemaError
	if errors.As(err, &schema) && schema.Have < schema.Want {
		return nil // to be migrated
	}
	if err != nil {
		return err
	}
	return litesql.Touch(ctx, x)
}

// migrate brings the schema up to date in one transaction.
func migrate(ctx context.Context, db *sql.DB) error {
	return litesql.Fault(stdsql.Immediate(ctx, db, litesql.CommitFault, func(x sqlexec.Executor) error {
		return litesql.Migrate(ctx, x)
	}))
}
