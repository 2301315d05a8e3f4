//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClusterDiesWithItsProcess: kill -9 of the test and of all in its process group, as at a terminal or by a CI.
func TestClusterDiesWithItsProcess(t *testing.T) {
	cmd := child(t, "start")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	words := say(t, cmd)
	require.Len(t, words, 3, words)
	conn := connect(t, words[2])
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
	require.Error(t, cmd.Wait())
	assertGone(t, words[0], words[1])
	require.Error(t, conn.Ping(t.Context()), "a session outlived its server")
}

func TestClusterDiesWithAProcessKilledDuringInitdb(t *testing.T) {
	cmd := child(t, "launch")
	words := say(t, cmd)
	require.Len(t, words, 1, words)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	assertGone(t, words[0], "")
}

// TestFrozenServerStops: a test that stands in for a network that hangs may end before it lets go.
func TestFrozenServerStops(t *testing.T) {
	s, err := start(created(Options{}))
	require.NoError(t, err)
	pid, err := strconv.Atoi(noted(t, s.keeper.dir, 1))
	require.NoError(t, err)
	assert.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	require.NoError(t, s.close())
	assertGone(t, s.keeper.dir, s.addr())
}

// TestOrdinaryExit: nobody stops the shared cluster, so this is all that does.
func TestOrdinaryExit(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDoes+"=start")
	words := say(t, cmd) // its input is empty, so it ends by itself
	require.Len(t, words, 3, words)
	require.NoError(t, cmd.Wait())
	assertGone(t, words[0], words[1])
}

// TestWorksForRootAndForOthers: run by root, every other test has proved the first half, and this one lets the account
// nobody start a cluster. Run by anybody else, every other test has proved the second, and this one can't become root.
func TestWorksForRootAndForOthers(t *testing.T) {
	if os.Getuid() != 0 {
		return
	}
	// The test binary is in a folder of root's own.
	dir, err := os.MkdirTemp(tempDir(), "pgtest") //nolint:usetesting // so is t.TempDir's parent
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	binary, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	copied := filepath.Join(dir, "pgtest.test")
	require.NoError(t, os.WriteFile(copied, binary, 0o755))

	cmd := exec.Command(copied)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), childDoes+"=start", "TMPDIR="+os.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	words := say(t, cmd)
	require.Len(t, words, 3, words)
	require.NoError(t, cmd.Wait())
	assertGone(t, words[0], words[1])
}
