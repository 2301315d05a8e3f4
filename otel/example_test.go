package stintotel_test

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	stintotel "github.com/stintmq/stint/otel"
)

// A request enqueues a job. What its handler does, maybe hours later in another process, belongs to the same trace.
func Example() {
	ctx := context.Background()
	exporter := tracetest.NewInMemoryExporter() // in a program: OTLP, and providers that are global
	tracing := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	tel, err := stintotel.New(stintotel.Options{TracerProvider: tracing, MeterProvider: sdkmetric.NewMeterProvider()})
	if err != nil {
		panic(err)
	}
	store := tel.Store(memstore.New(memstore.Options{}))
	worker, err := core.NewWorker(store, core.WorkerOptions{
		Middleware: []core.Middleware{tel.Middleware()},
		Hooks:      []core.Hooks{tel.Hooks()},
	})
	if err != nil {
		panic(err)
	}
	gauges, err := tel.Gauges(store)
	if err != nil {
		panic(err)
	}
	defer func() { _ = gauges.Unregister() }()

	welcome := core.NewTask[string]("welcome")
	welcome.Handle(worker, func(context.Context, string) error { return nil })

	request, span := tracing.Tracer("shop").Start(ctx, "POST /users")
	if _, err := welcome.Enqueue(request, store, "ada@example.com"); err != nil {
		panic(err)
	}
	span.End()
	if _, err := worker.Drain(ctx, core.DrainOptions{}); err != nil {
		panic(err)
	}

	for _, s := range exporter.GetSpans() {
		fmt.Println(s.Name, s.SpanKind, s.SpanContext.TraceID() == span.SpanContext().TraceID())
	}
	// Output:
	// enqueue welcome producer true
	// POST /users internal true
	// process welcome consumer true
}

// Inside a transaction, enqueue through a traced view.
func ExampleTxStore() {
	tel, err := stintotel.New(stintotel.Options{})
	if err != nil {
		panic(err)
	}
	memory := memstore.New(memstore.Options{})
	inTx := stintotel.TxStore[*memstore.Transaction](tel, memory)
	welcome := core.NewTask[string]("welcome")

	tx := memory.Begin()
	if _, err := welcome.Enqueue(context.Background(), inTx.WithTx(tx), "ada@example.com"); err != nil {
		panic(err)
	}
	fmt.Println(tx.Commit())
	// Output: <nil>
}
