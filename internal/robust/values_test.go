package robust_test

import (
	"context"
	"math"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

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
