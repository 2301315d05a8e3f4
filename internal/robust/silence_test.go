package robust_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// TestBlackHole: every connection of a worker falls silent, without a word to it, while its handlers run. New ones
// work. Heartbeats and acks go on through them before the leases run out.
func TestBlackHole(t *testing.T) {
	t.Parallel() // it waits
	eachDriver(t, func(t *testing.T, d driver) {
		t.Parallel()
		e := sharedEnv(t, d)
		at, proxy := e.at.via(t)
		s, plain := e.open(at), e.open(e.at)
		const jobs, hold = 20, 5 * time.Second
		reqs := requests(t, "q", 0, jobs)
		for i := range reqs {
			reqs[i].Payload = lasting(i, hold)
		}
		enqueue(t, plain, reqs)
		w := e.work(s, []string{"q"}, func(o *core.WorkerOptions) { o.Lease, o.Poll = 3*time.Second, time.Hour })
		e.soon("all run", 10*time.Second, func() bool { return e.begun() == jobs })
		crowd(t, s)
		proxy.Stall()
		e.finish(jobs, 20*time.Second)
		proxy.Heal()
		w.stop()
		require.Equal(t, counted{Jobs: jobs, Runs: jobs}, e.verify(plain, jobs))
		require.Zero(t, strings.Count(w.log.String(), "doubtful"), "heartbeats came too late for leases")
	})
}

// crowd has a store open as many connections for claims and heartbeats as it may, and the application some of its own,
// which it then leaves idle.
func crowd(t *testing.T, s *store) {
	t.Helper()
	ctx := context.Background()
	var calls sync.WaitGroup
	for range 30 {
		calls.Go(func() {
			if _, err := s.Claim(ctx, core.ClaimRequest{Token: core.NewToken()}); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	for range 3 {
		calls.Go(func() {
			err := s.inTx(ctx, func(_ core.TxView, exec execFunc) error { return exec(ctx, "select pg_sleep(0.2)") })
			if err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}
