package robust_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgtest"
)

// persistent enqueues jobs one by one, each until the store says that it has it: what an application does that gives
// its jobs ids.
func persistent(s core.Enqueuer, reqs []core.EnqueueRequest) error {
	for i := range reqs {
		for {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			res, err := s.Enqueue(ctx, reqs[i:i+1])
			cancel()
			if err == nil {
				err = res[0].Err
			}
			if err == nil {
				break
			}
			if !errors.Is(err, core.ErrUnknown) && !errors.Is(err, core.ErrUnavailable) {
				return err
			}
			pause(5 * time.Millisecond)
		}
	}
	return nil
}

// TestServerRestarted: the server crashes under load, its main process killed or told to stop at once, and comes back.
func TestServerRestarted(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Durable: true})
	eachDriver(t, func(t *testing.T, d driver) {
		e := newEnv(t, d, targetOf(t, server.DSN()))
		s := e.open(e.at)
		rounds, jobs := size(2, 8), d.size(600, 300, 6000)
		enqueue(t, s, requests(t, "q", 0, jobs/2))
		crew := []*process{e.start(e.worker("worker-1")), e.start(e.worker("worker-2"))}
		var producer sync.WaitGroup
		var produced error
		reqs := requests(t, "q", jobs/2, jobs/2)
		producer.Go(func() { produced = persistent(s, reqs) })
		for i := range rounds {
			mark := min(max(e.completed(), 0)+1+rand.N(jobs/2/rounds), jobs)
			e.soon("work goes on", time.Minute, func() bool { return e.completed() >= mark })
			if i%2 == 0 {
				require.NoError(t, server.Stop(pgtest.Immediate))
			} else {
				require.NoError(t, server.Kill())
			}
			require.NoError(t, server.Restart())
		}
		producer.Wait()
		require.NoError(t, produced)
		e.finish(jobs, time.Minute)
		for _, p := range crew {
			p.stop()
		}
		t.Logf("%d crashes: %+v", rounds, e.verify(e.open(e.at), jobs)) // the connections of s may be dead
	})
}

// TestBackendsTerminated: an operator, or a pooler, ends one connection after another; also those that listen.
func TestBackendsTerminated(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		e := sharedEnv(t, d)
		victims := map[string]string{"application_name": "stint_" + e.schema[len(e.schema)-12:]}
		at := e.at.with(victims)
		s := e.open(at)
		jobs, most := d.size(800, 400, 10_000), d.size(40, 20, 500)
		enqueue(t, s, requests(t, "q", 0, jobs/2))
		viaVictims := func(c *child) { c.At = at }
		crew := []*process{e.start(e.worker("worker-1", viaVictims)), e.start(e.worker("worker-2", viaVictims))}
		var producer sync.WaitGroup
		var produced error
		reqs := requests(t, "q", jobs/2, jobs-jobs/2)
		producer.Go(func() { produced = persistent(s, reqs) })
		kills, ears := 0, 0
		for kills < most && e.completed() < jobs {
			var heard bool
			err := e.pool.QueryRow(context.Background(), `select heard from (
					select pid, query ilike 'listen%' as heard from pg_stat_activity where application_name = $1
					order by (query ilike 'listen%') = $2 desc, random() limit 1) victim
				where pg_terminate_backend(pid)`, victims["application_name"], kills%5 == 4).Scan(&heard)
			if err == nil {
				kills++
				if heard {
					ears++
				}
			}
			pause(rand.N(40 * time.Millisecond))
		}
		producer.Wait()
		require.NoError(t, produced)
		e.finish(jobs, time.Minute)
		for _, p := range crew {
			p.stop()
		}
		require.NotZero(t, ears, "no backend that listens was ended")
		t.Log(fmt.Sprintf("%d backends ended, %d of them listened: ", kills, ears), e.verify(e.open(e.at), jobs)) // the connections of s may be dead
	})
}
