package stintotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/stintmq/stint/core"
)

// Hooks measure what a worker does: what the store did, never what was asked of it (Q6).
func (t *Telemetry) Hooks() core.Hooks {
	return core.Hooks{
		Start: func(ctx context.Context, r core.Run) {
			t.consumed.Add(ctx, 1, metric.WithAttributes(ofRun(r)...))
		},
		Finish: t.finish,
		LeaseLost: func(ctx context.Context, l core.LostLease) {
			t.lost.Add(ctx, 1, metric.WithAttributes(queueKey.String(l.Run.Queue), nameKey.String(l.Run.Name)))
		},
		Stall: func(ctx context.Context, r core.Recovered) {
			t.stalls.Add(ctx, 1, metric.WithAttributes(queueKey.String(r.Queue), nameKey.String(r.Name), stateKey.String(string(r.State))))
		},
		Claim:  t.claim,
		Missed: func(ctx context.Context, n int) { t.missed.Add(ctx, int64(n)) },
	}
}

func ofRun(r core.Run) []attribute.KeyValue {
	return []attribute.KeyValue{system, operationKey.String("process"), queueKey.String(r.Queue), nameKey.String(r.Name)}
}

func (t *Telemetry) finish(ctx context.Context, f core.Finished) {
	t.wait.Record(ctx, f.Wait.Seconds(), metric.WithAttributes(queueKey.String(f.Run.Queue), nameKey.String(f.Run.Name)))
	attrs := append(ofRun(f.Run), outcomeKey.String(outcome(f)))
	if f.Failure != nil {
		attrs = append(attrs, errorKey.String(failureType(f.Failure)))
	}
	t.process.Record(ctx, f.Ran.Seconds(), metric.WithAttributes(attrs...))
}

// outcome is a word for what became of a run.
func outcome(f core.Finished) string {
	if f.State.Terminal() {
		return string(f.State)
	}
	switch f.Outcome {
	case core.OutcomeRetry:
		return "retried"
	case core.OutcomeSnooze:
		return "snoozed"
	}
	return "released"
}

// The types of errors in metrics are few: a handler may wrap anything.
func failureType(f *core.Failure) string {
	switch {
	case f.Panic:
		return "panic"
	case f.Timeout:
		return "timeout"
	}
	return "_OTHER"
}

// runErrorType is failureType for what a handler returned.
func runErrorType(ctx context.Context, err error) string {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, core.ErrTimeout):
		return "timeout"
	case errors.Is(cause, core.ErrCancelled):
		return "cancelled"
	case errors.Is(cause, core.ErrLeaseLost), errors.Is(cause, core.ErrLeaseDoubtful):
		return "lease_lost"
	case errors.Is(cause, core.ErrStopping):
		return "stopping"
	}
	return errorType(err)
}

func (t *Telemetry) claim(ctx context.Context, c core.ClaimCall) {
	for _, q := range c.Queues {
		result := "claimed"
		switch {
		case c.Err != nil:
			result = "error"
		case q.Got == 0:
			result = "empty"
		}
		t.claims.Add(ctx, 1, metric.WithAttributes(queueKey.String(q.Queue), resultKey.String(result)))
	}
}
