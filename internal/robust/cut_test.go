package robust_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/faults"
)

// bothMoments runs a test with the request lost, and with its reply lost.
func bothMoments(t *testing.T, test func(e *env, m faults.Moment)) {
	t.Helper()
	eachDriver(t, func(t *testing.T, d driver) {
		t.Parallel()
		e := sharedEnv(t, d)
		for _, m := range []faults.Moment{faults.Before, faults.After} {
			t.Run(m.String(), func(t *testing.T) { test(e.emptied(t), m) })
		}
	})
}

// The requests, by what their SQL has and no other's.
func (e *env) sqlInsert() string { return `insert into "` + e.schema + `".jobs (` }
func (e *env) sqlClaim() string  { return `insert into "` + e.schema + `".leases (` }
func (e *env) sqlExtend() string { return `suspect_at = null, until = ` }
func (e *env) sqlEnd() string    { return `insert into "` + e.schema + `".finished (` }

// TestConnectionsCutUnderLoad: any request of anybody is lost, or its reply.
func TestConnectionsCutUnderLoad(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, d driver) {
		e := sharedEnv(t, d)
		at, proxy := e.at.via(t)
		s, plain := e.open(at), e.open(e.at)
		jobs, cuts := d.size(800, 400, 10_000), d.size(40, 20, 500)
		enqueue(t, plain, requests(t, "q", 0, jobs/2))
		via := func(c *child) { c.At = at }
		crew := []*process{e.start(e.worker("worker-1", via)), e.start(e.worker("worker-2", via))}
		var producer sync.WaitGroup
		var produced error
		reqs := requests(t, "q", jobs/2, jobs-jobs/2)
		producer.Go(func() { produced = persistent(s, reqs) })
		struck := 0
		for struck < cuts && e.completed() < jobs {
			moment := faults.Before
			if rand.N(2) == 0 {
				moment = faults.After
			}
			if e.struck(proxy.Arm(faults.Rule{Skip: rand.N(40), Moment: moment}), jobs) {
				struck++
			}
		}
		proxy.Disarm()
		producer.Wait()
		require.NoError(t, produced)
		e.finish(jobs, time.Minute)
		for _, p := range crew {
			p.stop()
		}
		c := e.verify(plain, jobs)
		t.Logf("%d cuts: %+v", struck, c)
	})
}

// struck waits until a rule strikes, and reports false when all jobs are done before.
func (e *env) struck(rule <-chan struct{}, jobs int) bool {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-rule:
			return true
		case <-look.C:
			if e.completed() == jobs {
				return false
			}
		}
	}
}

// TestEnqueueWithIDsCut: repeated after a fault, an enqueue with an id makes one job, alone and in a batch that takes
// a transaction of its own.
func TestEnqueueWithIDsCut(t *testing.T) {
	t.Parallel()
	bothMoments(t, func(e *env, m faults.Moment) {
		t := e.t
		at, proxy := e.at.via(t)
		s, plain := e.open(at), e.open(e.at)
		enqueue(t, s, requests(t, "q", 0, 1))
		const parts = 2100 // more than one statement takes
		for _, c := range []struct {
			pattern string
			batch   int
			rounds  int
		}{{e.sqlInsert(), 1, 10}, {e.sqlInsert(), 50, 3}, {e.sqlInsert(), parts, 1}, {e.d.commit, parts, 1}} {
			for range c.rounds {
				have := e.jobs()
				reqs := requests(t, "q", have, c.batch)
				struck := proxy.Arm(faults.Rule{Pattern: c.pattern, Moment: m})
				_, err := s.Enqueue(context.Background(), reqs)
				<-struck
				switch {
				case errors.Is(err, core.ErrUnavailable):
					require.Equal(t, have, e.jobs(), "surely not done")
				case errors.Is(err, core.ErrUnknown):
				default:
					t.Fatalf("%q cut: %v", c.pattern, err)
				}
				if m == faults.After && (c.batch < parts || c.pattern == e.d.commit) {
					require.ErrorIs(t, err, core.ErrUnknown, "%q cut, %d jobs", c.pattern, c.batch)
					require.Equal(t, have+c.batch, e.jobs(), "it was done")
				}
				require.Contains(t, []int{have, have + c.batch}, e.jobs(), "all or nothing")
				done := e.jobs() > have
				res, err := s.Enqueue(context.Background(), reqs)
				require.NoError(t, err)
				for i, r := range res {
					require.NoError(t, r.Err)
					require.Equal(t, core.EnqueueResult{ID: reqs[i].ID, Duplicate: done}, r)
				}
				require.Equal(t, have+c.batch, e.jobs())
			}
		}
		_, err := plain.Counts(context.Background(), "")
		require.NoError(t, err)
		e.sound()
	})
}

func (e *env) jobs() int { return e.number("select count(*) from " + e.schema + ".jobs") }

// TestEnqueueWithoutIDsCut: nobody repeats an enqueue whose jobs have no id. One call makes one job at most.
func TestEnqueueWithoutIDsCut(t *testing.T) {
	t.Parallel()
	bothMoments(t, func(e *env, m faults.Moment) {
		t := e.t
		at, proxy := e.at.via(t)
		s := e.open(at)
		calls, done := 100, 0
		for i := range calls {
			var struck <-chan struct{}
			if i%3 == 0 {
				struck = proxy.Arm(faults.Rule{Moment: m})
			}
			_, err := kind("q").Enqueue(context.Background(), s, payload{N: i})
			if struck != nil {
				<-struck
			}
			if err == nil {
				done++
			} else if !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrUnknown) {
				t.Fatal(err)
			}
		}
		require.GreaterOrEqual(t, e.jobs(), done)
		require.LessOrEqual(t, e.jobs(), calls)
		require.Zero(t, e.number(fmt.Sprintf(
			"select count(*) from (select from %s.jobs group by payload having count(*) > 1) twice", e.schema)), "a call made two jobs")
		t.Logf("%d calls, %d answered, %d jobs", calls, done, e.jobs())
		e.sound()
	})
}

// local is a worker in this process, on one store.
type local struct {
	stop func() // and see that all was settled
	log  *logText
}

// work runs a worker on s until the test stops it or ends.
func (e *env) work(s core.Store, queues []string, change ...func(*core.WorkerOptions)) *local {
	e.t.Helper()
	n, err := newNotes(context.Background(), e.at, e.runsTable())
	require.NoError(e.t, err)
	c := e.worker("local")
	l := &local{log: &logText{}}
	opts := c.options(slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelInfo})))
	for _, f := range change {
		f(&opts)
	}
	w, err := core.NewWorker(s, opts)
	require.NoError(e.t, err)
	for _, queue := range queues {
		kind(queue).Handle(w, func(ctx context.Context, p payload) error { return n.work(ctx, p, 0) })
	}
	return e.runLocal(w, l, n.close)
}

// runLocal runs a worker until the test stops it or ends.
func (e *env) runLocal(w *core.Worker, l *local, then func()) *local {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	l.stop = sync.OnceFunc(func() {
		cancel()
		err := <-done
		then()
		if err != nil {
			e.t.Errorf("worker: %v", err)
		}
		if e.t.Failed() {
			e.t.Logf("the worker said last:\n%s", l.log.tail(25))
		}
	})
	e.t.Cleanup(l.stop)
	return l
}

// TestWorkerCallsCut: a claim, a heartbeat or an ack is lost, or its reply. Each job runs once: what a claim got is
// released and claimed anew, long before its lease is over, and an ack is offered until it is answered.
func TestWorkerCallsCut(t *testing.T) {
	t.Parallel() // it waits
	bothMoments(t, func(e *env, m faults.Moment) {
		t := e.t
		at, proxy := e.at.via(t)
		s, plain := e.open(at), e.open(e.at)
		jobs := 0
		w := e.work(s, []string{"q"}, func(o *core.WorkerOptions) { o.Lease, o.Poll = 3*time.Second, time.Hour })
		for _, pattern := range []string{e.sqlClaim(), e.sqlEnd(), e.sqlExtend()} {
			for range 3 {
				struck := proxy.Arm(faults.Rule{Pattern: pattern, Moment: m})
				req := requests(t, "q", jobs, 10)
				if pattern == e.sqlExtend() {
					req = requests(t, "q", jobs, 1)
					req[0].Payload = lasting(jobs, 1200*time.Millisecond)
				}
				began := time.Now()
				enqueue(t, plain, req)
				jobs += len(req)
				<-struck
				e.finish(jobs, 20*time.Second)
				require.Less(t, time.Since(began), 2500*time.Millisecond, "later than within a lease: %s", pattern)
				if pattern == e.sqlExtend() {
					break // one takes a second
				}
			}
		}
		w.stop()
		c := e.verify(plain, jobs)
		require.Equal(t, counted{Jobs: jobs, Runs: jobs}, c, "nothing stalled, nothing ran twice")
	})
}

// TestSecondWantCut: a claim serves its queues by one statement each. When the reply of a later one is lost, its jobs
// must not wait for their lease to run out: a job that tolerates no stall would fail without having run.
func TestSecondWantCut(t *testing.T) {
	t.Parallel()
	bothMoments(t, func(e *env, m faults.Moment) {
		t := e.t
		at, proxy := e.at.via(t)
		s, plain := e.open(at), e.open(e.at)
		reqs := append(requests(t, "a", 0, 3), requests(t, "b", 3, 3)...)
		for i := range reqs {
			reqs[i].MaxStalls = -1
		}
		enqueue(t, plain, reqs)
		struck := proxy.Arm(faults.Rule{Pattern: e.sqlClaim(), Skip: 1, Moment: m})
		w := e.work(s, []string{"a", "b"}, func(o *core.WorkerOptions) { o.Poll = 100 * time.Millisecond })
		<-struck
		e.soon("every job ends", 20*time.Second, func() bool {
			return e.number("select count(*) from "+e.schema+".finished") == len(reqs)
		})
		w.stop()
		require.Equal(t, counted{Jobs: 6, Runs: 6}, e.verify(plain, len(reqs)))
	})
}

// lasting is a job's payload whose run takes d.
func lasting(n int, d time.Duration) []byte { return fmt.Appendf(nil, `{"N":%d,"For":%d}`, n, d) }
