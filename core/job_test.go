package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

type email struct{ To, Subject string }

// TestRequest: defaults, derived fields, and options in their order of precedence.
func TestRequest(t *testing.T) {
	job := core.NewJob[email, string]("send", core.JobOptions[email]{
		Queue: "mail", Priority: 3, MaxAttempts: 4, MaxStalls: 2, Timeout: time.Minute,
		Backoff:  core.Fixed(time.Second),
		Key:      func(e email) string { return e.To },
		Metadata: func(e email) map[string]string { return map[string]string{"to": e.To, "kind": "a"} },
		Dedupe:   func(e email) core.Dedupe { return core.Dedupe{Key: e.Subject} },
		Keep:     core.Keep{Completed: core.KeepRule{Age: time.Hour}},
	})
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	r, err := job.Request(t.Context(), email{"a", "b"}, core.WithMetadata(map[string]string{"kind": "b"}), core.At(at))
	require.NoError(t, err)
	require.Equal(t, core.EnqueueRequest{
		Key: "a", Name: "send", Queue: "mail", Payload: []byte(`{"To":"a","Subject":"b"}`),
		Metadata: map[string]string{"to": "a", "kind": "b"}, Priority: 3, MaxAttempts: 4, MaxStalls: 2,
		Backoff: core.Fixed(time.Second), Keep: core.Keep{Completed: core.KeepRule{Age: time.Hour}},
		Timeout: time.Minute, RunAt: at, Dedupe: &core.Dedupe{Key: "b"},
	}, r)
	require.Equal(t, "send:a", r.ResolvedID())

	r, err = job.Request(t.Context(), email{}, core.ID("x"), core.Queue("q"), core.Priority(-9), core.MaxAttempts(1),
		core.WithTimeout(0), core.WithBackoff(core.DefaultBackoff()), core.Delay(time.Hour),
		core.WithDedupe(core.Dedupe{Key: "k", TTL: time.Hour}), core.WithKeep(core.Keep{}))
	require.NoError(t, err)
	require.Equal(t, "x", r.ResolvedID())
	require.Equal(t, "q", r.Queue)
	require.Equal(t, time.Hour, r.Delay)
	require.Equal(t, &core.Dedupe{Key: "k", TTL: time.Hour}, r.Dedupe)

	for field, opts := range map[string][]core.EnqueueOption{
		"RunAt": {core.Delay(0), core.At(at)}, "ID": {core.ID("")}, "Key": nil,
	} {
		_, err := job.Request(t.Context(), email{}, opts...)
		var invalid *core.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
	}
	_, err = job.Request(t.Context(), email{"a", "b"}, core.At(time.Time{}))
	require.Error(t, err)
}

// TestNewJobPanics on what regexp.MustCompile would call a bad expression.
func TestNewJobPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"empty name":   func() { core.NewTask[int]("") },
		"colon":        func() { core.NewTask[int]("a:b") },
		"long name":    func() { core.NewTask[int](strings.Repeat("a", 129)) },
		"bad queue":    func() { core.NewTask[int]("a", core.JobOptions[int]{Queue: "\x00"}) },
		"bad attempts": func() { core.NewTask[int]("a", core.JobOptions[int]{MaxAttempts: -1}) },
		"bad backoff":  func() { core.NewTask[int]("a", core.JobOptions[int]{Backoff: core.Exponential(0, 2, 0)}) },
		"bad keep": func() {
			core.NewTask[int]("a", core.JobOptions[int]{Keep: core.Keep{Failed: core.KeepRule{None: true, Forever: true}}})
		},
	} {
		require.Panics(t, f, name)
	}
}

// TestNilHandler panics when it is registered, not when a job comes.
func TestNilHandler(t *testing.T) {
	w := newWorker(t, memstore.New(memstore.Options{}), core.WorkerOptions{})
	require.Panics(t, func() { core.NewTask[int]("task").Handle(w, nil) })
	require.Panics(t, func() { core.NewJob[int, int]("job").Handle(w, nil) })
}

// TestSuspiciousSetups are warned of.
func TestSuspiciousSetups(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		var log strings.Builder
		w := newWorker(t, s, core.WorkerOptions{
			Logger: slog.New(slog.NewTextHandler(&log, nil)), Queues: map[string]core.QueueOptions{"mial": {}},
		})
		require.NoError(t, start(t, w)())
		require.Contains(t, log.String(), "no handlers yet")
		require.Contains(t, log.String(), "mial")
	})
}

// TestExecute awaits a typed result, and says what became of a job that gave none.
func TestExecute(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{Concurrency: 2})
		job := core.NewJob[int, int]("double", core.JobOptions[int]{MaxAttempts: 1})
		job.Handle(w, func(ctx context.Context, n int) (int, error) {
			switch n {
			case 13:
				return 0, errBoom
			case 99:
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 2 * n, nil
		})
		start(t, w)
		n, err := job.Execute(t.Context(), s, 21)
		require.NoError(t, err)
		require.Equal(t, 42, n)

		_, err = job.Execute(t.Context(), s, 13)
		var jobErr *core.JobError
		require.ErrorAs(t, err, &jobErr)
		require.Equal(t, core.StateFailed, jobErr.State)
		require.Equal(t, "boom", jobErr.Failure.Message)

		id := enqueue(t, job, s, 99)
		synctest.Wait()
		_, err = s.Cancel(t.Context(), id)
		require.NoError(t, err)
		_, err = job.Await(t.Context(), s, id)
		require.ErrorAs(t, err, &jobErr)
		require.Equal(t, core.StateCancelled, jobErr.State)
		require.ErrorIs(t, err, core.ErrCancelled)

		_, err = job.Await(t.Context(), s, "nowhere")
		require.ErrorAs(t, err, &jobErr)
		require.Equal(t, core.State(""), jobErr.State)
		require.ErrorIs(t, err, core.ErrNotFound)

		id = enqueue(t, job, s, 1, core.Delay(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = job.Await(ctx, s, id)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		_, err = job.Await(t.Context(), noInspector{s}, id)
		require.ErrorIs(t, err, errors.ErrUnsupported)
	})
}

type noInspector struct{ core.Store }

// TestResults: a task has none, null is one, and both are awaited (Q9).
func TestResults(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { return nil })
		null := core.NewJob[int, *int]("null")
		null.Handle(w, func(context.Context, int) (*int, error) { return nil, nil })
		raw := core.NewJob[json.RawMessage, json.RawMessage]("raw")
		raw.Handle(w, func(_ context.Context, m json.RawMessage) (json.RawMessage, error) { return m, nil })
		start(t, w)
		e, err := task.Enqueue(t.Context(), s, 1)
		require.NoError(t, err)
		_, err = task.Await(t.Context(), s, e.ID)
		require.NoError(t, err)
		require.Nil(t, get(t, s, e.ID).Result)
		_, err = null.Execute(t.Context(), s, 1, core.ID("null"))
		require.NoError(t, err)
		require.Equal(t, "null", string(get(t, s, "null").Result))
		got, err := raw.Execute(t.Context(), s, json.RawMessage(`{"b":12345678901234567890,"a":[]}`))
		require.NoError(t, err)
		require.Equal(t, `{"b":12345678901234567890,"a":[]}`, string(got))
	})
}

// TestEnqueueMany: items are independent (Q11).
func TestEnqueueMany(t *testing.T) {
	s := memstore.New(memstore.Options{})
	job := core.NewJob[any, int]("job", core.JobOptions[any]{Key: func(v any) string {
		k, _ := v.(string)
		return k
	}})
	res, err := job.EnqueueMany(t.Context(), s, []any{"a", make(chan int), "b", "a", ""})
	require.NoError(t, err)
	require.Equal(t, core.Enqueued{ID: "job:a"}, res[0])
	require.Error(t, res[1].Err)
	require.Equal(t, core.Enqueued{ID: "job:b"}, res[2])
	require.Equal(t, core.Enqueued{ID: "job:a", Duplicate: true}, res[3])
	var invalid *core.InvalidError
	require.ErrorAs(t, res[4].Err, &invalid)
	res, err = job.EnqueueMany(t.Context(), s, nil)
	require.NoError(t, err)
	require.Empty(t, res)
	_, err = job.EnqueueMany(t.Context(), s, []any{"c"}, core.ID("shared"))
	require.ErrorAs(t, err, &invalid)
	_, err = job.Enqueue(t.Context(), s, make(chan int), core.ID("x"))
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "Payload", invalid.Field)
}

// TestRunInfo is what a handler and middleware see.
func TestRunInfo(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		var order []string
		trace := func(name string) core.Middleware {
			return func(next core.HandlerFunc) core.HandlerFunc {
				return func(ctx context.Context, run core.Run, payload []byte) ([]byte, error) {
					order = append(order, name+" "+run.Name)
					defer func() { order = append(order, "/"+name) }()
					return next(ctx, run, payload)
				}
			}
		}
		w := newWorker(t, s, core.WorkerOptions{Middleware: []core.Middleware{trace("outer"), trace("inner")}})
		task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 3, Backoff: core.Fixed(0)})
		var runs []core.Run
		task.Handle(w, func(ctx context.Context, _ int) error {
			run, ok := core.Current(ctx)
			require.True(t, ok)
			runs = append(runs, run)
			if run.Attempt == 1 {
				return errBoom
			}
			return nil
		})
		id := enqueue(t, task.Job, s, 1, core.WithMetadata(map[string]string{"a": "b"}))
		_, err := w.Drain(t.Context(), core.DrainOptions{})
		require.NoError(t, err)
		require.Len(t, runs, 2)
		require.Equal(t, id, runs[1].ID)
		require.Equal(t, 2, runs[1].Attempt)
		require.Equal(t, 3, runs[1].MaxAttempts)
		require.Greater(t, runs[1].Fence, runs[0].Fence)
		require.Equal(t, map[string]string{"a": "b"}, runs[1].Metadata)
		require.Equal(t, []string{"outer task", "inner task", "/inner", "/outer"}, order[:4])
		_, ok := core.Current(t.Context())
		require.False(t, ok)
	})
}

// TestWorkerOptions are refused where they are out of range, naming the field.
func TestWorkerOptions(t *testing.T) {
	s := memstore.New(memstore.Options{})
	for field, opts := range map[string]core.WorkerOptions{
		"Concurrency":     {Concurrency: -1},
		"MaxConcurrent":   {MaxConcurrent: -1},
		"Lease":           {Lease: time.Millisecond},
		"Renew":           {Renew: 20 * time.Second},
		"StalledInterval": {StalledInterval: -1},
		"Poll":            {Poll: 1},
		"ID":              {ID: "a\x00"},
		"Queues":          {Queues: map[string]core.QueueOptions{"a": {Concurrency: -1}}},
	} {
		_, err := core.NewWorker(s, opts)
		var invalid *core.InvalidError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
	_, err := core.NewWorker(nil, core.WorkerOptions{})
	require.Error(t, err)
}

type panickyHandler struct{ slog.Handler }

func (panickyHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (panickyHandler) Handle(context.Context, slog.Record) error { panic("log") }
func (h panickyHandler) WithAttrs([]slog.Attr) slog.Handler      { return h }
func (h panickyHandler) WithGroup(string) slog.Handler           { return h }

// TestPanickingLogger ends no loop (Q19).
func TestPanickingLogger(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		w := newWorker(t, s, core.WorkerOptions{Logger: slog.New(panickyHandler{})})
		task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 2})
		task.Handle(w, func(context.Context, int) error { return errBoom })
		start(t, w)
		id := enqueue(t, task.Job, s, 1)
		time.Sleep(time.Minute)
		require.Equal(t, core.StateFailed, get(t, s, id).State)
	})
}

// TestNothingSecretInLogs: a failure is logged with its reason; payloads, results and metadata never are.
func TestNothingSecretInLogs(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		w := newWorker(t, s, core.WorkerOptions{Logger: logger})
		job := core.NewJob[string, string]("job", core.JobOptions[string]{MaxAttempts: 2})
		job.Handle(w, func(_ context.Context, p string) (string, error) { return p, errBoom })
		stop := start(t, w)
		enqueue(t, job, s, "sesame", core.WithMetadata(map[string]string{"k": "sesame"}))
		time.Sleep(time.Minute)
		require.NoError(t, stop())
		require.Contains(t, log.String(), "job failed")
		require.Contains(t, log.String(), "error=boom")
		require.Contains(t, log.String(), "worker started")
		require.Contains(t, log.String(), "worker stopped")
		require.NotContains(t, log.String(), "sesame")
	})
}
