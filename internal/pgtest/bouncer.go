package pgtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

// bouncerScript owns one PgBouncer as keeper.sh owns a cluster: it ends with its input, when the test ends or its
// process dies, and leaves nothing behind. The first line of its input is the password of the server.
const bouncerScript = `umask 077
dir=$(mktemp -d "$1/stint-bouncer.XXXXXXXX") || exit 1
read -r password
cat >"$dir/ini" <<INI
[databases]
postgres = host=127.0.0.1 port=$3 user=postgres password=$password
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $4
unix_socket_dir =
auth_type = any
pool_mode = $5
default_pool_size = 10
max_client_conn = 200
logfile = $dir/log
INI
unset password
"$2" "$dir/ini" >/dev/null 2>&1 &
read -r _
kill -INT $! 2>/dev/null
wait
rm -rf "$dir"
`

// Bouncer starts a PgBouncer in front of the server, which lends its connections for as long as poolMode says:
// "session", "transaction" or "statement". It returns a connection string for it; it is gone when the test ends.
func (s *Server) Bouncer(t testing.TB, poolMode string) string {
	t.Helper()
	program, err := findBouncer()
	if err != nil {
		t.Fatalf("pgtest: no PgBouncer to start: %v", err)
	}
	attr, err := childAttributes()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	cmd := exec.Command("sh", "-c", bouncerScript, "bouncer", tempDir(), program, fmt.Sprint(s.port), fmt.Sprint(port), poolMode)
	cmd.Dir, cmd.SysProcAttr = "/", attr
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("pgtest: start PgBouncer: %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(input.Close(), cmd.Wait()); err != nil {
			t.Errorf("pgtest: PgBouncer: %v", err)
		}
	})
	if _, err := fmt.Fprintln(input, s.password); err != nil {
		t.Fatalf("pgtest: PgBouncer: %v", err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close() // it was there to be asked
			return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", address)
		}
		if time.Now().After(deadline) {
			t.Fatalf("pgtest: PgBouncer does not listen: %v", err)
		}
	}
}

// findBouncer returns the program: on PATH, or where Debian puts what only root is said to need.
func findBouncer() (string, error) {
	program, err := exec.LookPath("pgbouncer")
	if err == nil {
		return program, nil
	}
	if there, statErr := os.Stat("/usr/sbin/pgbouncer"); statErr == nil && there.Mode()&0o111 != 0 {
		return "/usr/sbin/pgbouncer", nil
	}
	return "", fmt.Errorf("install it (apt-get install pgbouncer): %w", err)
}
