package robust_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/faults"
	"github.com/stintmq/stint/internal/pgsql"
	"github.com/stintmq/stint/internal/pgtest"
)

var errWire = errors.New("the connection broke")

// scene is one try of an operation: a queue of its own with some jobs in it.
type scene struct {
	e     *env
	t     *testing.T
	s     *store
	queue string
	token string
	jobs  []core.Record // claimed, the operation's to work with
	id    string        // of a job that waits
	later string        // of one that is delayed
	dead  string        // of one that failed
	was   string        // what went wrong
}

// operation is a call of package pgsql that takes some statements.
type operation struct {
	name  string
	whole bool // in one transaction
	do    func(ctx context.Context, sc *scene, sn *pgsql.Session) error
	// holds checks what must be so after the operation answered, fault or not; nil: nothing more.
	holds func(sc *scene)
}

func operations() []operation {
	ack := func(outcomes ...core.Outcome) func(context.Context, *scene, *pgsql.Session) error {
		return func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			acks := sc.acks(outcomes)
			res, err := sn.Ack(ctx, acks)
			for i, r := range res {
				if errors.Is(r.Err, core.ErrLeaseLost) && acks[i].Outcome == core.OutcomeSnooze {
					continue // the try before did it, and left no entry
				}
				if r.Err != nil {
					return r.Err
				}
				require.Equal(sc.t, string(r.State), sc.state(acks[i].Lease.ID), "the answer about %s", acks[i].Outcome)
			}
			return err
		}
	}
	verb := func(call func(ctx context.Context, sc *scene, sn *pgsql.Session) error) func(context.Context, *scene, *pgsql.Session) error {
		return func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			err := call(ctx, sc, sn)
			if _, refused := errors.AsType[*core.StateError](err); refused {
				return nil // it was done by the try before
			}
			return err
		}
	}
	enqueue := func(n int, ids bool) func(context.Context, *scene, *pgsql.Session) error {
		return func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			res, err := sn.Enqueue(ctx, sc.requests(n, ids), pgsql.Notify{Channel: "robust", Origin: "-"})
			for _, r := range res {
				require.NoError(sc.t, r.Err)
				require.True(sc.t, n > 1000 || sc.state(r.ID) != "", "a job that was answered is there")
			}
			return err
		}
	}
	claim := func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
		token := core.NewToken()
		want := core.Want{Queue: sc.queue, Names: []string{"job"}, Limit: 2}
		second := core.Want{Queue: sc.queue, Names: []string{"other"}, Limit: 2}
		got, err := sn.Claim(ctx, core.ClaimRequest{Token: token, Lease: time.Hour, Worker: "w", Wants: []core.Want{want, second}})
		if err != nil {
			return err
		}
		ids := make([]string, len(got.Jobs))
		for i := range got.Jobs {
			ids[i] = got.Jobs[i].ID
		}
		held, err := sc.s.Claim(ctx, core.ClaimRequest{Token: token, Lease: time.Hour})
		require.NoError(sc.t, err)
		var leased []string
		for i := range held.Jobs {
			leased = append(leased, held.Jobs[i].ID)
		}
		require.ElementsMatch(sc.t, leased, ids, "the claim's answer is not what its token holds")
		return nil
	}
	return []operation{
		{name: "enqueue one", do: enqueue(1, false)},
		{name: "enqueue one with an id", do: enqueue(1, true), holds: (*scene).eachIDOnce},
		{name: "enqueue many with ids, some taken", do: enqueue(30, true), holds: (*scene).eachIDOnce},
		{name: "enqueue two parts in a transaction", whole: true, do: enqueue(2100, true), holds: (*scene).eachIDOnce},
		{name: "enqueue apart", whole: true, do: func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			_, err := sn.EnqueueApart(ctx, sc.requests(5, true), pgsql.Notify{})
			return err
		}, holds: (*scene).eachIDOnce},
		{name: "claim", do: claim},
		{name: "what a token holds", do: func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			got, err := sn.Claim(ctx, core.ClaimRequest{Token: sc.token, Lease: time.Hour})
			require.True(sc.t, err != nil || len(got.Jobs) == len(sc.jobs))
			return err
		}},
		{name: "extend", do: func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			unknown := core.Lease{ID: "nobody", Token: sc.token}
			ext, err := sn.Extend(ctx, append(sc.leases(), unknown), 2*time.Hour)
			require.True(sc.t, err != nil || slices.Equal(ext.Lost, []core.Lease{unknown}) && ext.Busy == nil, "%+v", ext)
			return err
		}},
		{name: "complete", do: ack(core.OutcomeComplete)},
		{name: "ack mixed", do: ack(core.OutcomeComplete, core.OutcomeRetry, core.OutcomeFail, core.OutcomeSnooze, core.OutcomeCancel)},
		{name: "release", do: func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			res, err := sn.Ack(ctx, sc.acks([]core.Outcome{core.OutcomeRelease}))
			for _, r := range res { // a release may have been done by the try before
				require.True(sc.t, r.State == core.StateWaiting || errors.Is(r.Err, core.ErrLeaseLost))
			}
			return err
		}},
		{name: "complete in a transaction", whole: true, do: func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			err := sn.Complete(ctx, sc.leases()[0], []byte("done"))
			if errors.Is(err, core.ErrLeaseLost) {
				return nil
			}
			return err
		}},
		{name: "recover", do: func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			_, err := sn.RecoverStalled(ctx, core.RecoverRequest{MaxStalls: 1})
			return err
		}},
		{name: "fold", do: func(ctx context.Context, _ *scene, sn *pgsql.Session) error { return sn.Fold(ctx) }},
		{name: "cancel a waiting one", do: verb(func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			_, err := sn.Cancel(ctx, sc.id)
			return err
		})},
		{name: "cancel a delayed one", do: verb(func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			_, err := sn.Cancel(ctx, sc.later)
			return err
		})},
		{name: "cancel an active one", do: verb(func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			_, err := sn.Cancel(ctx, sc.jobs[0].ID)
			return err
		})},
		{name: "retry", do: verb(func(ctx context.Context, sc *scene, sn *pgsql.Session) error { return sn.Retry(ctx, sc.dead) })},
		{name: "promote", do: verb(func(ctx context.Context, sc *scene, sn *pgsql.Session) error { return sn.Promote(ctx, sc.later) })},
		{name: "remove a waiting one", do: verb(func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			_, err := sn.Remove(ctx, sc.id)
			return err
		})},
		{name: "remove a finished one", do: verb(func(ctx context.Context, sc *scene, sn *pgsql.Session) error {
			_, err := sn.Remove(ctx, sc.dead)
			return err
		})},
		{name: "pause", do: verb(func(ctx context.Context, sc *scene, sn *pgsql.Session) error { return sn.Pause(ctx, sc.queue) })},
		{name: "resume", do: verb(func(ctx context.Context, sc *scene, sn *pgsql.Session) error { return sn.Resume(ctx, sc.queue) })},
	}
}

// TestStatementsFail: in every operation, each statement fails once before it is carried out, with half of its answer,
// and after it, and the connection with it. The store stays sound, the answer is "not done" only if nothing was done,
// and the same call again, on another connection, ends as it should.
func TestStatementsFail(t *testing.T) {
	t.Parallel()
	d := drivers()[0] // to make scenes with; the statements are sent by the test
	// Planning takes longer than running what finds a handful of rows.
	generic := map[string]string{"plan_cache_mode": "force_generic_plan", "jit": "off"}
	e := newEnv(t, d, targetOf(t, pgtest.DSN(t)).with(generic))
	s := e.open(e.at)
	tries := 0
	for _, op := range slices.Concat(operations(), scheduleOperations()) {
		t.Run(op.name, func(t *testing.T) {
			e := e.emptied(t)
			var broken []*scene
			for _, moment := range []faults.Moment{faults.Before, faults.After, faults.Midway} {
				if op.whole && moment == faults.Midway && size(0, 1) == 0 {
					continue // it is rolled back, as after the whole answer
				}
				for _, sent := range []bool{true, false} {
					if !sent && (moment != faults.Before || op.whole) {
						continue // a driver can't say that of what was carried out, and rolls the rest back anyway
					}
					for at, struck := 1, true; struck; at++ {
						tries++
						sc := newScene(t, e, s, fmt.Sprintf("scene-%d", tries))
						if struck = sc.try(op, at, moment, sent); struck {
							broken = append(broken, sc)
						}
					}
				}
			}
			e.sound()
			for _, sc := range broken {
				sc.again(op)
			}
			e.sound()
		})
	}
	t.Logf("%d tries", tries)
}

// try runs an operation that fails at a statement, and reports whether it has that many.
func (sc *scene) try(op operation, at int, moment faults.Moment, sent bool) (struck bool) {
	t := sc.t
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	before := sc.snapshot()
	struck, err := sc.perform(ctx, op, at, moment, sent)
	where := fmt.Sprintf("%s, %s statement %d, sent %v: %v", op.name, moment, at, sent, err)
	if !struck {
		require.NoError(t, err, where)
		return false
	}
	switch {
	case err == nil:
	case errors.Is(err, core.ErrUnknown):
	case errors.Is(err, core.ErrUnavailable):
		require.Equal(t, before, sc.snapshot(), where)
	default:
		t.Errorf("neither unavailable nor unknown: %s", where)
	}
	sc.was = where
	return true
}

// again repeats the operation, on a connection that is whole.
func (sc *scene) again(op operation) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := sc.perform(ctx, op, 0, faults.Before, true)
	require.NoError(sc.t, err, "again: %s", sc.was)
	if op.holds != nil {
		op.holds(sc)
	}
}

// perform runs an operation as a driver does, on a connection of its own.
func (sc *scene) perform(ctx context.Context, op operation, at int, moment faults.Moment, sent bool) (struck bool, err error) {
	conn, err := sc.e.pool.Acquire(ctx)
	require.NoError(sc.t, err)
	defer conn.Release()
	run := func(q pgx.Tx, sn func(*pgsql.Session) *pgsql.Session) error {
		x := &faults.Executor{Executor: onPgx{conn}, At: at, Moment: moment, Err: errWire}
		if q != nil {
			x.Executor = onPgx{q}
		}
		err := op.do(ctx, sc, sn(pgsql.NewSession(pgsql.NewSchema(sc.e.schema).In(x), nil, core.Limits{})))
		struck = x.Struck()
		return err
	}
	if op.whole {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return run(tx, (*pgsql.Session).Whole) })
		return struck, pgsql.Fault(ctx, err, false) // rolled back
	}
	err = run(nil, func(sn *pgsql.Session) *pgsql.Session { return sn })
	return struck, pgsql.Fault(ctx, err, sent)
}

// newScene fills a queue.
func newScene(t *testing.T, e *env, s *store, queue string) *scene {
	ctx := context.Background()
	sc := &scene{e: e, t: t, s: s, queue: queue, token: core.NewToken(), id: queue + "-id", later: queue + "-later", dead: queue + "-dead"}
	reqs := sc.requests(5, false)
	for i := range reqs {
		reqs[i].Name = "held"
	}
	enqueue(t, s, reqs)
	claim := func(name string, limit int, token string, lease time.Duration) []core.Record {
		got, err := s.Claim(ctx, core.ClaimRequest{Token: token, Lease: lease, Worker: "w",
			Wants: []core.Want{{Queue: queue, Names: []string{name}, Limit: limit}}})
		require.NoError(t, err)
		require.Len(t, got.Jobs, limit)
		return got.Jobs
	}
	more := sc.requests(8, false)
	for i := range more {
		switch i {
		case 0:
			more[i].ID = sc.id
		case 1:
			more[i].ID, more[i].Delay = sc.later, time.Hour
		case 2:
			more[i].ID, more[i].Name, more[i].Priority = sc.dead, "dead", 9
		case 3, 4:
			more[i].Name = "other"
		case 5:
			more[i].Delay = time.Millisecond // due when it is claimed, most likely
		}
	}
	more[6].Name, more[7].Name = "ended", "ended"
	enqueue(t, s, more)
	dead := claim("dead", 1, core.NewToken(), time.Hour)
	_, err := s.Cancel(ctx, dead[0].ID)
	require.NoError(t, err)
	sc.jobs = claim("held", 5, sc.token, time.Hour)
	claim("ended", 2, core.NewToken(), 0)
	held, err := s.Explain(ctx, sc.dead)
	require.NoError(t, err)
	require.Equal(t, core.StateActive, held.State)
	sc.fail(sc.dead)
	require.NoError(t, s.PutSchedule(ctx, sc.schedule(time.Minute), sceneSlot))
	return sc
}

// fail ends the lease of a job, which failed.
func (sc *scene) fail(id string) {
	var token string
	sc.e.scan([]any{&token}, `select replace(l.token::text, '-', '') from `+sc.e.schema+`.leases l join `+sc.e.schema+`.jobs j using (seq) where j.id = $1`, id)
	res, err := sc.s.Ack(context.Background(), []core.Ack{{Lease: core.Lease{ID: id, Token: token}, Outcome: core.OutcomeFail}})
	require.NoError(sc.t, err)
	require.Equal(sc.t, []core.AckResult{{State: core.StateFailed}}, res)
}

func (sc *scene) requests(n int, ids bool) []core.EnqueueRequest {
	reqs := make([]core.EnqueueRequest, n)
	for i := range reqs {
		reqs[i] = core.EnqueueRequest{Name: "job", Queue: sc.queue, Payload: []byte("{}"), MaxAttempts: 5, Backoff: core.DefaultBackoff()}
		if ids {
			reqs[i].ID = fmt.Sprintf("%s-%d", sc.queue, i)
		}
	}
	if ids && n > 1 {
		reqs[1].ID = sc.id // taken
	}
	return reqs
}

func (sc *scene) leases() []core.Lease {
	leases := make([]core.Lease, len(sc.jobs))
	for i := range sc.jobs {
		leases[i] = core.Lease{ID: sc.jobs[i].ID, Ref: sc.jobs[i].Ref, Token: sc.token}
	}
	return leases
}

// acks are for all held jobs, each with the next of the outcomes, and the first one twice.
func (sc *scene) acks(outcomes []core.Outcome) []core.Ack {
	leases := sc.leases()
	acks := make([]core.Ack, 0, len(leases)+1)
	for i, l := range append(leases, leases[0]) {
		a := core.Ack{Lease: l, Outcome: outcomes[i%len(leases)%len(outcomes)]}
		switch a.Outcome {
		case core.OutcomeComplete:
			a.Result = []byte("result")
		case core.OutcomeRetry:
			a.Delay, a.Failure = time.Hour, &core.Failure{Message: "no"}
		case core.OutcomeSnooze:
			a.Delay = time.Hour
		case core.OutcomeFail:
			a.Failure = &core.Failure{Message: "no"}
		}
		acks = append(acks, a)
	}
	return acks
}

// state is where a job is, "" if it is not there.
func (sc *scene) state(id string) string {
	job, err := sc.s.Get(context.Background(), id)
	if errors.Is(err, core.ErrNotFound) {
		return ""
	}
	require.NoError(sc.t, err)
	return string(job.State)
}

// snapshot is what users can see of the queue.
func (sc *scene) snapshot() []string {
	ctx := context.Background()
	page, err := sc.s.List(ctx, core.Query{Queue: sc.queue, Limit: core.MaxListLimit})
	require.NoError(sc.t, err)
	paused, err := sc.s.Paused(ctx)
	require.NoError(sc.t, err)
	lines := []string{fmt.Sprint("paused ", slices.Contains(paused, sc.queue))}
	schedules, err := sc.s.Schedules(ctx, core.ScheduleQuery{Key: sc.queue})
	require.NoError(sc.t, err)
	for _, r := range schedules {
		lines = append(lines, fmt.Sprint(r.Every, r.NextAt, r.LastSlot, r.LastID, r.LastError, r.RetryAt, r.Failures))
	}
	for _, j := range page.Jobs {
		if j.State == core.StateDelayed && time.Until(j.RunAt) < time.Minute {
			j.State = core.StateWaiting // it is about to be
		}
		lines = append(lines, fmt.Sprint(j.ID, j.State, j.Attempts, j.Stalls, j.Snoozes, j.Runs, j.Fence, j.CancelRequested))
	}
	return lines
}

// eachIDOnce: what was enqueued twice under one id is there once.
func (sc *scene) eachIDOnce() {
	require.Zero(sc.t, sc.e.number("select count(*) from (select from "+sc.e.schema+".jobs where id is not null group by id having count(*) > 1) twice"))
	require.NotEmpty(sc.t, sc.state(sc.queue+"-0"))
}
