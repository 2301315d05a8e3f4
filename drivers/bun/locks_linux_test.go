package bunstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	bunstore "github.com/stintmq/stint/drivers/bun"
)

// locks are those that this process holds on a database and its shared memory, as the kernel lists them.
func locks(t testing.TB, path string) []string {
	t.Helper()
	inodes := make(map[string]string)
	for _, suffix := range []string{"", "-shm"} {
		info, err := os.Stat(path + suffix)
		require.NoError(t, err)
		inodes[fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino)] = "jobs.db" + suffix
	}
	list, err := os.ReadFile("/proc/locks")
	require.NoError(t, err)
	var held []string
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line) // 1: POSIX ADVISORY READ pid major:minor:inode from to
		if len(f) != 8 || f[4] != fmt.Sprint(os.Getpid()) {
			continue
		}
		if name := inodes[f[5][strings.LastIndex(f[5], ":")+1:]]; name != "" {
			held = append(held, strings.Join([]string{name, f[3], f[6], f[7]}, " "))
		}
	}
	slices.Sort(held)
	return held
}

// TestOpenKeepsTheLocks: the system drops a process's locks on a file when any descriptor of it is closed, so
// nothing but SQLite may open it. Without them another process that closes the file can take itself for the last one,
// and delete the log under the stores that are open here.
func TestOpenKeepsTheLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path)
	_, err := s.Counts(context.Background(), "")
	require.NoError(t, err)
	before := locks(t, path)
	require.NotEmpty(t, before, "an open store holds locks")
	t.Log(before)
	for range 3 {
		other, err := bunstore.OpenSQLite(path)
		require.NoError(t, err)
		require.Equal(t, before, locks(t, path), "a second store was opened")
		enqueue(t, other, request("job"))
		require.NoError(t, other.Close())
		require.Equal(t, before, locks(t, path), "a second store was closed")
	}
}
