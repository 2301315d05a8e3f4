package robust_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// Each of these waits for half a minute. As tests of their own they begin first, and others go on beside them.

func TestWakeChannelHealsPgx(t *testing.T) {
	t.Parallel()
	wakeChannelHeals(t, pgxDriver())
}

func TestWakeChannelHealsPq(t *testing.T) {
	t.Parallel()
	wakeChannelHeals(t, pqDriver())
}

func TestWakeChannelHealsBun(t *testing.T) {
	t.Parallel()
	wakeChannelHeals(t, bunDriver())
}

// wakeChannelHeals: an idle worker that hardly polls picks work up at once, also after its connections were cut,
// refused for a while, or after the one that listens fell silent (Q16).
func wakeChannelHeals(t *testing.T, d driver) {
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
	settled := func() { t.Helper(); e.soon("it listens", 15*time.Second, func() bool { return listens() != "" }) }
	settled()
	pickup(5*time.Second, "all is well")

	proxy.Cut()
	pickup(10*time.Second, "connections cut")
	settled()
	pickup(5*time.Second, "and healed")

	proxy.Refuse()
	proxy.Cut()
	began := time.Now()
	enqueue(t, plain, requests(t, "q", jobs, 1))
	jobs++
	pause(1500 * time.Millisecond)
	proxy.Heal()
	e.finish(jobs, 20*time.Second) // the next try to connect
	t.Logf("refused for 1.5 s: %v", time.Since(began).Round(time.Millisecond))
	settled()
	pickup(5*time.Second, "and healed")

	ear := listens()
	for _, c := range proxy.Conns() {
		if c.ServerSide() == ear {
			c.Stall()
			ear = ""
		}
	}
	require.Empty(t, ear, "the connection that listens is not the proxy's")
	pickup(35*time.Second, "the one that listens fell silent") // 15 s of silence, 5 s without an answer
	pickup(5*time.Second, "and healed")
	w.stop()
	require.Equal(t, counted{Jobs: jobs, Runs: jobs}, e.verify(plain, jobs))
}
