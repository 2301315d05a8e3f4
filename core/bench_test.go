package core_test

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// BenchmarkWorker drains no-op jobs through the whole worker on the memory store and reports the CPU of claim,
// run and ack together; the enqueue before it is not counted. Run it with -benchtime=1000000x. The payload is
// bytes as they are: what encoding/json costs is not the worker's.
func BenchmarkWorker(b *testing.B) {
	for _, takers := range []int{1, 8, 64} {
		b.Run("takers="+strconv.Itoa(takers), func(b *testing.B) { benchmarkWorker(b, takers, nil) })
	}
}

// BenchmarkWorkerHooks is BenchmarkWorker with somebody who listens.
func BenchmarkWorkerHooks(b *testing.B) {
	var told int
	benchmarkWorker(b, 8, []core.Hooks{{
		Start:  func(context.Context, core.Run) { told++ },
		Finish: func(context.Context, core.Finished) { told++ },
	}})
}

func benchmarkWorker(b *testing.B, takers int, hooks []core.Hooks) {
	task := core.NewTask[[]byte]("noop", core.JobOptions[[]byte]{Codec: asIs{}})
	store := memstore.New(memstore.Options{})
	worker, err := core.NewWorker(store, core.WorkerOptions{Concurrency: takers, Hooks: hooks})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var ran atomic.Int64
	task.Handle(worker, func(context.Context, []byte) error {
		if ran.Add(1) == int64(b.N) {
			cancel()
		}
		return nil
	})
	payloads := make([][]byte, min(b.N, 1000))
	for left := b.N; left > 0; left -= len(payloads) {
		payloads = payloads[:min(left, len(payloads))]
		if _, err := task.EnqueueMany(ctx, store, payloads); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC() // the backlog's garbage is not the worker's
	b.ResetTimer()
	b.ReportAllocs()
	before := cpu()
	if err := worker.Run(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N)/1000, "cpu-µs/job")
	counts, err := store.Counts(context.Background(), "")
	if err != nil || counts[core.StateCompleted] != int64(b.N) {
		b.Fatalf("counts %v, error %v", counts, err)
	}
}

// BenchmarkChannel is what a plain channel costs with as many takers, for comparison.
func BenchmarkChannel(b *testing.B) {
	for _, takers := range []int{1, 8, 64} {
		b.Run("takers="+strconv.Itoa(takers), func(b *testing.B) {
			jobs := make(chan int, 1024)
			done := make(chan struct{})
			before := cpu()
			for range takers {
				go func() {
					for range jobs {
					}
					done <- struct{}{}
				}()
			}
			for i := range b.N {
				jobs <- i
			}
			close(jobs)
			for range takers {
				<-done
			}
			b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N)/1000, "cpu-µs/job")
		})
	}
}

// cpu is the process's user and system time so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// asIs is a codec for bytes.
type asIs struct{}

func (asIs) Marshal(v any) ([]byte, error)      { return v.([]byte), nil }
func (asIs) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
