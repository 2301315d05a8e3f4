package stintotel

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/stintmq/stint/core"
)

// The W3C text of a span context is what core.Trace holds, whatever propagators the program uses elsewhere. Baggage is not
// kept: it would outlive its request by as much as the job does.
var w3c propagation.TraceContext

// traced returns the requests with the producer's context in them. The caller's stay as they are (Q13).
func traced(producer trace.SpanContext, reqs []core.EnqueueRequest, now time.Time) []core.EnqueueRequest {
	if !producer.IsValid() {
		return reqs
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(trace.ContextWithSpanContext(context.Background(), producer), carrier)
	if len(carrier["tracestate"]) > core.MaxIDBytes {
		delete(carrier, "tracestate") // what vendors add, and no reason to refuse a job
	}
	out := slices.Clone(reqs)
	for i := range out {
		if out[i].Trace != nil {
			continue // somebody gave it a context of its own
		}
		out[i].Trace = &core.Trace{
			Parent: carrier["traceparent"], State: carrier["tracestate"],
			Delayed: out[i].Delay > 0 || out[i].RunAt.After(now),
		}
	}
	return out
}

// producerOf reads what traced wrote; it is not valid if there is nothing, or nothing that can be read.
func producerOf(t *core.Trace) trace.SpanContext {
	if t == nil {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": t.Parent, "tracestate": t.State}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), carrier))
}
