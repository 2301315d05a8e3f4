package pgtest

import (
	"net"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRestartKeepsWhatWasCommitted(t *testing.T) {
	s := Start(t)
	dsn := s.DSN()
	run(t, dsn, "create table kept (n int); insert into kept values (1)")
	for name, down := range map[string]func() error{
		"stopped":             func() error { return s.Stop(Fast) },
		"stopped immediately": func() error { return s.Stop(Immediate) },
		"killed":              s.Kill,
		"running":             func() error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			idle := connect(t, dsn)
			require.NoError(t, down())
			if name != "running" {
				_, err := net.Dial("tcp", s.addr())
				require.Error(t, err, "it still listens")
				require.NoError(t, s.Kill(), "what is down stays down")
			}
			require.NoError(t, s.Restart())
			require.Error(t, idle.Ping(t.Context()), "a session outlived its server")
			require.Equal(t, dsn, s.DSN())
			run(t, dsn, "insert into kept select n + 1 from kept order by n desc limit 1")
		})
	}
	var n int
	require.NoError(t, connect(t, dsn).QueryRow(t.Context(), "select max(n) from kept").Scan(&n))
	require.Equal(t, 5, n)
}

func TestTwoAtOnceAreStrangers(t *testing.T) {
	a, err := shared()
	require.NoError(t, err)
	b := Start(t, Options{Durable: true, Settings: map[string]string{
		"max_connections": "7", "search_path": `"it's", public`,
	}})
	run(t, a.DSN(), "create table if not exists only_here ()")
	_, err = connect(t, b.DSN()).Exec(t.Context(), "select from only_here")
	require.ErrorContains(t, err, "does not exist")

	for name, want := range map[string][2]string{
		"fsync":           {"off", "on"},
		"max_connections": {"200", "7"},
		"search_path":     {`"$user", public`, `"it's", public`},
		"TimeZone":        {"UTC", "UTC"},
	} {
		assert.Equal(t, want[0], setting(t, a.DSN(), name))
		assert.Equal(t, want[1], setting(t, b.DSN(), name))
	}
}

// TestStrangersAreRefused: whoever reaches a superuser of the cluster runs programs as the developer.
func TestStrangersAreRefused(t *testing.T) {
	s, err := shared()
	require.NoError(t, err)
	_, err = pgx.Connect(t.Context(), "postgres://postgres:guess@"+s.addr()+"/postgres?sslmode=disable")
	require.ErrorContains(t, err, "password authentication failed")
	info, err := os.Stat(s.keeper.dir)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "others can reach its socket, which asks for no password")
}

func TestNothingIsLeft(t *testing.T) {
	for name, down := range map[string]func(*Server) error{
		"running": func(*Server) error { return nil },
		"stopped": func(s *Server) error { return s.Stop(Fast) },
		"killed":  (*Server).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := start(created(Options{}))
			require.NoError(t, err)
			segment := sharedMemory(t, s.keeper.dir)
			require.Contains(t, segments(t), segment)
			assert.NoError(t, down(s))
			require.NoError(t, s.close())
			assertGone(t, s.keeper.dir, s.addr())
			require.NotContains(t, segments(t), segment, "shared memory is left")
		})
	}
}

func TestFailuresSayWhy(t *testing.T) {
	_, err := start(created(Options{Settings: map[string]string{"no_such_setting": "1"}}))
	require.ErrorContains(t, err, `unrecognized configuration parameter "no_such_setting"`)

	none := t.TempDir()
	_, err = findBinaries(none, "", nil)
	require.ErrorContains(t, err, EnvBin+"="+none)
	_, err = findBinaries("", none, []string{none})
	require.ErrorContains(t, err, "apt-get install postgresql")
	require.ErrorContains(t, err, EnvBin)
}
