package pgtest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func run(t *testing.T, dsn, sql string) {
	t.Helper()
	_, err := connect(t, dsn).Exec(t.Context(), sql)
	require.NoError(t, err)
}

func setting(t *testing.T, dsn, name string) (value string) {
	t.Helper()
	require.NoError(t, connect(t, dsn).QueryRow(t.Context(), "select current_setting($1)", name).Scan(&value))
	return value
}

// child starts this binary to do one thing. Its input ends with the test, so it does too.
func child(t *testing.T, does string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDoes+"="+does)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = stdin.Close() })
	return cmd
}

// say starts a child and returns the words of its first line.
func say(t *testing.T, cmd *exec.Cmd) []string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if !errors.Is(err, io.EOF) {
		require.NoError(t, err)
	}
	return strings.Fields(line)
}

// assertGone waits until a cluster's folder and port are gone.
func assertGone(t *testing.T, dir, addr string) {
	t.Helper()
	assert.Eventually(t, func() bool { return !exists(dir) }, 20*time.Second, 10*time.Millisecond, "%s is left", dir)
	if addr != "" {
		_, err := net.Dial("tcp", addr)
		assert.Error(t, err, "something listens on %s", addr)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// noted returns a line of the lock file that a running server keeps: its process id is in the first.
func noted(t *testing.T, dir string, line int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	require.NoError(t, err)
	return strings.Split(string(text), "\n")[line-1]
}

// sharedMemory returns the id of a running server's segment.
func sharedMemory(t *testing.T, dir string) string {
	t.Helper()
	words := strings.Fields(noted(t, dir, 7))
	require.Len(t, words, 2, "key and id")
	return words[1]
}

// segments returns the words of the system's list of shared memory.
func segments(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("ipcs", "-m").Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}
