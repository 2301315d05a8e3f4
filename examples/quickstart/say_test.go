package main

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

func TestItSaysThatItWaitsForTheLeasesOfAnotherRun(t *testing.T) {
	root := tree(t, 20)
	synctest.Test(t, func(t *testing.T) { // the seconds until the leases end are the bubble's
		cfg := config{store: "memory", takers: 2, folder: root}
		db, err := open(t.Context(), cfg, quiet())
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		require.NoError(t, enqueue(t.Context(), db, cfg, quiet()))
		killed, err := db.Claim(t.Context(), core.ClaimRequest{
			Token: core.NewToken(), Lease: lease,
			Wants: []core.Want{{Queue: "default", Names: []string{measure.Name()}, Limit: 3}},
		})
		require.NoError(t, err)
		require.Len(t, killed.Jobs, 3)

		var text bytes.Buffer
		out := quiet()
		out.w = &text
		start := time.Now()
		did := &tally{start: start}
		require.NoError(t, work(t.Context(), db, cfg, out, did))
		require.EqualValues(t, 20, did.done.Load())
		require.Less(t, time.Since(start), 2*lease+2*time.Second, "about what it says: stalling once costs a second or so, and more each time")
		require.Equal(t, 1, strings.Count(text.String(), "waiting for the leases of another run"), text.String())
	})
}

func TestNothingToDoIsNoTableOfZeros(t *testing.T) {
	root := tree(t, 5)
	args := []string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "q.db"), root}
	code, first := runChild(t, args...)
	require.Zero(t, code, first)
	require.Contains(t, first, "this run")
	require.NotContains(t, first, "nothing left to do")

	code, again := runChild(t, args...)
	require.Zero(t, code, again)
	require.Contains(t, again, "nothing left to do; -fresh starts over\n")
	require.Contains(t, again, "words", "what was found before is shown again")
	require.NotContains(t, again, "this run")
	require.NotContains(t, again, "jobs/s")

	empty := folder(t)
	code, output := runChild(t, "-store", "memory", empty)
	require.Zero(t, code, output)
	require.Regexp(t, `^Process [0-9]+\. Jobs are kept in memory, and gone when this ends\nno files in `+regexp.QuoteMeta(empty)+`\n$`, output)
}

func TestInterruptedItEndsWithTheCounts(t *testing.T) {
	cfg := config{store: "sqlite:" + filepath.Join(t.TempDir(), "q.db"), takers: 2, folder: tree(t, 5)}
	require.NoError(t, run(t.Context(), cfg, quiet()))
	// No terminal, and no line due; the signal comes as soon as it says where the jobs are.
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var text strings.Builder
	out := &screen{w: writerFunc(func(p []byte) { text.Write(p); interrupt() }), look: time.Hour, every: time.Hour, last: time.Now()}
	require.ErrorIs(t, run(ctx, cfg, out), context.Canceled)
	out.end()
	require.True(t, strings.HasSuffix(text.String(), "q.db\n5 done, 0 failed, 0 retried, 0 left (0 leased), 0 jobs/s\n"), text.String())
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func TestARefusedStoreIsNotAnnounced(t *testing.T) {
	args := []string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "q.db")}
	code, output := runChild(t, append(args, tree(t, 2))...)
	require.Zero(t, code, output)
	require.Contains(t, output, "kept in")
	code, output = runChild(t, append(args, tree(t, 3))...)
	require.Equal(t, exitFailed, code, output)
	require.NotContains(t, output, "kept in")
}
