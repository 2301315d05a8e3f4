package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// progressOf reads the number that a status line begins with.
func progressOf(line, of string) (n int, ok bool) {
	number, rest, _ := strings.Cut(line, " ")
	if !strings.HasPrefix(rest, of) {
		return 0, false
	}
	_, err := fmt.Sscan(strings.ReplaceAll(number, ",", ""), &n)
	return n, err == nil
}

// until starts the program and calls act once it has shown that so many more of something happened, and a random
// moment after that. It returns the exit code; -1: killed.
func until(t *testing.T, of string, more int, act func(*os.Process) error, args ...string) int {
	t.Helper()
	cmd := child(t, args...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	first := -1
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		n, ok := progressOf(lines.Text(), of)
		if !ok {
			continue
		}
		if first < 0 {
			first = n
		}
		if n >= first+more {
			time.AfterFunc(rand.N(20*time.Millisecond), func() { _ = act(cmd.Process) }) // it may have ended: the exit code tells
			break
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
	_ = cmd.Wait() // the exit code says it
	return cmd.ProcessState.ExitCode()
}

func TestKilledTenTimesEveryFileCountsOnce(t *testing.T) {
	t.Parallel() // it spends seconds waiting for leases to end
	killed(t, "sqlite:"+filepath.Join(t.TempDir(), "q.db"), files(2500), 10)
}

func TestKilledOnPostgresEveryFileCountsOnce(t *testing.T) {
	t.Parallel()
	killed(t, postgresStore(t), 1500, 3)
}

// killed kills runs over n files, starts them again, and holds the last one to what the program promises.
func killed(t *testing.T, store string, n, kills int) {
	t.Helper()
	root := tree(t, n)
	args := []string{"-store", store, "-takers", "8", root}
	for i := range kills {
		of, more := "done", rand.IntN(n/25)
		if i < 2 {
			of, more = "files found", 0 // in the midst of enqueueing
		}
		require.Equal(t, -1, until(t, of, more, (*os.Process).Kill, args...),
			"kill %d came after the end: the tree is too small", i)
	}
	code, output := runChild(t, args...)
	require.Zero(t, code, output)
	stalled := requireOnce(t, store, root)
	t.Logf("%d runs were cut short by %d kills", stalled, kills)
}
