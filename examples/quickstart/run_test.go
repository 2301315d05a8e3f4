package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

func quiet() *screen { return &screen{w: io.Discard, look: 10 * time.Millisecond} }

// eachStore runs a test on every kind of store. cfg lacks the folder.
func eachStore(t *testing.T, test func(t *testing.T, cfg config)) {
	t.Run("memory", func(t *testing.T) { test(t, config{store: "memory", takers: 4}) })
	t.Run("sqlite", func(t *testing.T) {
		test(t, config{store: "sqlite:" + filepath.Join(t.TempDir(), "q.db"), takers: 4})
	})
	t.Run("postgres", func(t *testing.T) { test(t, config{store: postgresStore(t), takers: 4}) })
}

// oddNames are names that job ids, terminals or JSON could stumble over.
var oddNames = []string{
	"with space.txt", "new\nline", "tab\tand\x1b[31mred", "quote'\"`", "ünï", "not utf-8 \xff\xfe", "#1", "@", "a:b",
	"-fresh", strings.Repeat("deep/", 60) + "path longer than a key",
}

func oddTree(t *testing.T) string {
	t.Helper()
	root := tree(t, files(300))
	for i, name := range oddNames {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if err := os.WriteFile(path, bytes.Repeat([]byte("odd name\n"), i), 0o644); err != nil {
			t.Logf("this file system refuses %q: %v", name, err)
		}
	}
	// None of these is a regular file.
	require.NoError(t, os.Symlink(filepath.Join(root, "ünï"), filepath.Join(root, "link to a file")))
	require.NoError(t, os.Symlink(root, filepath.Join(root, "link to a folder")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(root, "link to nothing")))
	return root
}

func TestCountsWhatAPlainWalkCounts(t *testing.T) {
	eachStore(t, func(t *testing.T, cfg config) {
		cfg.folder = oddTree(t)
		gone := filepath.Join(cfg.folder, "d01", "gone.txt")
		require.NoError(t, os.WriteFile(gone, []byte("here today"), 0o644))

		var text bytes.Buffer
		out := quiet()
		out.w = &text
		db, err := open(t.Context(), cfg, out)
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()

		require.NoError(t, enqueue(t.Context(), db, cfg, out))
		require.NoError(t, os.Remove(gone)) // vanishes between the walk and its job
		want := byKey(t, cfg.folder, plainWalk(t, cfg.folder))
		did := &tally{start: time.Now()}
		require.NoError(t, work(t.Context(), db, cfg, out, did))
		require.EqualValues(t, len(want), did.done.Load())
		require.Equal(t, want, results(t, db))
		require.NoError(t, report(t.Context(), db, out, did))

		for _, job := range jobs(t, db) {
			if job.ID == "measure-file:d01/gone.txt" {
				require.Equal(t, core.StateFailed, job.State)
				require.Equal(t, 1, job.Attempts, "trying again would not bring it back")
				continue
			}
			require.Equal(t, core.StateCompleted, job.State, job.ID)
		}
		require.Contains(t, text.String(), "failed: d01/gone.txt: no such file or directory\n")
		require.NotContains(t, text.String(), "\x1b", "names are not printed raw")
	})
}

func TestEnqueueingAgainAddsNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, cfg config) {
		cfg.folder = tree(t, 50)
		db, err := open(t.Context(), cfg, quiet())
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		for i := range 3 {
			require.NoError(t, enqueue(t.Context(), db, cfg, quiet()))
			require.Len(t, jobs(t, db), 50)
			did := &tally{start: time.Now()}
			require.NoError(t, work(t.Context(), db, cfg, quiet(), did))
			require.EqualValues(t, map[int]int{0: 50}[i], did.done.Load(), "run %d", i)
		}
	})
}

func TestReadErrorsAreTriedAgain(t *testing.T) {
	root := folder(t)
	flaky := filepath.Join(root, "flaky")
	require.NoError(t, os.WriteFile(flaky, nil, 0o644))
	synctest.Test(t, func(t *testing.T) {
		cfg := config{store: "memory", takers: 2, folder: root}
		db, err := open(t.Context(), cfg, quiet())
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		require.NoError(t, enqueue(t.Context(), db, cfg, quiet()))
		require.NoError(t, os.Remove(flaky))
		require.NoError(t, os.Mkdir(flaky, 0o755)) // can be opened, but not read

		did := &tally{start: time.Now()}
		require.NoError(t, work(t.Context(), db, cfg, quiet(), did))
		require.Zero(t, did.done.Load())
		job := jobs(t, db)[0]
		require.Equal(t, core.StateFailed, job.State)
		require.Equal(t, 3, job.Attempts)
		require.Equal(t, "is a directory", job.Failure.Message)
	})
}

func TestUnreadableFolderIsReportedAndPassed(t *testing.T) {
	root := folder(t)
	for _, name := range []string{"a", "b/lost", "c"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), nil, 0o644))
	}
	var text bytes.Buffer
	var found []string
	skip := func(path string) bool {
		if filepath.Base(path) == "a" {
			require.NoError(t, os.RemoveAll(filepath.Join(root, "b"))) // was listed, cannot be read
		}
		return false
	}
	for f := range walk(root, skip, &screen{w: &text}) {
		found = append(found, string(f.Path))
	}
	require.Equal(t, []string{"a", "c"}, found)
	require.Contains(t, text.String(), "left out: ")
	require.Contains(t, text.String(), filepath.Join(root, "b"))
}

func TestItsOwnDatabaseIsLeftOut(t *testing.T) {
	root := tree(t, 20)
	want := byKey(t, root, plainWalk(t, root))
	cfg := config{store: "sqlite:" + filepath.Join(root, "q.db"), folder: root, takers: 2}
	require.NoError(t, run(t.Context(), cfg, quiet()))
	db, err := open(t.Context(), cfg, quiet())
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.Equal(t, want, results(t, db))
}

func TestOneFolderPerStore(t *testing.T) {
	cfg := config{store: "sqlite:" + filepath.Join(t.TempDir(), "q.db"), folder: tree(t, 3), takers: 1}
	require.NoError(t, run(t.Context(), cfg, quiet()))
	first := cfg.folder
	cfg.folder = tree(t, 5)
	require.ErrorContains(t, run(t.Context(), cfg, quiet()), "holds the files of "+first)
	cfg.fresh = true
	require.NoError(t, run(t.Context(), cfg, quiet()))
	requireOnce(t, cfg.store, cfg.folder)
}
