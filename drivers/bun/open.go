package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/litesql"
)

// busyTimeout is how long a call waits for the write lock, or for the one writing connection, before it says
// that the store is unavailable.
const busyTimeout = 5 * time.Second

const maxReaders = 4

// OpenSQLite opens the database in the file path, making it if it is not there (its folder must be), and brings
// its schema up to date. The file may hold other tables. It is switched to write-ahead logging, which takes two
// files more beside it while it is open; a file that is damaged, is no SQLite database or comes from a newer
// release (*FileError, *core.SchemaError) is not touched. Jobs in memory are memstore's business: "" and ":memory:"
// are an InvalidError.
func OpenSQLite(path string, opts ...Options) (*Store, error) {
	o, err := once(opts)
	if err != nil {
		return nil, err
	}
	if err := o.forLite(); err != nil {
		return nil, err
	}
	path, err = checkPath(path)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := inspect(ctx, path); err != nil {
		return nil, err
	}
	s, err := open(ctx, path, o)
	switch {
	case litesql.Unreadable(err):
		return nil, unreadable(path, err)
	case err != nil:
		return nil, err
	}
	return onLite(s, bun.NewDB(s.writer, sqlitedialect.New())), nil
}

func open(ctx context.Context, path string, o Options) (_ *lite, err error) {
	synchronous := "FULL"
	if o.Synchronous != "" {
		synchronous = o.Synchronous
	}
	writer, err := handle(path, 1, "_txlock=immediate", "_pragma=foreign_keys(1)", "_pragma=synchronous("+synchronous+")")
	if err != nil {
		return nil, err
	}
	readers, err := handle(path, maxReaders, "mode=ro", "_pragma=query_only(1)")
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	listener, err := handle(path, 1, "mode=ro", "_pragma=query_only(1)")
	if err != nil {
		return nil, errors.Join(err, writer.Close(), readers.Close())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, writer.Close(), readers.Close(), listener.Close())
		}
	}()
	if err := useWAL(ctx, writer); err != nil {
		return nil, err
	}
	if err := migrate(ctx, writer); err != nil {
		return nil, err
	}
	s := &lite{writer: writer, readers: readers, listener: listener, owned: true, opts: o, busy: busyTimeout}
	return s.start(ctx)
}

// checkPath refuses what is no path of a file, and makes it absolute: SQLite opens its connections later, when
// the working directory may be another.
func checkPath(path string) (string, error) {
	if path == "" || path == ":memory:" || strings.HasPrefix(path, "file:") {
		return "", &core.InvalidError{Field: "Path", Reason: "must be that of a file; for jobs in memory use memstore"}
	}
	if strings.IndexByte(path, 0) >= 0 {
		return "", &core.InvalidError{Field: "Path", Reason: "contains NUL"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("stint: open %q: %w", path, err)
	}
	dir, err := os.Stat(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("stint: open %q: its folder: %w", path, err)
	}
	if !dir.IsDir() {
		return "", &FileError{Path: abs, Reason: "its folder is a file"}
	}
	return abs, nil
}

// handle makes a pool of connections to the file. Settings are in the data source name: so every connection has
// them, those that the pool opens later included.
func handle(path string, connections int, settings ...string) (*sql.DB, error) {
	settings = append([]string{fmt.Sprintf("_pragma=busy_timeout(%d)", busyTimeout.Milliseconds())}, settings...)
	connector, err := sqlite.NewConnector("file:" + escaped(path) + "?" + strings.Join(settings, "&"))
	if err != nil {
		return nil, fmt.Errorf("stint: open %q: %w", path, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(0)
	db.SetConnMaxLifetime(0)
	return db, nil
}

// escaped is the path in a URI: with it, spaces, '?', '#' and '%' in a file's name are just that.
func escaped(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a volume's name
	}
	return strings.ReplaceAll((&url.URL{Path: path}).EscapedPath(), "+", "%2B")
}

// useWAL switches the file to write-ahead logging, which it then keeps. The switch needs the file to itself for
// a moment and does not wait for it, so when many open a new file at once it is tried again.
func useWAL(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, 2*busyTimeout)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		var mode string
		err := db.QueryRowContext(ctx, "pragma journal_mode = wal").Scan(&mode)
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("%w: SQLite keeps journal mode %q here and not WAL", core.ErrUnavailable, mode)
		case !litesql.Busy(err):
			return litesql.Fault(err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return litesql.Fault(err)
		}
	}
}
