package main

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	bunstore "github.com/stintmq/stint/drivers/bun"
)

// ran makes the file of a run that is finished.
func ran(t *testing.T, path, root string) {
	t.Helper()
	require.NoError(t, run(t.Context(), config{store: "sqlite:" + path, folder: root, takers: 2}, quiet()))
}

// execute runs SQL on a database file with no help of the program's.
func execute(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.Exec(statements)
	require.NoError(t, err)
}

func TestFreshLeavesAloneWhatIsNotItsOwn(t *testing.T) {
	root := tree(t, 3)
	for _, c := range []struct {
		name string
		make func(path string)
		says string
	}{
		{"text", func(path string) {
			require.NoError(t, os.WriteFile(path, []byte("years of work\n"), 0o600))
		}, "not a database"},
		{"another program's database", func(path string) {
			execute(t, path, "create table users (name text); insert into users values ('ada')")
		}, `it holds the table "users"`},
		{"another program's database with a log", func(path string) {
			execute(t, path, "pragma journal_mode = wal; create table users (name text)")
		}, `it holds the table "users"`},
		{"another program's table beside its own", func(path string) {
			ran(t, path, root)
			execute(t, path, "create table users (name text)")
		}, `it holds the table "users"`},
		{"another program's view", func(path string) {
			ran(t, path, root)
			execute(t, path, "create view mine as select * from quickstart_results")
		}, `it holds the view "mine"`},
		{"another program's jobs", func(path string) {
			store, err := bunstore.OpenSQLite(path)
			require.NoError(t, err)
			require.NoError(t, store.Close())
		}, "no table quickstart_results"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "precious")
			c.make(path)
			before, err := os.ReadFile(path)
			require.NoError(t, err)

			code, output := runChild(t, "-fresh", "-store", "sqlite:"+path, root)
			require.Equal(t, exitFailed, code, output)
			require.Contains(t, output, "-fresh leaves "+path+" as it is: ")
			require.Contains(t, output, c.says)
			require.NotContains(t, output, "kept in")
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
	t.Run("empty folder", func(t *testing.T) {
		path := t.TempDir()
		code, output := runChild(t, "-fresh", "-store", "sqlite:"+path, root)
		require.Equal(t, exitFailed, code, output)
		require.Contains(t, output, "no regular file")
		require.DirExists(t, path)
	})
}

func TestFreshRefusesAFileInUse(t *testing.T) {
	root := tree(t, 20)
	path := filepath.Join(t.TempDir(), "q.db")
	ran(t, path, root)
	db, err := open(t.Context(), config{store: "sqlite:" + path}, quiet())
	require.NoError(t, err)
	code, output := runChild(t, "-fresh", "-store", "sqlite:"+path, root)
	require.Equal(t, exitFailed, code, output)
	require.Contains(t, output, "it is in use, so stop the other run first")
	require.NoError(t, db.Close())
	requireOnce(t, "sqlite:"+path, root)
}

func TestFreshStartsOver(t *testing.T) {
	first, second := tree(t, files(600)), tree(t, 7)
	for _, c := range []struct {
		name    string
		make    func(path string)
		emptied bool
	}{
		{"finished", func(path string) { ran(t, path, first) }, true},
		{"killed", func(path string) {
			require.Equal(t, -1, until(t, "done", 20, (*os.Process).Kill, "-store", "sqlite:"+path, first))
		}, true},
		{"no tables", func(path string) { execute(t, path, "create table t (x); drop table t") }, true},
		{"empty file", func(path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) }, false},
		{"no file", func(string) {}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "odd ?name#of%41+.db")
			c.make(path)
			code, output := runChild(t, "-fresh", "-store", "sqlite:"+path, second)
			require.Zero(t, code, output)
			if c.emptied {
				require.Contains(t, output, "starting over: emptied "+path+"\n")
			} else {
				require.NotContains(t, output, "starting over")
			}
			requireOnce(t, "sqlite:"+path, second)
		})
	}
}
