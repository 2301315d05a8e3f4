package stintotel_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	stintotel "github.com/stintmq/stint/otel"
)

var errBoom = errors.New("boom")

// TestEdges: a run is tied to its producer's span as the options and the job's delay say.
func TestEdges(t *testing.T) {
	const child, link, alone = "child", "link", "alone"
	for _, c := range []struct {
		edge    stintotel.Edge
		delayed bool
		want    string
	}{
		{"", false, child}, {"", true, link},
		{stintotel.EdgeAuto, false, child}, {stintotel.EdgeAuto, true, link},
		{stintotel.EdgeParent, false, child}, {stintotel.EdgeParent, true, child},
		{stintotel.EdgeLink, false, link}, {stintotel.EdgeLink, true, link},
		{stintotel.EdgeNone, false, alone}, {stintotel.EdgeNone, true, alone},
	} {
		k := newKit(t, stintotel.Options{Edge: c.edge})
		w := k.worker(core.WorkerOptions{})
		task := core.NewTask[int]("task", core.JobOptions[int]{Queue: "mail"})
		var inner trace.SpanContext
		task.Handle(w, func(ctx context.Context, _ int) error {
			inner = trace.SpanContextFromContext(ctx)
			return nil
		})
		ctx, request := k.tracer.Start(context.Background(), "request")
		var opts []core.EnqueueOption
		if c.delayed {
			opts = append(opts, core.Delay(time.Nanosecond*1000))
		}
		e, err := task.Enqueue(ctx, k.store, 1, opts...)
		require.NoError(t, err)
		request.End()
		_, background := k.tracer.Start(context.Background(), "a span that the worker lives in")
		time.Sleep(time.Millisecond) // past the delay
		_, err = w.Drain(trace.ContextWithSpan(context.Background(), background), core.DrainOptions{})
		require.NoError(t, err)

		send, run := k.span("enqueue task"), k.span("process task")
		require.Equal(t, request.SpanContext().SpanID(), send.Parent().SpanID())
		require.Equal(t, trace.SpanKindProducer, send.SpanKind())
		require.Equal(t, trace.SpanKindConsumer, run.SpanKind())
		require.Equal(t, run.SpanContext(), inner, "the handler is inside")
		require.Equal(t, map[string]string{
			"messaging.system": "stint", "messaging.operation.name": "process", "messaging.operation.type": "process",
			"messaging.destination.name": "mail", "messaging.message.id": e.ID, "stint.job.name": "task", "stint.job.attempt": "1",
		}, attrs(run))
		require.Equal(t, map[string]string{
			"messaging.system": "stint", "messaging.operation.name": "enqueue", "messaging.operation.type": "send",
			"messaging.destination.name": "mail", "messaging.message.id": e.ID, "stint.job.name": "task",
		}, attrs(send))
		sameTrace := run.SpanContext().TraceID() == send.SpanContext().TraceID()
		switch c.want {
		case child:
			require.True(t, sameTrace)
			require.Equal(t, send.SpanContext().SpanID(), run.Parent().SpanID())
			require.True(t, run.Parent().IsRemote())
			require.Empty(t, run.Links())
		case link:
			require.False(t, sameTrace)
			require.False(t, run.Parent().IsValid())
			require.Len(t, run.Links(), 1)
			require.Equal(t, send.SpanContext().SpanID(), run.Links()[0].SpanContext.SpanID())
		case alone:
			require.False(t, sameTrace)
			require.False(t, run.Parent().IsValid())
			require.Empty(t, run.Links())
		}
	}
	_, err := stintotel.New(stintotel.Options{Edge: "sideways"})
	require.Error(t, err)
}

// TestNoProducer: a job that carries no trace, or one that can't be read, is the root of one.
func TestNoProducer(t *testing.T) {
	for _, tr := range []*core.Trace{nil, {Parent: "what is this"}} {
		k := newKit(t, stintotel.Options{})
		w := k.worker(core.WorkerOptions{})
		task := core.NewTask[int]("task")
		task.Handle(w, func(context.Context, int) error { return nil })
		req, err := task.Request(context.Background(), 1)
		require.NoError(t, err)
		req.Trace = tr
		_, err = k.memory.Enqueue(context.Background(), []core.EnqueueRequest{req})
		require.NoError(t, err)
		k.drain(w)
		require.False(t, k.span("process task").Parent().IsValid())
		require.Empty(t, k.span("process task").Links())
	}
}

// TestStoredContext: what is stored is W3C text; a context that a job brings along is left alone, and the caller's slice
// too (Q13); a tracestate that is too long for a job is left out.
func TestStoredContext(t *testing.T) {
	k := newKit(t, stintotel.Options{})
	own := &core.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	reqs := []core.EnqueueRequest{
		{ID: "a", Name: "task", Queue: "q", MaxAttempts: 1},
		{ID: "b", Name: "task", Queue: "q", MaxAttempts: 1, Trace: own},
		{ID: "c", Name: "task", Queue: "q", MaxAttempts: 1, RunAt: time.Now().Add(time.Hour)},
		{ID: "d", Name: "task", Queue: "q", MaxAttempts: 1, RunAt: time.Now().Add(-time.Hour)},
	}
	_, err := k.store.Enqueue(context.Background(), reqs)
	require.NoError(t, err)
	require.Nil(t, reqs[0].Trace)
	send := k.span("enqueue task").SpanContext()
	stored := func(id string) core.Trace {
		rec, err := k.memory.Get(context.Background(), id)
		require.NoError(t, err)
		return *rec.Trace
	}
	parent := "00-" + send.TraceID().String() + "-" + send.SpanID().String() + "-01"
	require.Equal(t, core.Trace{Parent: parent}, stored("a"))
	require.Equal(t, *own, stored("b"))
	require.Equal(t, core.Trace{Parent: parent, Delayed: true}, stored("c"))
	require.Equal(t, core.Trace{Parent: parent}, stored("d"))

	for state, kept := range map[string]bool{"a=1": true, "a=" + strings.Repeat("x", 200) + ",b=" + strings.Repeat("x", 200) + ",c=" + strings.Repeat("x", 200): false} {
		ts, err := trace.ParseTraceState(state)
		require.NoError(t, err)
		ctx := trace.ContextWithSpanContext(context.Background(), send.WithTraceState(ts))
		res, err := k.store.Enqueue(ctx, reqs[:1:1])
		require.NoError(t, err)
		require.NoError(t, res[0].Err)
		id := map[bool]string{true: "kept", false: "dropped"}[kept]
		res, err = k.store.Enqueue(ctx, []core.EnqueueRequest{{ID: id, Name: "task", Queue: "q", MaxAttempts: 1}})
		require.NoError(t, err)
		require.NoError(t, res[0].Err)
		require.Equal(t, kept, stored(id).State == state)
	}
}

// TestWithoutSDK: a program that traces nothing passes its caller's context on, and stores none if there is none.
func TestWithoutSDK(t *testing.T) {
	memory := memstore.New(memstore.Options{})
	tel, err := stintotel.New(stintotel.Options{TracerProvider: noop.NewTracerProvider()})
	require.NoError(t, err)
	task := core.NewTask[int]("task")
	e, err := task.Enqueue(context.Background(), tel.Store(memory), 1)
	require.NoError(t, err)
	rec, err := memory.Get(context.Background(), e.ID)
	require.NoError(t, err)
	require.Nil(t, rec.Trace)
	caller := newKit(t, stintotel.Options{})
	ctx, span := caller.tracer.Start(context.Background(), "request")
	e, err = task.Enqueue(ctx, tel.Store(memory), 1)
	require.NoError(t, err)
	rec, err = memory.Get(context.Background(), e.ID)
	require.NoError(t, err)
	require.Contains(t, rec.Trace.Parent, span.SpanContext().SpanID().String())
}

// TestTransactions are traced through View and TxStore.
func TestTransactions(t *testing.T) {
	k := newKit(t, stintotel.Options{})
	task := core.NewTask[int]("task")
	for _, in := range []func(*memstore.Transaction) core.TxView{
		func(tx *memstore.Transaction) core.TxView { return k.tel.View(k.memory.WithTx(tx)) },
		stintotel.TxStore(k.tel, core.TxStore[*memstore.Transaction](k.memory)).WithTx,
	} {
		tx := k.memory.Begin()
		e, err := task.Enqueue(context.Background(), in(tx), 1)
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		rec, err := k.memory.Get(context.Background(), e.ID)
		require.NoError(t, err)
		require.NotNil(t, rec.Trace)
	}
	require.Len(t, k.named("enqueue task"), 2)
}

// TestSpansOfFailures: what went wrong is on the span, and what did not is not.
func TestSpansOfFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		do     func(ctx context.Context) error
		status codes.Code
		kind   string
	}{
		{"nil", func(context.Context) error { return nil }, codes.Unset, ""},
		{"error", func(context.Context) error { return errBoom }, codes.Error, "_OTHER"},
		{"snooze", func(context.Context) error { return core.Snooze(time.Hour) }, codes.Unset, ""},
		{"panic", func(context.Context) error { panic("no") }, codes.Error, "panic"},
		{"goexit", func(context.Context) error { runtime.Goexit(); return nil }, codes.Error, "panic"},
		{"timeout", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, codes.Error, "timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKit(t, stintotel.Options{})
			w := k.worker(core.WorkerOptions{})
			task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 1, Timeout: 10 * time.Millisecond})
			task.Handle(w, func(ctx context.Context, _ int) error { return c.do(ctx) })
			_, err := task.Enqueue(context.Background(), k.store, 1)
			require.NoError(t, err)
			k.drain(w)
			span := k.span("process task")
			require.Equal(t, c.status, span.Status().Code)
			require.Equal(t, c.kind, attrs(span)["error.type"])
		})
	}
}

// TestSpansOfBatches say how many there were, and fail only if all did.
func TestSpansOfBatches(t *testing.T) {
	k := newKit(t, stintotel.Options{})
	good := core.EnqueueRequest{ID: "a", Name: "a", Queue: "q", MaxAttempts: 1}
	bad := core.EnqueueRequest{Name: "b", Queue: "q"}
	_, err := k.store.Enqueue(context.Background(), []core.EnqueueRequest{good, good, bad})
	require.NoError(t, err)
	span := k.span("enqueue")
	require.Equal(t, codes.Unset, span.Status().Code)
	a := attrs(span)
	require.Equal(t, "3", a["messaging.batch.message_count"])
	require.Equal(t, "q", a["messaging.destination.name"])
	require.Equal(t, "1", a["stint.duplicate"])
	require.Equal(t, "1", a["stint.refused"])
	_, err = k.store.Enqueue(context.Background(), []core.EnqueueRequest{bad})
	require.NoError(t, err)
	require.Equal(t, codes.Error, k.span("enqueue b").Status().Code)
	require.Equal(t, "invalid", attrs(k.span("enqueue b"))["error.type"])
	require.NoError(t, k.memory.Close())
	_, err = k.store.Enqueue(context.Background(), []core.EnqueueRequest{good})
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.Equal(t, "unavailable", attrs(k.span("enqueue a"))["error.type"])
}
