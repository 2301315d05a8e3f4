//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

func TestInterruptedItStopsCleanlyAndGoesOn(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			root := tree(t, files(300))
			store := "sqlite:" + filepath.Join(t.TempDir(), "q.db")
			args := []string{"-store", store, "-takers", "4", root}
			interrupt := func(p *os.Process) error { return p.Signal(sig) }
			require.Equal(t, exitInterrupted, until(t, "done", 20, interrupt, args...))

			db, err := open(t.Context(), config{store: store}, quiet())
			require.NoError(t, err)
			counts, err := db.Counts(t.Context(), "")
			require.NoError(t, err)
			require.NoError(t, db.Close())
			require.Zero(t, counts[core.StateActive], "no lease is left to run out")
			require.Positive(t, counts[core.StateWaiting])

			code, output := runChild(t, args...)
			require.Zero(t, code, output)
			require.Zero(t, requireOnce(t, store, root), "nothing was cut short")
		})
	}
}
