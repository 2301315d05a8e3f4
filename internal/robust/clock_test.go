package robust_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// arguments looks for the client's clock among statements' arguments, in any unit.
type arguments struct {
	clock time.Time

	mu    sync.Mutex
	seen  int
	wrong []string
}

func (a *arguments) look(sql string, args []any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, arg := range args {
		a.value(sql, reflect.ValueOf(arg))
	}
}

func (a *arguments) value(sql string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Invalid:
	case reflect.Pointer, reflect.Interface:
		a.value(sql, v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			a.value(sql, v.Index(i))
		}
	case reflect.Int64:
		a.seen++
		for _, unit := range []int64{1, 1e3, 1e6, 1e9} { // seconds to nanoseconds since 1970
			a.compare(sql, time.Unix(v.Int()/unit, 0))
		}
	default:
		if at, ok := reflect.TypeAssert[time.Time](v); ok {
			a.seen++
			a.compare(sql, at)
		}
	}
}

func (a *arguments) compare(sql string, at time.Time) {
	if at.Sub(a.clock).Abs() < 365*24*time.Hour {
		a.wrong = append(a.wrong, fmt.Sprintf("%v in %.200s", at, sql))
	}
}

// standsStill: a process whose clock says 2000, or 2060, and does not move, stores and claims and
// settles jobs by the database's time all the same, and never says what its own clock says. The clock is that of a
// synctest bubble, which stands still as long as anybody in it waits for the network; timers don't fire, so this is
// the store without a worker. A worker has no way to tell a store the time: its calls carry durations.
func standsStill(e *env, off time.Duration) {
	synctest.Test(e.t, func(t *testing.T) {
		time.Sleep(off) // nobody else is there: the clock jumps
		e.t = t
		byDatabaseTime(e)
	})
}

func byDatabaseTime(e *env) {
	t, ctx := e.t, context.Background()
	sent := &arguments{clock: time.Now()}
	s, err := e.d.open(ctx, openOptions{at: e.at, schema: e.schema, watch: sent.look})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.close()) }()
	real, err := e.databaseNow(s)
	require.NoError(t, err)
	require.Greater(t, time.Since(real).Abs(), 20*365*24*time.Hour, "the clock is not off")
	began := time.Now()

	var token string
	claim := func(lease time.Duration) core.Claimed {
		t.Helper()
		token = core.NewToken()
		got, err := s.Claim(ctx, core.ClaimRequest{Token: token, Lease: lease, Worker: "w",
			Wants: []core.Want{{Queue: "q", Names: []string{"work-q"}, Limit: 10}}})
		require.NoError(t, err)
		return got
	}
	// A job that is due in half a second is claimed then, not at once and not in decades.
	later := func(id string, delay time.Duration) core.Record {
		t.Helper()
		for range 100_000 {
			if got := claim(time.Minute); len(got.Jobs) > 0 {
				require.Equal(t, id, got.Jobs[0].ID)
				require.False(t, got.Jobs[0].ClaimedAt.Before(got.Jobs[0].RunAt))
				require.Less(t, got.Jobs[0].ClaimedAt.Sub(got.Jobs[0].RunAt), 5*time.Second)
				return got.Jobs[0]
			} else {
				require.LessOrEqual(t, got.NextIn, delay+time.Second)
				require.Positive(t, got.NextIn)
			}
		}
		t.Fatal("it never came due")
		return core.Record{}
	}
	delayed := requests(t, "q", 0, 1, core.Delay(500*time.Millisecond))
	enqueue(t, s, delayed)
	later(jobID(0), 500*time.Millisecond)
	res, err := s.Ack(ctx, []core.Ack{{Lease: core.Lease{ID: jobID(0), Token: token}, Outcome: core.OutcomeRetry, Delay: 300 * time.Millisecond}})
	require.NoError(t, err)
	require.Equal(t, core.StateDelayed, res[0].State)
	later(jobID(0), 300*time.Millisecond)
	_, err = s.Ack(ctx, []core.Ack{{Lease: core.Lease{ID: jobID(0), Token: token}, Outcome: core.OutcomeComplete}})
	require.NoError(t, err)

	at := real.Add(1500 * time.Millisecond)
	enqueue(t, s, requests(t, "q", 1, 1, core.At(at)))
	job := later(jobID(1), 2*time.Second)
	require.Equal(t, core.Micros(at), job.RunAt)
	// A lease of a minute is not over; one of 300 ms is, 300 ms later.
	sweep := core.RecoverRequest{MaxStalls: 5}
	taken, err := s.RecoverStalled(ctx, sweep)
	require.NoError(t, err)
	require.Empty(t, taken)
	_, err = s.Ack(ctx, []core.Ack{{Lease: core.Lease{ID: jobID(1), Token: token}, Outcome: core.OutcomeRelease}})
	require.NoError(t, err)
	require.Len(t, claim(300*time.Millisecond).Jobs, 1)
	for len(taken) == 0 {
		taken, err = s.RecoverStalled(ctx, sweep)
		require.NoError(t, err)
	}
	ledger, err := s.Attempts(ctx, jobID(1))
	require.NoError(t, err)
	require.Len(t, ledger, 1)
	held := ledger[0].FinishedAt.Sub(ledger[0].StartedAt)
	require.GreaterOrEqual(t, held, 300*time.Millisecond)
	require.Less(t, held, 5*time.Second)
	byDatabaseTimeToo(e, s)
	require.Equal(t, began, time.Now(), "the clock moved: this proved nothing")
	require.Empty(t, sent.wrong)
	require.Greater(t, sent.seen, 100)
}

// byDatabaseTimeToo is the rest of what a store can be asked to do.
func byDatabaseTimeToo(e *env, s *store) {
	t, ctx := e.t, context.Background()
	require.NoError(t, s.inTx(ctx, func(view core.TxView, _ execFunc) error {
		_, err := view.Enqueue(ctx, requests(t, "q", 2, 1, core.Delay(time.Hour)))
		return err
	}))
	why, err := s.Explain(ctx, jobID(2))
	require.NoError(t, err)
	require.InDelta(t, time.Hour, why.DueIn, float64(time.Minute))
	require.NoError(t, s.Promote(ctx, jobID(2)))
	_, err = s.Cancel(ctx, jobID(2))
	require.NoError(t, err)
	require.NoError(t, s.Retry(ctx, jobID(2)))
	_, err = s.Remove(ctx, jobID(2))
	require.NoError(t, err)
	for _, order := range []core.OrderBy{core.OrderEnqueued, core.OrderRun, core.OrderFinished} {
		q := core.Query{OrderBy: order, Limit: 1, Queue: "q", States: map[core.OrderBy][]core.State{
			core.OrderRun: {core.StateDelayed}, core.OrderFinished: {core.StateCompleted},
		}[order]}
		for {
			page, err := s.List(ctx, q)
			require.NoError(t, err)
			if q.Cursor = page.Cursor; q.Cursor == "" {
				break
			}
		}
	}
	_, err = s.Counts(ctx, "")
	require.NoError(t, err)
	_, err = s.Stranded(ctx, nil)
	require.NoError(t, err)
}

// databaseNow is when the database says that a job was enqueued just now.
func (e *env) databaseNow(s *store) (time.Time, error) {
	ctx := context.Background()
	req := requests(e.t, "clock", 9999, 1)
	if _, err := s.Enqueue(ctx, req); err != nil {
		return time.Time{}, err
	}
	job, err := s.Get(ctx, req[0].ID)
	return job.EnqueuedAt, err
}
