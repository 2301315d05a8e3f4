package stinttest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/internal/failing"
	"github.com/stintmq/stint/stinttest"
)

// fails runs what must end a test, and returns what it said.
func fails(t *testing.T, f func(tb testing.TB)) string {
	t.Helper()
	r := failing.Run(t, f)
	require.True(t, r.Failed)
	return strings.Join(r.Said, "\n")
}

// TestLists: jobs by kind, typed, with the time until they are due.
func TestLists(t *testing.T) {
	start := time.Date(2026, 2, 3, 4, 5, 6, 7000, time.UTC)
	k := stinttest.New(t, stinttest.Options{Start: start})
	require.Equal(t, start, k.Now())
	s := &shop{jobs: k.Store}
	s.handle(k.Worker)
	require.NoError(t, s.signUp(t.Context(), "ada"))
	require.NoError(t, s.signUp(t.Context(), "ken"))
	require.NoError(t, s.signUp(t.Context(), "ada"))
	all := stinttest.All(k, welcome)
	require.Len(t, all, 2)
	require.Equal(t, user{"ada"}, all[0].Payload)
	require.Equal(t, welcome.IDOf(user{"ken"}), all[1].ID)
	require.Zero(t, all[0].In)
	later := stinttest.Pending(k, reminder)
	require.Len(t, later, 3)
	require.Equal(t, 24*time.Hour, later[2].In)
	ran := k.Work()
	require.Len(t, ran, 2)
	require.Equal(t, start, ran[0].At)
	require.Equal(t, core.StateCompleted, ran[0].State)
	stinttest.None(k, welcome)
	require.Len(t, stinttest.All(k, welcome), 2)
	result, err := welcome.Result(stinttest.All(k, welcome)[1].Record)
	require.NoError(t, err)
	require.Equal(t, receipt{2}, result)

	require.Empty(t, k.Advance(24*time.Hour-time.Microsecond))
	ran = k.Advance(time.Microsecond)
	require.Len(t, ran, 3)
	require.Equal(t, start.Add(24*time.Hour), k.Now())
}

// TestAdvanceStopsOnTheWay: each job runs at its own time, whatever comes due within.
func TestAdvanceStopsOnTheWay(t *testing.T) {
	for _, in := range []string{"", "bubble"} {
		test := func(t *testing.T) {
			k := stinttest.New(t, stinttest.Options{Bubble: in != ""})
			start := k.Now()
			chain := core.NewTask[int]("chain")
			var at []time.Duration
			chain.Handle(k.Worker, func(ctx context.Context, n int) error {
				at = append(at, k.Now().Sub(start))
				if n == 0 {
					return nil
				}
				_, err := chain.Enqueue(ctx, k.Store, n-1, core.Delay(time.Hour))
				return err
			})
			_, err := chain.Enqueue(t.Context(), k.Store, 3)
			require.NoError(t, err)
			ran := k.Advance(150 * time.Minute)
			require.Equal(t, []time.Duration{0, time.Hour, 2 * time.Hour}, at)
			require.Equal(t, start.Add(150*time.Minute), k.Now())
			require.Equal(t, start.Add(time.Hour), ran[1].At)
			require.Equal(t, 30*time.Minute, stinttest.Only(k, chain).In)
		}
		t.Run("clock "+in, func(t *testing.T) {
			if in == "" {
				test(t)
			} else {
				synctest.Test(t, test)
			}
		})
	}
}

// TestFailuresAreSeen: by whom asks for them, and by Work for whom does not.
func TestFailuresAreSeen(t *testing.T) {
	setUp := func(tb testing.TB) (*stinttest.Kit, *shop) {
		k := stinttest.New(tb)
		s := &shop{jobs: k.Store, offline: 1}
		s.handle(k.Worker)
		require.NoError(t, s.signUp(context.Background(), "ada"))
		return k, s
	}
	k, _ := setUp(t)
	ran := k.Drain()
	require.Len(t, ran, 1)
	require.True(t, ran[0].Failed())
	require.ErrorIs(t, ran[0].Err, errOffline)
	require.Equal(t, core.StateDelayed, ran[0].State)
	require.Equal(t, core.OutcomeRetry, ran[0].Outcome)

	said := fails(t, func(tb testing.TB) { k, _ := setUp(tb); k.Work() })
	require.Contains(t, said, "welcome welcome:ada, attempt 1 of 10: delayed (sending: mail server is offline)")

	said = fails(t, func(tb testing.TB) {
		k := stinttest.New(tb)
		core.NewTask[int]("other").Handle(k.Worker, func(context.Context, int) error { return nil })
		require.NoError(t, (&shop{jobs: k.Store}).signUp(context.Background(), "ada"))
		k.Work()
	})
	require.Contains(t, said, `nobody on k.Worker handles "welcome" on queue "mail"`)

	said = fails(t, func(tb testing.TB) {
		k := stinttest.New(tb)
		loop := core.NewTask[int]("loop")
		loop.Handle(k.Worker, func(context.Context, int) error { panic("oops") })
		_, err := loop.Enqueue(context.Background(), k.Store, 1)
		require.NoError(t, err)
		k.Work()
	})
	require.Contains(t, said, "panic: oops")
}

// TestEndlessWork fails the test and does not hang it.
func TestEndlessWork(t *testing.T) {
	for name, work := range map[string]func(*stinttest.Kit){
		"Work": func(k *stinttest.Kit) { k.Work() }, "Advance": func(k *stinttest.Kit) { k.Advance(time.Hour) },
	} {
		for _, delay := range []time.Duration{0, time.Second} {
			if name == "Work" && delay > 0 {
				continue
			}
			said := fails(t, func(tb testing.TB) {
				k := stinttest.New(tb, stinttest.Options{MaxRuns: 100})
				again := core.NewTask[int]("again")
				again.Handle(k.Worker, func(ctx context.Context, n int) error {
					_, err := again.Enqueue(ctx, k.Store, n, core.Delay(delay))
					return err
				})
				_, err := again.Enqueue(t.Context(), k.Store, 1)
				require.NoError(t, err)
				work(k)
			})
			require.Contains(t, said, "100 runs and no end, does a job enqueue itself? (Options.MaxRuns)", "%s, %v", name, delay)
		}
	}
	k := stinttest.New(t, stinttest.Options{MaxRuns: 101})
	many := core.NewTask[int]("many")
	many.Handle(k.Worker, func(context.Context, int) error { return nil })
	for i := range 100 {
		_, err := many.Enqueue(t.Context(), k.Store, i)
		require.NoError(t, err)
	}
	require.Len(t, k.Work(), 100)
	require.Contains(t, fails(t, func(tb testing.TB) { stinttest.New(tb, stinttest.Options{MaxRuns: -1}) }), "MaxRuns")
}

// TestRetriesAreOnTime: Advance by a backoff runs the retry, with no chance in it.
func TestRetriesAreOnTime(t *testing.T) {
	for range 20 {
		k := stinttest.New(t)
		flaky := core.NewTask[int]("flaky", core.JobOptions[int]{Backoff: core.Fixed(time.Minute)})
		flaky.Handle(k.Worker, func(context.Context, int) error { return errOffline })
		_, err := flaky.Enqueue(t.Context(), k.Store, 1)
		require.NoError(t, err)
		require.Len(t, k.Advance(time.Minute), 2)
	}
}

// TestMessagesSayWhatIsThere.
func TestMessagesSayWhatIsThere(t *testing.T) {
	said := fails(t, func(tb testing.TB) { stinttest.Only(stinttest.New(tb), welcome) })
	require.Contains(t, said, `want one pending job "welcome", there are 0; the store is empty`)
	for _, f := range []func(*stinttest.Kit){
		func(k *stinttest.Kit) { stinttest.None(k, reminder) },
		func(k *stinttest.Kit) { stinttest.Only(k, core.NewTask[int]("other")) },
	} {
		said := fails(t, func(tb testing.TB) {
			k := stinttest.New(tb)
			require.NoError(t, (&shop{jobs: k.Store}).signUp(context.Background(), "ada"))
			f(k)
		})
		require.Contains(t, said, `reminder #2, queue mail: delayed {"Mail":"ada"} in 24h0m0s`)
		require.Contains(t, said, `welcome welcome:ada, queue mail: waiting {"Mail":"ada"}`)
	}
	require.Contains(t, fails(t, func(tb testing.TB) { stinttest.New(tb).Advance(-1) }), "time does not go back")
	require.Contains(t, fails(t, func(tb testing.TB) {
		stinttest.New(tb, stinttest.Options{Worker: core.WorkerOptions{Lease: 1}})
	}), "Lease")
}

// TestInTransactions: what is enqueued is seen by commit; a service on another database gets its type of transaction.
func TestInTransactions(t *testing.T) {
	k := stinttest.New(t)
	tx := k.Store.Begin()
	_, err := welcome.Enqueue(t.Context(), k.Store.WithTx(tx), user{"ada"})
	require.NoError(t, err)
	stinttest.None(k, welcome)
	require.NoError(t, tx.Commit())
	stinttest.Only(k, welcome)

	type sqlTx struct{}
	jobs := memstore.Tx[*sqlTx](k.Store)
	_, err = reminder.Enqueue(t.Context(), jobs.WithTx(&sqlTx{}), user{"ada"})
	require.NoError(t, err)
	stinttest.Only(k, reminder)
}

// TestPerform: one run, with all that a worker does around it.
func TestPerform(t *testing.T) {
	job := core.NewJob[user, receipt]("job", core.JobOptions[user]{Queue: "other", MaxAttempts: 2, Timeout: time.Second})
	rec, err := stinttest.Perform(t, job, func(ctx context.Context, u user) (receipt, error) {
		run, ok := core.Current(ctx)
		require.True(t, ok)
		require.Equal(t, 1, run.Attempt)
		return receipt{len(u.Mail)}, nil
	}, user{"ada"}, core.Delay(time.Hour))
	require.NoError(t, err)
	result, err := job.Result(rec)
	require.NoError(t, err)
	require.Equal(t, receipt{3}, result)

	rec, err = stinttest.Perform(t, reminder, func(context.Context, user) error { return errOffline }, user{})
	require.ErrorIs(t, err, errOffline)
	require.Equal(t, core.StateDelayed, rec.State)

	_, err = stinttest.Perform(t, reminder, func(context.Context, user) error { panic("oops") }, user{})
	require.ErrorContains(t, err, "oops")
	rec, err = stinttest.Perform(t, reminder, func(context.Context, user) error { return core.Unrecoverable(errors.New("no")) }, user{})
	require.EqualError(t, err, "no")
	require.Equal(t, core.StateFailed, rec.State)
}

// TestSchedules: each slot has its run, at its time.
func TestSchedules(t *testing.T) {
	for _, bubble := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			k := stinttest.New(t, stinttest.Options{Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Bubble: bubble})
			report := core.NewTask[string]("report")
			var slots []time.Time
			report.Handle(k.Worker, func(ctx context.Context, _ string) error {
				slot, ok := core.Slot(ctx)
				require.True(t, ok)
				require.Equal(t, slot, k.Now())
				slots = append(slots, slot)
				return nil
			})
			require.NoError(t, report.Schedule(t.Context(), k.Store, "nightly", core.Schedule[string]{Cron: "0 3 * * *"}))
			require.Empty(t, k.Work())
			require.Len(t, k.Advance(72*time.Hour), 3)
			for i, slot := range slots {
				require.Equal(t, 3, slot.Hour())
				require.Equal(t, slots[0].AddDate(0, 0, i), slot)
			}
			stinttest.None(k, report)
		})
	}
}

// TestSchedulePutOff: a slot that was put off comes when it is tried again, and time never goes back for it.
func TestSchedulePutOff(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k := stinttest.New(t, stinttest.Options{Start: start})
	report := core.NewTask[string]("report")
	report.Handle(k.Worker, func(context.Context, string) error { return nil })
	d := report.Declare("r", core.Schedule[string]{Every: 24 * time.Hour})
	require.NoError(t, d.Err)
	require.NoError(t, k.Store.PutSchedule(t.Context(), d.Spec, start))
	done, err := k.Store.TickSchedule(t.Context(), core.Tick{Key: "r", Expect: start, Err: "no", RetryIn: time.Hour})
	require.NoError(t, err)
	require.True(t, done)
	require.Empty(t, k.Advance(time.Minute))
	require.Equal(t, start.Add(time.Minute), k.Now())
	ran := k.Advance(2 * time.Hour)
	require.Len(t, ran, 1)
	require.Equal(t, start.Add(time.Hour), ran[0].At)
}
