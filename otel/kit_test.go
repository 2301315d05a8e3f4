package stintotel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	stintotel "github.com/stintmq/stint/otel"
)

// kit is a store that is traced and measured, and what was recorded.
type kit struct {
	*testing.T
	tel    *stintotel.Telemetry
	memory *memstore.Store
	store  core.Store
	tracer trace.Tracer // the program's own
	spans  *tracetest.SpanRecorder
	reader *metric.ManualReader
}

func newKit(t *testing.T, opts stintotel.Options) *kit {
	k := &kit{T: t, memory: memstore.New(memstore.Options{}), spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(k.spans))
	opts.TracerProvider = provider
	opts.MeterProvider = metric.NewMeterProvider(metric.WithReader(k.reader))
	k.tracer = provider.Tracer("test")
	var err error
	k.tel, err = stintotel.New(opts)
	require.NoError(t, err)
	k.store = k.tel.Store(k.memory)
	return k
}

func (k *kit) worker(opts core.WorkerOptions) *core.Worker {
	k.Helper()
	opts.Middleware = append(opts.Middleware, k.tel.Middleware())
	opts.Hooks = append(opts.Hooks, k.tel.Hooks())
	w, err := core.NewWorker(k.store, opts)
	require.NoError(k, err)
	return w
}

func (k *kit) drain(w *core.Worker) {
	k.Helper()
	_, err := w.Drain(context.Background(), core.DrainOptions{})
	require.NoError(k, err)
}

// span returns the only span of a name that ended, or the nth.
func (k *kit) named(name string) []sdktrace.ReadOnlySpan {
	var found []sdktrace.ReadOnlySpan
	for _, s := range k.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

func (k *kit) span(name string) sdktrace.ReadOnlySpan {
	k.Helper()
	found := k.named(name)
	require.Len(k, found, 1, name)
	return found[0]
}

// points are the values of a metric by their attributes: sums, gauges, and counts of histograms.
func (k *kit) points(name string) map[string]float64 {
	k.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(k, k.reader.Collect(context.Background(), &all))
	points := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					points[label(p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					points[label(p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					points[label(p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					points[label(p.Attributes)] = float64(p.Count)
				}
			default:
				k.Fatalf("%s is a %T", name, data)
			}
		}
	}
	return points
}

// label is a set of attributes without what is the same on all.
func label(set attribute.Set) string {
	rest, _ := set.Filter(func(kv attribute.KeyValue) bool {
		return kv.Key != "messaging.system" && kv.Key != "messaging.operation.type"
	})
	return rest.Encoded(attribute.DefaultEncoder())
}

func attrs(s sdktrace.ReadOnlySpan) map[string]string {
	m := map[string]string{}
	for _, kv := range s.Attributes() {
		m[string(kv.Key)] = kv.Value.String()
	}
	return m
}
