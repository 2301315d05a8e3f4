package stintotel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	stintotel "github.com/stintmq/stint/otel"
)

// TestMetrics: what is counted, by what, and never by an id.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, stintotel.Options{})
		w := k.worker(core.WorkerOptions{Concurrency: 4})
		task := core.NewTask("task", core.JobOptions[string]{Queue: "mail", MaxAttempts: 2,
			Backoff: core.Fixed(time.Hour), Key: func(s string) string { return s }})
		task.Handle(w, func(ctx context.Context, what string) error {
			time.Sleep(time.Second)
			switch what {
			case "retry":
				return errBoom
			case "fail":
				return core.Unrecoverable(errBoom)
			case "snooze":
				return core.Snooze(time.Hour)
			case "cancel":
				run, _ := core.Current(ctx)
				if _, err := k.memory.Cancel(ctx, run.ID); err != nil {
					return err
				}
				return errBoom
			}
			return nil
		})
		_, err := task.EnqueueMany(context.Background(), k.store, []string{"ok", "ok", "retry", "fail", "snooze", "cancel"})
		require.NoError(t, err)
		k.drain(w)

		at := func(more string) string {
			return "messaging.destination.name=mail,messaging.operation.name=process," + more
		}
		require.Equal(t, map[string]float64{
			"messaging.destination.name=mail,messaging.operation.name=enqueue,stint.job.name=task":                      5,
			"messaging.destination.name=mail,messaging.operation.name=enqueue,stint.duplicate=true,stint.job.name=task": 1,
		}, k.points("messaging.client.sent.messages"))
		require.Equal(t, map[string]float64{at("stint.job.name=task"): 5}, k.points("messaging.client.consumed.messages"))
		process := k.points("messaging.process.duration")
		require.Equal(t, map[string]float64{
			at("stint.job.name=task,stint.outcome=completed"):                        1,
			at("stint.job.name=task,stint.outcome=snoozed"):                          1,
			"error.type=_OTHER," + at("stint.job.name=task,stint.outcome=retried"):   1,
			"error.type=_OTHER," + at("stint.job.name=task,stint.outcome=failed"):    1,
			"error.type=_OTHER," + at("stint.job.name=task,stint.outcome=cancelled"): 1,
		}, process)
		require.Equal(t, map[string]float64{"messaging.destination.name=mail,stint.job.name=task": 5}, k.points("stint.job.wait.duration"))
		require.Equal(t, 1.0, k.points("messaging.client.operation.duration")["messaging.operation.name=enqueue"])
		require.NotZero(t, k.points("messaging.client.operation.duration")["messaging.operation.name=claim"])
		require.NotZero(t, k.points("messaging.client.operation.duration")["messaging.operation.name=ack"])
		require.NotZero(t, k.points("stint.claims")["messaging.destination.name=mail,stint.result=claimed"])
		require.NotZero(t, k.points("stint.claims")["messaging.destination.name=mail,stint.result=empty"])
		require.Empty(t, k.points("stint.hooks.missed"))
	})
}

// TestMetricsOfLosses: leases that are lost, and jobs that a sweep takes back.
func TestMetricsOfLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, stintotel.Options{})
		lost := lossy{k.store}
		w, err := core.NewWorker(lost, core.WorkerOptions{Lease: 3 * time.Second, Hooks: []core.Hooks{k.tel.Hooks()}})
		require.NoError(t, err)
		task := core.NewTask[int]("task")
		task.Handle(w, func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
		_, err = task.Enqueue(context.Background(), k.store, 1)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, w.Run(ctx))
		require.NotZero(t, k.points("stint.job.lost_leases")["messaging.destination.name=default,stint.job.name=task"])
		require.NotZero(t, k.points("stint.job.stalls")["messaging.destination.name=default,stint.job.name=task,stint.state=delayed"])
	})
}

// lossy is a store that loses every lease.
type lossy struct{ core.Store }

func (s lossy) Extend(_ context.Context, ls []core.Lease, _ time.Duration) (core.Extended, error) {
	return core.Extended{Lost: ls}, nil
}

// TestGauges: depth and age of every queue, and zeros of those that have become empty.
func TestGauges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, stintotel.Options{})
		reg, err := k.tel.Gauges(k.store)
		require.NoError(t, err)
		task := core.NewTask[int]("task")
		for _, opts := range [][]core.EnqueueOption{{}, {core.Delay(time.Hour)}, {core.Queue("mail")}} {
			_, err := task.Enqueue(context.Background(), k.store, 1, opts...)
			require.NoError(t, err)
		}
		time.Sleep(90 * time.Second)
		at := func(queue, state string) string {
			return "messaging.destination.name=" + queue + ",stint.state=" + state
		}
		depth := k.points("stint.queue.depth")
		require.Len(t, depth, 6)
		require.Equal(t, 1.0, depth[at("default", "waiting")])
		require.Equal(t, 1.0, depth[at("default", "delayed")])
		require.Equal(t, 0.0, depth[at("default", "active")])
		require.Equal(t, 1.0, depth[at("mail", "waiting")])
		require.Equal(t, 90.0, k.points("stint.queue.waiting.age")["messaging.destination.name=mail"])

		w := k.worker(core.WorkerOptions{})
		task.Handle(w, func(context.Context, int) error { return nil }, core.Queue("mail"))
		k.drain(w)
		depth = k.points("stint.queue.depth")
		require.Len(t, depth, 6, "an empty queue is not silent")
		require.Equal(t, 0.0, depth[at("mail", "waiting")])
		require.Equal(t, 0.0, k.points("stint.queue.waiting.age")["messaging.destination.name=mail"])
		require.NoError(t, reg.Unregister())
		require.Empty(t, k.points("stint.queue.depth"))
	})
}

// TestGaugesNeedAGauger.
func TestGaugesNeedAGauger(t *testing.T) {
	k := newKit(t, stintotel.Options{})
	_, err := k.tel.Gauges(struct{ core.Store }{k.memory})
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// TestConformance: a store that is wrapped has all that it had before, and does the same. Nothing is traced: the suite
// wants jobs back as they came.
func TestConformance(t *testing.T) {
	tel, err := stintotel.New(stintotel.Options{TracerProvider: noop.NewTracerProvider()})
	require.NoError(t, err)
	harness := conformance.Harness{
		New: func(t testing.TB, clock core.Clock) core.Store {
			s := memstore.New(memstore.Options{Clock: clock})
			t.Cleanup(func() { _ = s.Close() })
			return tel.Store(s)
		},
		Open: func(_ testing.TB, s core.Store, _ core.Clock) core.Store { return s },
		Begin: func(_ testing.TB, s core.Store) (core.TxView, func() error, func() error) {
			m, _ := core.As[*memstore.Store](s)
			tx := m.Begin()
			return tel.View(m.WithTx(tx)), tx.Commit, tx.Rollback
		},
	}
	// At least one for each capability; the memory store itself keeps them all.
	for _, name := range []string{
		"enqueue/every-field", "ids/duplicate", "batch/bad-items", "claim/names", "delay/boundary", "ack/complete", "lease/lost",
		"cancel/every-outcome", "list/filters", "counts/counts", "gauges/gauges", "retain/count-and-age", "dedupe/window",
		"schedule/tick", "tx/enqueue-commit", "tx/complete-and-enqueue", "closed/twice", "ended/claim", "realclock/delay",
	} {
		t.Run(name, func(t *testing.T) { conformance.RunCase(t, harness, name) })
	}
}
