package bunstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
)

func TestOpenTakesAnyPath(t *testing.T) {
	for _, name := range []string{"plain.db", "with space.db", "what?.db", "a#b.db", "50%.db", "%41.db", "a+b&c=d.db", "ünï'\";.db"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			s, err := bunstore.OpenSQLite(path)
			require.NoError(t, err)
			enqueue(t, s, request("job"))
			require.NoError(t, s.Close())
			_, err = os.Stat(path)
			require.NoError(t, err, "the file has the name that was asked for")

			again := openAt(t, path)
			require.Len(t, claim(t, again, 10, "job").Jobs, 1)
		})
	}
}

func TestOpenRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	s := openAt(t, "jobs.db")
	t.Chdir(t.TempDir()) // connections that are opened later must find the same file
	enqueue(t, s, request("job"))
	_, err := s.Counts(context.Background(), "")
	require.NoError(t, err)
	require.Equal(t, "jobs.db", filepath.Base(pathOf(t, s)))
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	for _, path := range []string{"", ":memory:", "file:x.db?mode=memory", "a\x00b"} {
		_, err := bunstore.OpenSQLite(path)
		var invalid *core.InvalidError
		require.ErrorAs(t, err, &invalid, "%q", path)
		require.Equal(t, "Path", invalid.Field)
	}
	dir := t.TempDir()
	_, err := bunstore.OpenSQLite(filepath.Join(dir, "no", "such", "jobs.db"))
	require.ErrorIs(t, err, os.ErrNotExist)
	var file *bunstore.FileError
	_, err = bunstore.OpenSQLite(dir)
	require.ErrorAs(t, err, &file)
	_, err = bunstore.OpenSQLite(filepath.Join(dir, "jobs.db"), bunstore.Options{Synchronous: "OFF"})
	var invalid *core.InvalidError
	require.ErrorAs(t, err, &invalid)
	_, err = bunstore.OpenSQLite(filepath.Join(dir, "jobs.db"), bunstore.Options{}, bunstore.Options{})
	require.ErrorAs(t, err, &invalid)
}

// TestOpenLeavesWhatItCannotUse: the file's bytes, and its journal mode with them, are what they were.
func TestOpenLeavesWhatItCannotUse(t *testing.T) {
	sound := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "jobs.db")
		s, err := bunstore.OpenSQLite(path)
		require.NoError(t, err)
		reqs := make([]core.EnqueueRequest, 500)
		for i := range reqs {
			reqs[i] = request("job")
		}
		enqueue(t, s, reqs...)
		require.NoError(t, s.Close())
		return path
	}
	change := func(t *testing.T, path string, f func([]byte) []byte) string {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, f(content), 0o600))
		return path
	}
	var file *bunstore.FileError
	var schema *core.SchemaError
	for _, c := range []struct {
		name string
		make func(t *testing.T) string
		want any
	}{
		{"text", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "notes.txt")
			require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("no database at all\n"), 500), 0o600))
			return path
		}, &file},
		{"short", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "short")
			require.NoError(t, os.WriteFile(path, []byte("SQLite"), 0o600))
			return path
		}, &file},
		{"header only", func(t *testing.T) string {
			return change(t, sound(t), func(b []byte) []byte { return b[:16] })
		}, &file},
		{"cut short", func(t *testing.T) string {
			return change(t, sound(t), func(b []byte) []byte { return b[:len(b)/2] })
		}, &file},
		{"schema overwritten", func(t *testing.T) string {
			return change(t, sound(t), func(b []byte) []byte {
				copy(b[100:4096], bytes.Repeat([]byte{0xff}, 3996))
				return b
			})
		}, &file},
		{"tables overwritten", func(t *testing.T) string {
			return change(t, sound(t), func(b []byte) []byte {
				copy(b[4096:], bytes.Repeat([]byte{0xff}, len(b)-4096))
				return b
			})
		}, &file},
		{"newer", func(t *testing.T) string {
			path := sound(t)
			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			_, err = db.Exec("insert into stint_schema values (99, 98)")
			require.NoError(t, err)
			require.NoError(t, db.Close())
			return path
		}, &schema},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.make(t)
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			_, err = bunstore.OpenSQLite(path)
			require.ErrorAs(t, err, c.want)
			t.Log(err)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(before, after), "the file was written to")
		})
	}
}

// TestOpenNewerThatServesUs: a fleet is upgraded one process at a time.
func TestOpenNewerThatServesUs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path)
	_, err := s.DB().Exec("insert into stint_schema values (99, 1)")
	require.NoError(t, err)
	require.Len(t, enqueue(t, openAt(t, path), request("job")), 1)
}

// TestOpenBesideOtherTables: the file is somebody's already.
func TestOpenBesideOtherTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.Exec("create table users (name text); insert into users values ('ada')")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	s := openAt(t, path)
	enqueue(t, s, request("job"))
	var name string
	require.NoError(t, s.DB().NewSelect().Table("users").Column("name").Scan(context.Background(), &name))
	require.Equal(t, "ada", name)
}

// TestOpenTenAtOnce: ten handles meet on a file that is not there yet.
func TestOpenTenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	stores := make([]*bunstore.Store, 10)
	errs := make([]error, len(stores))
	var all sync.WaitGroup
	for i := range stores {
		all.Go(func() {
			if stores[i], errs[i] = bunstore.OpenSQLite(path); errs[i] == nil {
				_, errs[i] = stores[i].Enqueue(context.Background(), []core.EnqueueRequest{request("job")})
			}
		})
	}
	all.Wait()
	for i := range stores {
		require.NoError(t, errs[i])
	}
	counts, err := stores[0].Counts(context.Background(), "q")
	require.NoError(t, err)
	require.EqualValues(t, len(stores), counts[core.StateWaiting])
	checkInvariants(t, stores[0])
	for _, s := range stores {
		require.NoError(t, s.Close())
	}
}

// TestOpenTenProcessesAtOnce is the same from as many processes.
func TestOpenTenProcessesAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	const processes = 10
	var all sync.WaitGroup
	said := make([]string, processes)
	errs := make([]error, processes)
	for i := range processes {
		all.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), openHere+"="+path)
			var out []byte
			out, errs[i] = cmd.CombinedOutput()
			said[i] = string(out)
		})
	}
	all.Wait()
	for i := range processes {
		require.NoError(t, errs[i], said[i])
	}
	s := openAt(t, path)
	require.Len(t, claim(t, s, 100, "job").Jobs, processes)
	checkInvariants(t, s)
}

func TestOpenSettings(t *testing.T) {
	for _, o := range []struct {
		opts bunstore.Options
		want int
	}{{bunstore.Options{}, 2}, {bunstore.Options{Synchronous: "NORMAL"}, 1}, {bunstore.Options{Synchronous: "FULL"}, 2}} {
		s := open(t, o.opts)
		for pragma, want := range map[string]any{
			"synchronous": o.want, "foreign_keys": 1, "busy_timeout": 5000, "journal_mode": "wal",
		} {
			var got any
			require.NoError(t, s.DB().QueryRow("pragma "+pragma).Scan(&got))
			require.EqualValues(t, want, got, pragma)
		}
		require.Equal(t, 1, s.DB().Stats().MaxOpenConnections)
	}
}

func TestMigrateMayBeRepeated(t *testing.T) {
	s := open(t)
	enqueue(t, s, request("job"))
	require.NoError(t, s.Migrate(context.Background()))
	require.NoError(t, bunstore.Migrate(context.Background(), s.DB()))
	require.Len(t, claim(t, s, 10, "job").Jobs, 1)
	first, err := fs.ReadFile(bunstore.Migrations(), "001_stint.sql")
	require.NoError(t, err)
	require.Contains(t, string(first), "create table stint_jobs")
}
