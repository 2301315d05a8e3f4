package robust_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestNotificationsAreFew: a thousand enqueues, one after the other, lead to a few notifications: two per 5 ms and
// queue at most, the one at its start and the one at its end, and one at least.
func TestNotificationsAreFew(t *testing.T) {
	anyDriver(t, func(t *testing.T, d driver) {
		e := sharedEnv(t, d)
		ctx := context.Background()
		s := e.open(e.at)
		conn, err := pgx.Connect(ctx, e.at.dsn())
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close(ctx)) }()
		// The channel's name is the store's own business: whoever listens says it.
		listener := e.openWith(openOptions{at: e.at.with(map[string]string{"application_name": "who_listens"})})
		awaiting, enough := context.WithCancel(ctx)
		_, err = listener.AwaitWake(awaiting, []string{"q"}, "")
		require.NoError(t, err)
		var listen string
		e.soon("it listens", 5*time.Second, func() bool {
			return e.pool.QueryRow(ctx, `select query from pg_stat_activity where application_name = 'who_listens' and query ilike 'listen%'`).
				Scan(&listen) == nil
		})
		enough()
		_, err = conn.Exec(ctx, listen)
		require.NoError(t, err)

		const calls = 1000
		began := time.Now()
		for i := range calls {
			enqueue(t, s, requests(t, "q", i, 1))
		}
		took := time.Since(began)
		_, err = conn.Exec(ctx, "select pg_notify($1, 'the end')", listen[len(`listen "`):len(listen)-1])
		require.NoError(t, err)
		heard := 0
		for {
			// What is told after the last gap comes later than the end.
			waiting, cancel := context.WithTimeout(ctx, time.Second)
			_, err := conn.WaitForNotification(waiting)
			cancel()
			if err != nil {
				break
			}
			heard++
		}
		heard-- // the end
		require.GreaterOrEqual(t, heard, 1)
		require.LessOrEqual(t, heard, 2*int(took/(5*time.Millisecond))+2, "in %v", took)
		t.Logf("%d enqueues in %v, %d notifications", calls, took.Round(time.Millisecond), heard)
	})
}

// TestEveryQueueStartsAtOnce: another process waits on five queues and hardly polls. Jobs that are inserted a
// millisecond apart all start within 100 ms (Q15).
func TestEveryQueueStartsAtOnce(t *testing.T) {
	anyDriver(t, func(t *testing.T, d driver) {
		e := sharedEnv(t, d)
		s := e.open(e.at)
		queues := []string{"a", "b", "c", "d", "e"}
		other := e.start(e.worker("other", func(c *child) {
			c.Queues, c.Poll, c.Takers, c.Lease, c.Work = queues, time.Hour, 50, time.Minute, time.Nanosecond
		}))
		jobs := 0
		var latest time.Duration
		// A machine that is busy with something else may be late once; a wake that is lost is lost for an hour.
		for range 5 {
			tick := time.NewTicker(time.Millisecond)
			for i := range 50 {
				enqueue(t, s, requests(t, queues[i%len(queues)], jobs, 1))
				jobs++
				<-tick.C
			}
			tick.Stop()
			e.soon("every job starts", 5*time.Second, func() bool { return e.begun() == jobs })
			var us int64
			// By the claim, which hands a job to an idle taker: marks of runs wait for each other.
			e.scan([]any{&us}, fmt.Sprintf(`select max(extract(epoch from l.at - j.enqueued_at) * 1000000)::bigint
				from %[1]s.runs r join %[2]s.jobs j on j.seq = r.ref join %[1]s.leases l on l.ref = r.ref and not l.gone
				where r.n >= $1`, e.notes, e.schema), jobs-50)
			latest = time.Duration(us) * time.Microsecond
			t.Logf("the latest started after %v", latest)
			if latest <= 100*time.Millisecond {
				break
			}
		}
		require.LessOrEqual(t, latest, 100*time.Millisecond)
		e.finish(jobs, 10*time.Second)
		other.stop()
		require.Equal(t, counted{Jobs: jobs, Runs: jobs}, e.verify(s, jobs))
	})
}
