package stintotel

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/stintmq/stint/core"
)

// Store wraps a store: each Enqueue has a span, whose context goes into the jobs (core.Trace) unless they carry one
// already, and calls are measured. Everything else that s can do is found by core.As.
func (t *Telemetry) Store(s core.Store) core.Store { return &store{s, t} }

type store struct {
	core.Store
	t *Telemetry
}

// Unwrap lets core.As find the capabilities of the store below.
func (s *store) Unwrap() core.Store { return s.Store }

// Enqueue implements core.Store.
func (s *store) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	return s.t.enqueue(ctx, s.Store, reqs)
}

// Claim implements core.Store.
func (s *store) Claim(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
	began := time.Now()
	claimed, err := s.Store.Claim(ctx, req)
	s.t.measure(ctx, began, "claim", "receive", err)
	return claimed, err
}

// Extend implements core.Store.
func (s *store) Extend(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
	began := time.Now()
	ext, err := s.Store.Extend(ctx, leases, d)
	s.t.measure(ctx, began, "extend", "", err)
	return ext, err
}

// Ack implements core.Store.
func (s *store) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	began := time.Now()
	results, err := s.Store.Ack(ctx, acks)
	s.t.measure(ctx, began, "ack", "settle", err)
	return results, err
}

// View wraps a transaction's view of a store as Store wraps the store.
func (t *Telemetry) View(v core.TxView) core.TxView { return &view{v, t} }

type view struct {
	core.TxView
	t *Telemetry
}

// Enqueue implements core.TxView.
func (v *view) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	return v.t.enqueue(ctx, v.TxView, reqs)
}

// TxStore wraps the views of all transactions.
func TxStore[Tx any](t *Telemetry, s core.TxStore[Tx]) core.TxStore[Tx] { return txStore[Tx]{t, s} }

type txStore[Tx any] struct {
	t *Telemetry
	s core.TxStore[Tx]
}

// WithTx implements core.TxStore.
func (s txStore[Tx]) WithTx(tx Tx) core.TxView { return s.t.View(s.s.WithTx(tx)) }

func (t *Telemetry) enqueue(ctx context.Context, to core.Enqueuer, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	attrs := []attribute.KeyValue{system, operationKey.String("enqueue"), operationTypeKey.String("send")}
	title := "enqueue"
	if len(reqs) > 0 {
		first := &reqs[0]
		if !slices.ContainsFunc(reqs, func(r core.EnqueueRequest) bool { return r.Name != first.Name }) {
			title += " " + first.Name
			attrs = append(attrs, nameKey.String(first.Name))
		}
		if !slices.ContainsFunc(reqs, func(r core.EnqueueRequest) bool { return r.Queue != first.Queue }) {
			attrs = append(attrs, queueKey.String(first.Queue))
		}
	}
	if len(reqs) != 1 {
		attrs = append(attrs, batchKey.Int(len(reqs)))
	}
	began := time.Now()
	ctx, span := t.tracer.Start(ctx, title, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attrs...),
		trace.WithTimestamp(began))
	defer span.End()
	results, err := to.Enqueue(ctx, traced(span.SpanContext(), reqs, began))
	t.measure(ctx, began, "enqueue", "send", err)
	t.count(ctx, reqs, results, err)
	if span.IsRecording() {
		describe(span, results, err)
	}
	return results, err
}

// describe says on a span what became of an enqueue.
func describe(span trace.Span, results []core.EnqueueResult, err error) {
	var refused, duplicates int
	for i := range results {
		if results[i].Err != nil {
			refused++
		} else if results[i].Duplicate {
			duplicates++
		}
	}
	if len(results) == 1 && results[0].ID != "" {
		span.SetAttributes(idKey.String(results[0].ID))
	}
	if duplicates > 0 {
		span.SetAttributes(duplicateKey.Int(duplicates))
	}
	if refused > 0 {
		span.SetAttributes(refusedKey.Int(refused))
	}
	if err == nil && refused > 0 && refused == len(results) {
		err = results[0].Err // it stands for all
	}
	failed(span, err)
}

// failed marks a span as that of a failure, if err is one.
func failed(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetAttributes(errorKey.String(errorType(err)))
		span.SetStatus(codes.Error, err.Error())
	}
}

// count counts jobs by queue, name and what became of them.
func (t *Telemetry) count(ctx context.Context, reqs []core.EnqueueRequest, results []core.EnqueueResult, err error) {
	type kind struct {
		queue, name, failure string
		duplicate            bool
	}
	counts := make(map[kind]int64)
	for i := range reqs {
		k := kind{queue: reqs[i].Queue, name: reqs[i].Name}
		switch {
		case err != nil:
			k.failure = errorType(err)
		case i < len(results) && results[i].Err != nil:
			k.failure = errorType(results[i].Err)
		case i < len(results):
			k.duplicate = results[i].Duplicate
		}
		counts[k]++
	}
	for k, n := range counts {
		attrs := []attribute.KeyValue{system, operationKey.String("enqueue"), queueKey.String(k.queue), nameKey.String(k.name)}
		if k.failure != "" {
			attrs = append(attrs, errorKey.String(k.failure))
		}
		if k.duplicate {
			attrs = append(attrs, duplicateKey.Bool(true))
		}
		t.sent.Add(ctx, n, metric.WithAttributes(attrs...))
	}
}

// measure records the duration of one call of the store.
func (t *Telemetry) measure(ctx context.Context, began time.Time, operation, kind string, err error) {
	attrs := []attribute.KeyValue{system, operationKey.String(operation)}
	if kind != "" {
		attrs = append(attrs, operationTypeKey.String(kind))
	}
	if err != nil {
		attrs = append(attrs, errorKey.String(errorType(err)))
	}
	t.operation.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attrs...))
}

// errorType is a short word for an error of the store, of which there are few.
func errorType(err error) string {
	for _, known := range []struct {
		is   error
		word string
	}{
		{core.ErrUnavailable, "unavailable"}, {core.ErrUnknown, "unknown"}, {core.ErrRetryTx, "retry_tx"},
		{context.Canceled, "cancelled"}, {context.DeadlineExceeded, "timeout"},
	} {
		if errors.Is(err, known.is) {
			return known.word
		}
	}
	switch {
	case is[*core.InvalidError](err):
		return "invalid"
	case is[*core.ConflictError](err):
		return "conflict"
	case is[*core.UnsupportedError](err):
		return "unsupported"
	}
	return "_OTHER"
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
