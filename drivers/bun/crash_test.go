package bunstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
)

const crashClaims = 100

// workUntilKilled claims 100 jobs for an hour, says so, and then enqueues and completes others for good.
func workUntilKilled(path string) error {
	ctx := context.Background()
	s, err := bunstore.OpenSQLite(path)
	if err != nil {
		return err
	}
	reqs := make([]core.EnqueueRequest, 50)
	for i := range reqs {
		reqs[i] = request("job")
	}
	for range 2 * crashClaims / len(reqs) {
		if _, err := s.Enqueue(ctx, reqs); err != nil {
			return err
		}
	}
	want := []core.Want{{Queue: "q", Names: []string{"job"}, Limit: crashClaims}}
	if _, err := s.Claim(ctx, core.ClaimRequest{Token: core.NewToken(), Lease: time.Hour, Wants: want}); err != nil {
		return err
	}
	fmt.Println("claimed")
	want[0].Limit = len(reqs)
	for {
		if _, err := s.Enqueue(ctx, reqs); err != nil {
			return err
		}
		token := core.NewToken()
		c, err := s.Claim(ctx, core.ClaimRequest{Token: token, Lease: 0, Wants: want})
		if err != nil {
			return err
		}
		acks := make([]core.Ack, len(c.Jobs))
		for i, j := range c.Jobs {
			acks[i] = core.Ack{Lease: core.Lease{ID: j.ID, Ref: j.Ref, Token: token}, Outcome: core.OutcomeComplete}
		}
		if _, err := s.Ack(ctx, acks); err != nil {
			return err
		}
		fmt.Println("done")
	}
}

// TestKilledInTheMiddle: a process that dies leaves a sound file, its leases, and not half a call.
func TestKilledInTheMiddle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashHere+"="+path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for range 5 { // "claimed" and a few rounds
		require.True(t, lines.Scan(), "the process ended by itself")
		require.Contains(t, []string{"claimed", "done"}, lines.Text())
	}
	require.NoError(t, cmd.Process.Kill())
	for lines.Scan() { // what it still had said
	}
	require.Error(t, cmd.Wait(), "it was killed")

	s := openAt(t, path)
	checkInvariants(t, s)
	counts, err := s.Counts(context.Background(), "")
	require.NoError(t, err)
	require.Contains(t, []int64{crashClaims, crashClaims + 50}, counts[core.StateActive])
	require.Zero(t, counts[core.StateCompleted]%50, "half an Ack")
	got, err := s.RecoverStalled(context.Background(), core.RecoverRequest{MaxStalls: 1})
	require.NoError(t, err)
	require.Len(t, got, int(counts[core.StateActive])-crashClaims, "leases that had not ended were taken")
}
