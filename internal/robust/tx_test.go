package robust_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// inTransaction is a worker whose handlers complete their jobs in transactions of their own, which they hold open
// for a while.
func (e *env) inTransaction(s *store, takers int, lease time.Duration, queues []string, holds func(queue string) time.Duration) *local {
	e.t.Helper()
	n, err := newNotes(context.Background(), e.at, e.runsTable())
	require.NoError(e.t, err)
	c := e.worker("local", func(c *child) { c.Takers, c.Lease = takers, lease })
	l := &local{log: &logText{}}
	w, err := core.NewWorker(s, c.options(slog.New(slog.NewTextHandler(l.log, nil))))
	require.NoError(e.t, err)
	for _, queue := range queues {
		hold := holds(queue)
		kind(queue).Handle(w, func(ctx context.Context, p payload) error {
			if hold == 0 {
				return n.work(ctx, p, 0)
			}
			return s.inTx(context.WithoutCancel(ctx), func(view core.TxView, exec execFunc) error {
				if err := exec(ctx, "insert into "+e.notes+".written values ($1)", p.N); err != nil {
					return err
				}
				if err := kind(queue).Complete(ctx, view); err != nil {
					return err
				}
				return n.work(ctx, payload{N: p.N, For: hold}, 0)
			})
		})
	}
	return e.runLocal(w, l, n.close)
}

func (e *env) withWritten() *env {
	e.t.Helper()
	_, err := e.pool.Exec(context.Background(), "create table "+e.notes+".written (n bigint)")
	require.NoError(e.t, err)
	return e
}

// TestLongTransaction: a handler completes its job in a transaction that stays open for longer than two leases. The
// others of its worker keep theirs meanwhile, and nobody runs the job a second time.
func TestLongTransaction(t *testing.T) {
	t.Parallel() // it waits
	anyDriver(t, func(t *testing.T, d driver) {
		t.Parallel()
		e := sharedEnv(t, d).withWritten()
		s := e.open(e.at)
		others := requests(t, "q", 1, 20)
		for i := range others {
			others[i].Payload = lasting(1+i, 5*time.Second)
		}
		enqueue(t, s, append(requests(t, "long", 0, 1), others...))
		w := e.inTransaction(s, 20, 2*time.Second, []string{"long", "q"}, func(queue string) time.Duration {
			return map[string]time.Duration{"long": 5 * time.Second}[queue]
		})
		e.soon("all run", 10*time.Second, func() bool { return e.begun() == 21 })
		// Whoever would take a lease that ran out.
		other := e.start(e.worker("other", func(c *child) { c.Queues, c.Lease = []string{"long", "q"}, 2*time.Second }))
		e.finish(21, 20*time.Second)
		w.stop()
		other.stop()
		require.Equal(t, counted{Jobs: 21, Runs: 21}, e.verify(s, 21))
		require.Equal(t, 1, e.number("select count(*) from "+e.notes+".written"))
	})
}

// TestSmallPool: ten handlers, each in a transaction, share an application's pool of two. Heartbeats have connections
// of their own.
func TestSmallPool(t *testing.T) {
	t.Parallel() // it waits
	anyDriver(t, func(t *testing.T, d driver) {
		t.Parallel()
		e := sharedEnv(t, d).withWritten()
		s := e.openWith(openOptions{at: e.at, conns: 2})
		plain := e.open(e.at)
		const jobs = 10
		enqueue(t, plain, requests(t, "q", 0, jobs))
		w := e.inTransaction(s, jobs, 4*time.Second, []string{"q"}, func(string) time.Duration { return 900 * time.Millisecond })
		other := e.start(e.worker("other", func(c *child) { c.Queues, c.Lease = []string{"none"}, 2*time.Second }))
		e.finish(jobs, 20*time.Second)
		w.stop()
		other.stop()
		require.Equal(t, counted{Jobs: jobs, Runs: jobs}, e.verify(plain, jobs))
		require.Equal(t, jobs, e.number("select count(*) from "+e.notes+".written"))
		require.Empty(t, w.log.troubles())
	})
}
