package stintotel

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/stintmq/stint/core"
)

// Middleware makes a span of each run, tied to the span that enqueued the job as Options.Edge says. It is in the
// handler's context. An error, a panic and runtime.Goexit mark it as failed; Snooze does not.
func (t *Telemetry) Middleware() core.Middleware {
	return func(next core.HandlerFunc) core.HandlerFunc {
		return func(ctx context.Context, run core.Run, payload []byte) ([]byte, error) {
			ctx, span := t.start(ctx, run)
			returned := false
			// Without recover, so that the worker sees where the panic was.
			defer func() {
				if !returned {
					span.SetAttributes(errorKey.String("panic"))
					span.SetStatus(codes.Error, "the handler panicked, or called runtime.Goexit")
				}
				span.End()
			}()
			result, err := next(ctx, run, payload)
			returned = true
			if d, ok := core.SnoozedFor(err); ok {
				span.SetAttributes(snoozeKey.Float64(d.Seconds()))
			} else if err != nil {
				span.RecordError(err)
				span.SetAttributes(errorKey.String(runErrorType(ctx, err)))
				span.SetStatus(codes.Error, err.Error())
			}
			return result, err
		}
	}
}

func (t *Telemetry) start(ctx context.Context, run core.Run) (context.Context, trace.Span) {
	opts := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(system, operationKey.String("process"), operationTypeKey.String("process"),
			queueKey.String(run.Queue), idKey.String(run.ID), nameKey.String(run.Name), attemptKey.Int(run.Attempt)),
	}
	producer, edge := producerOf(run.Trace), t.edge
	if edge == EdgeAuto {
		if edge = EdgeParent; run.Trace != nil && run.Trace.Delayed {
			edge = EdgeLink
		}
	}
	switch {
	case !producer.IsValid() || edge == EdgeNone:
		opts = append(opts, trace.WithNewRoot()) // whatever span the worker was started in
	case edge == EdgeLink:
		opts = append(opts, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: producer}))
	default:
		ctx = trace.ContextWithRemoteSpanContext(ctx, producer)
	}
	return t.tracer.Start(ctx, "process "+run.Name, opts...)
}
