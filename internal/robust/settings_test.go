package robust_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgtest"
)

// role makes a user with settings of its own, as an administrator does with alter role.
func role(t *testing.T, server target, name string, settings ...string) target {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.dsn())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	statements := []string{fmt.Sprintf("create role %s login superuser password 'secret'", name)}
	for _, s := range settings {
		statements = append(statements, fmt.Sprintf("alter role %s set %s", name, s))
	}
	for _, s := range statements {
		_, err := conn.Exec(ctx, s)
		require.NoError(t, err, s)
	}
	return server.as(name, "secret")
}

// TestSettings: what administrators set for a role, on a server whose roles are the test's.
func TestSettings(t *testing.T) {
	server := targetOf(t, pgtest.Start(t).DSN())
	t.Run("default isolation", func(t *testing.T) { defaultIsolation(t, server) })
	t.Run("server timeouts", func(t *testing.T) { serverTimeouts(t, server) })
	t.Run("statement cancelled", func(t *testing.T) { statementCancelled(t, server) })
	t.Run("odd", func(t *testing.T) { oddSettings(t, server) })
}

// defaultIsolation: another isolation level is the default. The store's own statements cope with what that brings,
// and nobody sees an error.
func defaultIsolation(t *testing.T, server target) {
	for _, level := range []string{"serializable", "repeatable read"} {
		t.Run(level, func(t *testing.T) {
			eachDriver(t, func(t *testing.T, d driver) {
				at := role(t, server, "iso_"+strings.ReplaceAll(level, " ", "_")+"_"+d.name,
					"default_transaction_isolation to '"+level+"'")
				e := newEnv(t, d, server)
				s := e.open(at)
				jobs := size(1500, 9000)
				strict := func(c *child) { c.At, c.Work, c.Lease = at, 5*time.Millisecond, 6*time.Second }
				crew := []*process{e.start(e.worker("worker-1", strict)), e.start(e.worker("worker-2", strict)), e.start(e.worker("worker-3", strict))}
				var producers sync.WaitGroup
				const parts = 3
				for i := range parts {
					reqs := requests(t, "q", i*jobs/parts, jobs/parts)
					producers.Go(func() {
						for len(reqs) > 0 {
							n := min(len(reqs), 7)
							if _, err := s.Enqueue(context.Background(), reqs[:n]); err != nil {
								t.Error(err)
								return
							}
							reqs = reqs[n:]
						}
					})
				}
				producers.Wait()
				e.finish(jobs, time.Minute)
				for _, p := range crew {
					p.stop()
					require.Empty(t, p.text.troubles(), "%s", p.id)
				}
				require.Equal(t, counted{Jobs: jobs, Runs: jobs}, e.verify(e.open(server), jobs))
			})
		})
	}
}

// oddities are settings that change how the server reads or writes text, finds names or plans.
var oddities = map[string][]string{
	"no_such_schema": {"search_path to 'nowhere'"},
	"decoys":         {"search_path to decoy, pg_catalog"},
	"text": {
		"timezone to 'Asia/Kathmandu'", "datestyle to 'SQL, DMY'", "intervalstyle to 'sql_standard'", "bytea_output to 'escape'",
		"extra_float_digits to -15", "lc_numeric to 'C'", "lc_monetary to 'C'", "lc_time to 'C'", "lc_messages to 'C'",
		"xmlbinary to 'hex'", "client_min_messages to 'debug1'", "standard_conforming_strings to off", "escape_string_warning to on",
		"backslash_quote to off", "quote_all_identifiers to on", "array_nulls to off", "transform_null_equals to on",
	},
	"plans": {"plan_cache_mode to 'force_generic_plan'", "jit to off", "enable_seqscan to off", "enable_indexscan to off",
		"enable_tidscan to off", "work_mem to '64kB'"},
}

// oddSettings: whatever is set, values come back as they were given.
func oddSettings(t *testing.T, server target) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.dsn())
	require.NoError(t, err)
	_, err = conn.Exec(ctx, `create schema decoy; create sequence decoy.numbers;`+decoys(
		"jobs", "ready", "delayed", "leases", "finished", "runs", "tallies", "lanes", "sweeps", "paused", "schema_version"), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	for name, settings := range oddities {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDriver(t, func(t *testing.T, d driver) {
				at := role(t, server, name+"_"+d.name, settings...)
				e := newEnv(t, d, at)
				exactValues(e, e.open(at))
				e.sound()
			})
		})
	}
}

func decoys(names ...string) string {
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("create table decoy.%s (seq text, id int, queue int, name int);", name)
	}
	return text
}

// exactValues takes jobs through their lives and compares everything that comes back.
func exactValues(e *env, s *store) {
	t, ctx := e.t, context.Background()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	runAt := core.Micros(time.Now().Add(1000*time.Hour + 123456*time.Microsecond))
	req := core.EnqueueRequest{
		ID: `id '"\ ` + "ü", Name: `name \'"`, Queue: `queue \ NULL {a,"b"}`, Payload: every,
		Metadata: map[string]string{`k\"'`: "v\\\t\n'", "NULL": "", "ü": "ÿ 🦆"}, Priority: -9, MaxAttempts: math.MaxInt32, MaxStalls: -1,
		Backoff: core.Exponential(1500*time.Microsecond, 1.0000000000000002, 300*24*time.Hour, core.NoJitter()),
		Keep:    core.Keep{Completed: core.KeepRule{Count: 3, Age: 36 * time.Hour}, Failed: core.KeepRule{Forever: true}},
		Timeout: 90*time.Minute + 7, RunAt: runAt, Trace: &core.Trace{Parent: `00-\'`, State: "a=b", Delayed: true},
	}
	soon := req
	soon.ID, soon.RunAt, soon.Payload, soon.Metadata, soon.Trace = `soon\`, time.Time{}, nil, nil, nil
	before := e.now()
	enqueue(t, s, []core.EnqueueRequest{req, soon})
	after := e.now()

	got, err := s.Get(ctx, req.ID)
	require.NoError(t, err)
	require.WithinRange(t, got.EnqueuedAt, before, after)
	want := core.Record{
		ID: req.ID, Name: req.Name, Queue: req.Queue, Ref: got.Ref, State: core.StateDelayed, Payload: every, Metadata: req.Metadata,
		Priority: -9, MaxAttempts: math.MaxInt32, MaxStalls: -1, Backoff: req.Backoff, Keep: req.Keep, Timeout: req.Timeout,
		Trace: req.Trace, EnqueuedAt: got.EnqueuedAt, RunAt: runAt,
	}
	require.Equal(t, want, got)
	page, err := s.List(ctx, core.Query{Metadata: req.Metadata, States: []core.State{core.StateDelayed}, OrderBy: core.OrderRun, Queue: req.Queue})
	require.NoError(t, err)
	require.Equal(t, []core.Record{want}, page.Jobs)

	ask := core.ClaimRequest{Token: core.NewToken(), Lease: time.Hour, Worker: `worker '\`,
		Wants: []core.Want{{Queue: req.Queue, Names: []string{req.Name, "other"}, Limit: 10}}}
	claimed, err := s.Claim(ctx, ask)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	require.InDelta(t, 1000*time.Hour, claimed.NextIn, float64(time.Minute))
	job := claimed.Jobs[0]
	require.Equal(t, soon.ID, job.ID)
	require.Nil(t, job.Payload)
	held := core.Lease{ID: job.ID, Token: ask.Token, Ref: job.Ref}
	ext, err := s.Extend(ctx, []core.Lease{held}, 2*time.Hour)
	require.NoError(t, err)
	require.Equal(t, core.Extended{}, ext)
	why, err := s.Explain(ctx, job.ID)
	require.NoError(t, err)
	require.InDelta(t, 2*time.Hour, why.LeaseFor, float64(time.Minute))
	require.Equal(t, ask.Worker, why.Worker)

	failure := &core.Failure{Message: `it's \n "broken" ` + "\n", Type: `*t\`, Stack: "line\n\tline", Panic: true}
	settle := func(a core.Ack, state core.State) {
		t.Helper()
		for range 2 { // and again: the answer is the first one's
			res, err := s.Ack(ctx, []core.Ack{a})
			require.NoError(t, err)
			require.Equal(t, []core.AckResult{{State: state}}, res)
		}
	}
	settle(core.Ack{Lease: held, Outcome: core.OutcomeRetry, Failure: failure, Delay: 36*time.Hour + 5*time.Microsecond}, core.StateDelayed)
	got, err = s.Get(ctx, job.ID)
	require.NoError(t, err)
	require.WithinDuration(t, after.Add(36*time.Hour), got.RunAt, time.Minute)
	require.NoError(t, s.Promote(ctx, job.ID))
	ask.Token = core.NewToken()
	claimed, err = s.Claim(ctx, ask)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	require.EqualValues(t, 2, claimed.Jobs[0].Fence)
	held.Token = ask.Token
	settle(core.Ack{Lease: held, Outcome: core.OutcomeComplete, Result: every}, core.StateCompleted)

	got, err = s.Get(ctx, job.ID)
	require.NoError(t, err)
	require.Equal(t, every, got.Result)
	ledger, err := s.Attempts(ctx, job.ID)
	require.NoError(t, err)
	require.Len(t, ledger, 2)
	require.Equal(t, failure, ledger[0].Failure)
	require.Equal(t, core.Attempt{Number: 2, Outcome: core.OutcomeComplete, StartedAt: got.ClaimedAt, FinishedAt: got.FinishedAt, Result: every,
		Worker: ask.Worker}, ledger[1])
	require.WithinRange(t, got.FinishedAt, got.ClaimedAt, e.now())

	state, err := s.Cancel(ctx, req.ID)
	require.NoError(t, err)
	require.Equal(t, core.StateCancelled, state)
	require.NoError(t, s.Retry(ctx, req.ID))
	require.NoError(t, s.Pause(ctx, req.Queue))
	paused, err := s.Paused(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{req.Queue}, paused)
	require.NoError(t, s.Resume(ctx, req.Queue))

	ask.Token, ask.Lease = core.NewToken(), 0
	claimed, err = s.Claim(ctx, ask)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	taken, err := s.RecoverStalled(ctx, core.RecoverRequest{MaxStalls: 5})
	require.NoError(t, err)
	require.Equal(t, []core.Recovered{{ID: req.ID, Name: req.Name, Queue: req.Queue, State: core.StateFailed}}, taken)
	counts, err := s.Counts(ctx, req.Queue)
	require.NoError(t, err)
	require.EqualValues(t, 1, counts[core.StateCompleted])
	require.EqualValues(t, 1, counts[core.StateFailed])
	stranded, err := s.Stranded(ctx, []string{req.Name})
	require.NoError(t, err)
	require.Empty(t, stranded)

	// In a transaction of the application's, under the same settings.
	inTx := soon
	inTx.ID = "in tx"
	require.NoError(t, s.inTx(ctx, func(view core.TxView, _ execFunc) error {
		res, err := view.Enqueue(ctx, []core.EnqueueRequest{inTx, soon})
		require.True(t, err != nil || res[1].Duplicate)
		return err
	}))
	removed, err := s.Remove(ctx, inTx.ID)
	require.NoError(t, err)
	require.True(t, removed)
}

// now is the database's.
func (e *env) now() time.Time {
	e.t.Helper()
	var now time.Time
	e.scan([]any{&now}, "select clock_timestamp()")
	return now.UTC()
}
