package stintotel

import (
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Options of New. The zero value is good to start with.
type Options struct {
	TracerProvider trace.TracerProvider // nil: the global one
	MeterProvider  metric.MeterProvider // nil: the global one
	Edge           Edge                 // how a run's span is tied to its producer's; "": EdgeAuto
}

// Edge is how a run's span is tied to the span that enqueued its job.
type Edge string

// The edges.
const (
	EdgeAuto   Edge = "auto"   // EdgeLink for jobs that were enqueued with a delay, else EdgeParent
	EdgeParent Edge = "parent" // the run is a child of its producer's span
	EdgeLink   Edge = "link"   // the run is the root of a trace of its own, with a link to its producer's span
	EdgeNone   Edge = "none"   // the run is the root of a trace of its own
)

// Telemetry makes spans and metrics. Its methods are safe for concurrent use.
type Telemetry struct {
	tracer trace.Tracer
	meter  metric.Meter
	edge   Edge

	sent, consumed, lost, stalls, claims, missed metric.Int64Counter
	operation, process, wait                     metric.Float64Histogram
}

const scope = "github.com/stintmq/stint/otel"

// The attributes. Those of the conventions are spelled out: the conventions' own package has another path per version.
const (
	systemKey        = attribute.Key("messaging.system")
	operationKey     = attribute.Key("messaging.operation.name")
	operationTypeKey = attribute.Key("messaging.operation.type")
	queueKey         = attribute.Key("messaging.destination.name")
	idKey            = attribute.Key("messaging.message.id")
	batchKey         = attribute.Key("messaging.batch.message_count")
	errorKey         = attribute.Key("error.type")

	nameKey      = attribute.Key("stint.job.name")
	attemptKey   = attribute.Key("stint.job.attempt")
	duplicateKey = attribute.Key("stint.duplicate")
	refusedKey   = attribute.Key("stint.refused")
	outcomeKey   = attribute.Key("stint.outcome")
	stateKey     = attribute.Key("stint.state")
	resultKey    = attribute.Key("stint.result")
	snoozeKey    = attribute.Key("stint.snooze")
)

var system = systemKey.String("stint")

// New makes the instruments. An error says which could not be made, or that Edge is unknown.
func New(opts Options) (*Telemetry, error) {
	if opts.TracerProvider == nil {
		opts.TracerProvider = otel.GetTracerProvider()
	}
	if opts.MeterProvider == nil {
		opts.MeterProvider = otel.GetMeterProvider()
	}
	switch opts.Edge {
	case "":
		opts.Edge = EdgeAuto
	case EdgeAuto, EdgeParent, EdgeLink, EdgeNone:
	default:
		return nil, errors.New("stintotel: unknown edge " + string(opts.Edge))
	}
	t := &Telemetry{tracer: opts.TracerProvider.Tracer(scope), meter: opts.MeterProvider.Meter(scope), edge: opts.Edge}
	return t, t.instruments()
}

func (t *Telemetry) instruments() error {
	var errs []error
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := t.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	seconds := func(name, description string, bounds ...float64) metric.Float64Histogram {
		h, err := t.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	short := []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	long := append(append([]float64{}, short...), 30, 60, 300, 900, 3600, 6*3600) // jobs take, and wait, longer than messages

	t.sent = counter("messaging.client.sent.messages", "{message}", "Jobs that were to be enqueued.")
	t.consumed = counter("messaging.client.consumed.messages", "{message}", "Runs that were started.")
	t.operation = seconds("messaging.client.operation.duration", "Duration of a call of the store.", short...)
	t.process = seconds("messaging.process.duration", "Duration of a run's handler.", long...)
	t.wait = seconds("stint.job.wait.duration", "From when a job was due to its claim.", long...)
	t.lost = counter("stint.job.lost_leases", "{run}", "Runs whose lease was lost.")
	t.stalls = counter("stint.job.stalls", "{job}", "Jobs that were taken back since their lease ran out.")
	t.claims = counter("stint.claims", "{claim}", "Claims per queue.")
	t.missed = counter("stint.hooks.missed", "{event}", "Events that were not measured.")
	return errors.Join(errs...)
}
