package pgtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options of a cluster. The zero value is fast and forgets everything in a power failure.
type Options struct {
	// Durable has the server wait for the disk at each commit (fsync, full_page_writes). Without it commits survive
	// a killed server but not a machine that fails, and are several times faster.
	Durable bool

	// Settings go into postgresql.conf, over those of this package: {"max_connections": "5"}.
	Settings map[string]string
}

// Mode is a way to stop a server, named as in pg_ctl.
type Mode string

const (
	// Fast ends all sessions, rolls their transactions back and writes a checkpoint.
	Fast Mode = "INT"

	// Immediate ends all processes at once; the next start recovers from the log.
	Immediate Mode = "QUIT"
)

// Server is a throw-away cluster. Methods may be called concurrently; they take turns.
type Server struct {
	mu       sync.Mutex
	keeper   *keeper
	port     int
	password string
}

// Start makes a cluster and starts its server, which takes about a second; it is gone when the test has ended.
// It always makes one of the machine's binaries, whatever [EnvDSN] says: stopping it is for the test to do.
func Start(t testing.TB, opts ...Options) *Server {
	t.Helper()
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	s, err := start(created(o))
	if err != nil {
		t.Fatalf("pgtest: no Postgres server to start: %v", err)
	}
	s.endWith(t)
	return s
}

// Standby makes a standby that follows the server, and returns when it accepts connections, which only read until it is
// promoted. The server is restarted for it: not every release's binaries have the tool that copies a running one. It is
// gone when the test has ended.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	standby, err := start(func(standby *Server) error {
		standby.password = s.password
		err := s.Stop(Fast)
		if err == nil {
			err = standby.keeper.ask("copy", fmt.Sprint(s.port, " ", s.password, " ", s.keeper.dir))
		}
		if err = errors.Join(err, s.Restart()); err != nil {
			return err
		}
		return standby.set(map[string]string{"unix_socket_directories": standby.keeper.dir})
	})
	if err != nil {
		t.Fatalf("pgtest: no standby to start: %v", err)
	}
	standby.endWith(t)
	return standby
}

func (s *Server) endWith(t testing.TB) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's log ends:\n%s", s.keeper.logTail(40))
		}
		if err := s.close(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
}

// created makes a new cluster.
func created(o Options) func(*Server) error {
	return func(s *Server) error {
		s.password = rand.Text()
		if err := s.keeper.ask("init", s.password); err != nil {
			return err
		}
		return s.configure(o)
	}
}

// start launches a keeper, whose folder fill fills, and starts the server.
func start(fill func(*Server) error) (*Server, error) {
	bin, err := findBinaries(os.Getenv(EnvBin), os.Getenv("PATH"), packaged)
	if err != nil {
		return nil, err
	}
	k, err := launch(bin)
	if err != nil {
		return nil, err
	}
	s := &Server{keeper: k}
	if err := s.create(fill); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// create fills the keeper's folder and starts the server for the first time. Between the moment that found a port free
// and the server's own look, somebody else may take it: then it is another port.
func (s *Server) create(fill func(*Server) error) error {
	err := fill(s)
	if err != nil {
		return err
	}
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.keeper.ask("start", fmt.Sprint(s.port)); err == nil {
			return nil
		}
	}
	return err
}

func (s *Server) configure(o Options) error {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": s.keeper.dir,
		"max_connections":         "200",
		"log_timezone":            "UTC",
		"timezone":                "UTC",
		// In files of the cluster rather than system-wide, where a killed server leaves it behind.
		"dynamic_shared_memory_type": "mmap",
	}
	if !o.Durable {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, o.Settings)
	return s.set(settings)
}

// set appends settings to the file: it belongs to the server's user, and the last line of a name wins.
func (s *Server) set(settings map[string]string) error {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	f, err := os.OpenFile(filepath.Join(s.keeper.dir, "data", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text.String())
	return errors.Join(err, f.Close())
}

// DSN returns a connection string for a superuser, as a URL. It stays the same over restarts.
func (s *Server) DSN() string {
	return fmt.Sprintf("postgres://postgres:%s@%s/postgres?sslmode=disable", s.password, s.addr())
}

func (s *Server) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Stop stops the server in the way of mode and returns when it has ended. A server that is down stays down.
func (s *Server) Stop(mode Mode) error { return s.stop(string(mode)) }

// Kill kills the server's main process, as a machine out of memory does, and returns when that is gone. Its sessions
// end by themselves a moment later. A server that is down stays down.
func (s *Server) Kill() error { return s.stop("KILL") }

func (s *Server) stop(signal string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keeper.ask("stop", signal)
}

// Restart stops the server, fast, if it runs, starts it on the same port, and returns when it accepts connections.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.keeper.ask("stop", string(Fast)); err != nil {
		return err
	}
	// Refused while sessions of a killed server still end, or while somebody else has the port.
	for end := time.Now().Add(10 * time.Second); ; {
		err := s.keeper.ask("start", fmt.Sprint(s.port))
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

func (s *Server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keeper.end()
}

// freePort picks a port that nobody listens on, below those that systems give to outgoing connections: one of these
// could take the port while a server is down.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := 10_000 + mathrand.IntN(22_000)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}
