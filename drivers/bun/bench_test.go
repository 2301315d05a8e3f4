package bunstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	bunstore "github.com/stintmq/stint/drivers/bun"
)

// BenchmarkClaimAck is a claim and its ack, one connection, jobs of 20 bytes.
func BenchmarkClaimAck(b *testing.B) {
	for _, sync := range []string{"NORMAL", "FULL"} {
		for _, batch := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("%s/%d", sync, batch), func(b *testing.B) { claimAck(b, batch, sync) })
		}
	}
}

func claimAck(b *testing.B, batch int, sync string) {
	ctx := context.Background()
	s := open(b, bunstore.Options{Synchronous: sync})
	fill := func(n int) {
		reqs := make([]core.EnqueueRequest, 1000)
		for i := range reqs {
			reqs[i] = request("job")
			reqs[i].Payload = []byte("twenty bytes of text")
		}
		for ; n > 0; n -= len(reqs) {
			enqueue(b, s, reqs...)
		}
	}
	left := 0
	for b.Loop() {
		if left < batch {
			b.StopTimer()
			fill(20000)
			left += 20000
			b.StartTimer()
		}
		token := core.NewToken()
		got, err := s.Claim(ctx, core.ClaimRequest{Token: token, Lease: time.Minute, Worker: "w",
			Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: batch}}})
		if err != nil || len(got.Jobs) != batch {
			b.Fatal(len(got.Jobs), err)
		}
		acks := make([]core.Ack, batch)
		for i, job := range got.Jobs {
			acks[i] = core.Ack{Lease: core.Lease{ID: job.ID, Ref: job.Ref, Token: token}, Outcome: core.OutcomeComplete}
		}
		results, err := s.Ack(ctx, acks)
		if err != nil || results[batch-1].State != core.StateCompleted {
			b.Fatal(results, err)
		}
		left -= batch
	}
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkEnqueue is one call of so many jobs of 20 bytes.
func BenchmarkEnqueue(b *testing.B) {
	for _, batch := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			s := open(b)
			reqs := make([]core.EnqueueRequest, batch)
			for i := range reqs {
				reqs[i] = request("job")
				reqs[i].Payload = []byte("twenty bytes of text")
			}
			for b.Loop() {
				enqueue(b, s, reqs...)
			}
			b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkReadNews is what somebody who waits costs, 50 times a second.
func BenchmarkReadNews(b *testing.B) {
	s := open(b)
	enqueue(b, s, request("job"))
	for b.Loop() {
		if _, err := s.AwaitWake(context.Background(), nil, ""); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPickup is the time from the start of an Enqueue to the end of the Claim of a worker that waited.
func BenchmarkPickup(b *testing.B) {
	for _, other := range []bool{false, true} {
		name := map[bool]string{false: "same handle", true: "other handle"}[other]
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			worker := open(b)
			producer := worker
			if other {
				producer = openAt(b, pathOf(b, worker))
			}
			ready, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for range ready {
					since := claim(b, worker, 1, "job").Wake
					done <- struct{}{}
					if _, err := worker.AwaitWake(ctx, []string{"q"}, since); err != nil {
						return
					}
					claim(b, worker, 1, "job")
					done <- struct{}{}
				}
			}()
			for b.Loop() {
				b.StopTimer()
				ready <- struct{}{}
				<-done
				b.StartTimer()
				enqueue(b, producer, request("job"))
				<-done
			}
			close(ready)
			<-done
		})
	}
}
