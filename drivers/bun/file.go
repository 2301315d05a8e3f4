package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

// inspect looks at a file before anything is written to it. A file that is not there, or empty, is fine.
//
// It looks through SQLite's eyes only. SQLite's locks are the process's (POSIX): if any descriptor of the file is
// closed that SQLite does not know of, the system drops those of all stores that this process has open on it, and
// another process that closes the file may take itself for the last one and delete the log under them.
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
	db, err := handle(path, 1, "mode=ro", "_pragma=query_only(1)")
	if err != nil {
		return err
	}
	err = inspectSchema(ctx, db)
	if litesql.Unreadable(err) {
		err = unreadable(path, err)
	} else if err != nil {
		err = fmt.Errorf("stint: open %q: %w", path, err)
	}
	return errors.Join(err, db.Close())
}

func unreadable(path string, err error) error {
	return &FileError{Path: path, Reason: "it is damaged or no SQLite database", Err: err}
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

// migrate brings the schema up to date in one transaction. Where it is already, and nothing is to be tidied up, it
// only reads: a process must be able to start while another holds the write lock.
func migrate(ctx context.Context, db *sql.DB) error {
	ready, tidy, err := look(ctx, db)
	if err != nil {
		return litesql.Fault(err)
	}
	if ready && tidy {
		return nil
	}
	err = stdsql.Immediate(ctx, db, litesql.CommitFault, func(x sqlexec.Executor) error {
		return litesql.Migrate(ctx, x)
	})
	if ready && litesql.Busy(err) {
		return nil // it works as it is
	}
	return litesql.Fault(err)
}

// look reports whether the schema can be used as it is, and whether it is free of what Migrate would remove.
func look(ctx context.Context, db *sql.DB) (ready, tidy bool, err error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return false, false, err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	x := stdsql.In(tx)
	err = litesql.CheckSchema(ctx, x)
	var schema *core.SchemaError
	if errors.As(err, &schema) && schema.Have < schema.Want {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	tidy, err = litesql.Tidy(ctx, x)
	return true, tidy, err
}
