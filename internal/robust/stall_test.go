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

// TestWakeChannelHeals: an idle worker that hardly polls picks work up at once, also after its connections were cut,
// refused for a while, or after the one that listens fell silent (Q16).
func TestWakeChannelHeals(t *testing.T) {
	t.Parallel() // it waits
	eachDriver(t, func(t *testing.T, d driver) {
		t.Parallel()
		e := sharedEnv(t, d)
		name := "ear_" + e.schema[len(e.schema)-12:]
		at, proxy := e.at.with(map[string]string{"application_name": name}).via(t)
		s, plain := e.open(at), e.open(e.at)
		w := e.work(s, []string{"q"}, func(o *core.WorkerOptions) { o.Lease, o.Poll = 30*time.Second, time.Hour })
		jobs := 0
		pickup := func(within time.Duration, what string) {
			t.Helper()
			began := time.Now()
			enqueue(t, plain, requests(t, "q", jobs, 1))
			jobs++
			e.finish(jobs, within)
			t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
		}
		listens := func() (at string) {
			_ = e.pool.QueryRow(context.Background(), `select host(client_addr) || ':' || client_port from pg_stat_activity
				where application_name = $1 and query ilike 'listen%'`, name).Scan(&at) // none: ""
			return at
		}
		settled := func() { t.Helper(); e.soon("it listens", 5*time.Second, func() bool { return listens() != "" }) }
		settled()
		pickup(time.Second, "all is well")

		proxy.Cut()
		pickup(2*time.Second, "connections cut")
		settled()
		pickup(time.Second, "and healed")

		proxy.Refuse()
		proxy.Cut()
		began := time.Now()
		enqueue(t, plain, requests(t, "q", jobs, 1))
		jobs++
		pause(1500 * time.Millisecond)
		proxy.Heal()
		e.finish(jobs, 6*time.Second) // the next try to connect
		t.Logf("refused for 1.5 s: %v", time.Since(began).Round(time.Millisecond))
		settled()
		pickup(time.Second, "and healed")

		ear := listens()
		for _, c := range proxy.Conns() {
			if c.ServerSide() == ear {
				c.Stall()
				ear = ""
			}
		}
		require.Empty(t, ear, "the connection that listens is not the proxy's")
		pickup(25*time.Second, "the one that listens fell silent") // 15 s of silence, 5 s without an answer
		pickup(time.Second, "and healed")
		w.stop()
		require.Equal(t, counted{Jobs: jobs, Runs: jobs}, e.verify(plain, jobs))
	})
}
