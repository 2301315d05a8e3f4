package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stintmq/stint/core"
)

const childEnv = "QUICKSTART_TEST_CHILD"

// TestMain makes the test binary the program itself when a test starts it as a child.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	cfg, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		err = launch(cfg, chatty(os.Stdout))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(exitCode(err))
}

// chatty is a screen that shows every step, for parents that wait for one.
func chatty(f *os.File) *screen {
	return &screen{w: f, look: 20 * time.Millisecond}
}

// child is this binary as the program. It is killed with the test at the latest.
func child(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	return cmd
}

// runChild runs the program to its end and returns its exit code and what it printed.
func runChild(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	cmd := child(t, args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// files is n, or fewer under the race detector, which makes this SQLite (C turned into Go) thirty times slower.
func files(n int) int {
	info, _ := debug.ReadBuildInfo()
	if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return n / 4
	}
	return n
}

// tree makes a folder of n small files in some folders.
func tree(t *testing.T, n int) string {
	t.Helper()
	root := folder(t)
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("d%02d", i%20))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		text := strings.Repeat(fmt.Sprintf("file %d\tsays  hello\n", i), i%7) + "no newline"[:i%10]
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%05d.txt", i)), []byte(text), 0o644))
	}
	return root
}

// folder is a fresh one, by the name that the program knows it by.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := resolve(t.TempDir())
	require.NoError(t, err)
	return dir
}

// plainWalk measures a folder without a queue, and in another way.
func plainWalk(t *testing.T, root string) map[string]Stats {
	t.Helper()
	want := make(map[string]Stats)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		sum := sha256.Sum256(data)
		want[path] = Stats{
			Size: int64(len(data)), Lines: int64(bytes.Count(data, []byte("\n"))), Words: int64(len(bytes.Fields(data))),
			SHA256: hex.EncodeToString(sum[:]),
		}
		return err
	}))
	return want
}

// byKey renames files to the keys of their jobs.
func byKey(t *testing.T, root string, files map[string]Stats) map[string]Stats {
	t.Helper()
	keyed := make(map[string]Stats, len(files))
	for path, s := range files {
		within, err := filepath.Rel(root, path)
		require.NoError(t, err)
		keyed[File{Folder: []byte(root), Path: []byte(within)}.key()] = s
	}
	require.Len(t, keyed, len(files), "no two files share a key")
	return keyed
}

// results are all rows that a database has.
func results(t *testing.T, db database) map[string]Stats {
	t.Helper()
	got := make(map[string]Stats)
	switch db := db.(type) {
	case *memory:
		db.mu.Lock()
		defer db.mu.Unlock()
		maps.Copy(got, db.results)
	case *sqliteFile:
		var rows []result
		require.NoError(t, db.DB().NewSelect().Model(&rows).Scan(context.Background()))
		for _, r := range rows {
			got[r.File] = r.Stats
		}
		require.Len(t, got, len(rows), "no file has two rows")
	case *postgresServer:
		rows, err := db.pool.Query(context.Background(), "select * from "+db.results())
		require.NoError(t, err)
		_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (file string, err error) {
			var s Stats
			err = row.Scan(&file, &s.Size, &s.Lines, &s.Words, &s.SHA256)
			got[file] = s
			return file, err
		})
		require.NoError(t, err)
	default:
		t.Fatalf("unknown database %T", db)
	}
	return got
}

// jobs are all jobs that a database has.
func jobs(t *testing.T, db database) []core.Record {
	t.Helper()
	var all []core.Record
	q := core.Query{Limit: core.MaxListLimit}
	for {
		page, err := db.List(t.Context(), q)
		require.NoError(t, err)
		all = append(all, page.Jobs...)
		if q.Cursor = page.Cursor; q.Cursor == "" {
			return all
		}
	}
}

// requireOnce holds a finished run to what the program promises: a row for every file and the right one, and
// for every job one run that completed. It returns how many runs a kill cut short.
func requireOnce(t *testing.T, store, root string) (stalled int) {
	t.Helper()
	db, err := open(t.Context(), config{store: store}, quiet())
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()

	want := byKey(t, root, plainWalk(t, root))
	require.Equal(t, want, results(t, db))
	all := jobs(t, db)
	require.Len(t, all, len(want))
	for _, job := range all {
		require.Equal(t, core.StateCompleted, job.State, job.ID)
		ledger, err := db.Attempts(t.Context(), job.ID)
		require.NoError(t, err)
		completed := 0
		for _, a := range ledger {
			switch a.Outcome {
			case core.OutcomeComplete:
				completed++
			case core.OutcomeStalled:
				stalled++
			default:
				t.Errorf("%s: unexpected outcome %s", job.ID, a.Outcome)
			}
		}
		require.Equal(t, 1, completed, job.ID)
	}
	return stalled
}
