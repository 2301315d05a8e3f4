package pgstoretest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// benchClaimAck is a claim and its ack, jobs of 20 bytes, from so many goroutines at once.
func benchClaimAck(b *testing.B, k *Kit) {
	for _, c := range []struct{ conns, batch int }{{1, 1}, {1, 10}, {1, 100}, {3, 100}, {1, 500}} {
		b.Run(fmt.Sprintf("%d x %d", c.conns, c.batch), func(b *testing.B) {
			s := k.Own(b)
			const chunk = 20000
			for b.Loop() {
				b.StopTimer()
				fill(b, s, chunk)
				b.StartTimer()
				var claimers sync.WaitGroup
				for range c.conns {
					claimers.Go(func() { drain(b, s, c.batch) })
				}
				claimers.Wait()
			}
			b.ReportMetric(float64(b.N*chunk)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

func fill(b *testing.B, s core.Store, n int) {
	reqs := make([]core.EnqueueRequest, 1000)
	for i := range reqs {
		reqs[i] = Request("job")
		reqs[i].Payload = []byte("twenty bytes of text")
	}
	for ; n > 0; n -= len(reqs) {
		Enqueue(b, s, reqs...)
	}
}

// drain claims and completes until there is nothing.
func drain(b *testing.B, s core.Store, batch int) {
	ctx := context.Background()
	for {
		token := core.NewToken()
		got, err := s.Claim(ctx, core.ClaimRequest{Token: token, Lease: time.Minute, Worker: "w",
			Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: batch}}})
		if err != nil {
			b.Error(err)
		}
		if err != nil || len(got.Jobs) == 0 {
			return
		}
		acks := make([]core.Ack, len(got.Jobs))
		for i, job := range got.Jobs {
			acks[i] = core.Ack{Lease: core.Lease{ID: job.ID, Ref: job.Ref, Token: token}, Outcome: core.OutcomeComplete}
		}
		results, err := s.Ack(ctx, acks)
		if err != nil || results[0].State != core.StateCompleted {
			b.Error(results, err)
			return
		}
	}
}

// benchEnqueue is one call of so many jobs of 20 bytes.
func benchEnqueue(b *testing.B, k *Kit) {
	for _, batch := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			s := k.Own(b)
			reqs := make([]core.EnqueueRequest, batch)
			for i := range reqs {
				reqs[i] = Request("job")
				reqs[i].Payload = []byte("twenty bytes of text")
			}
			for b.Loop() {
				Enqueue(b, s, reqs...)
			}
			b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// benchKeyed is benchEnqueue with dedupe keys: new ones, and such as are taken.
func benchKeyed(b *testing.B, k *Kit) {
	for _, fresh := range []bool{true, false} {
		for _, batch := range []int{1, 10, 1000} {
			b.Run(fmt.Sprintf("%s %d", map[bool]string{true: "new", false: "taken"}[fresh], batch), func(b *testing.B) {
				s := k.Own(b)
				reqs := make([]core.EnqueueRequest, batch)
				n := 0
				renew := func() {
					for i := range reqs {
						n++
						reqs[i] = withKey(fmt.Sprintf("order-%d", n))
						reqs[i].Payload = []byte("twenty bytes of text")
					}
				}
				renew()
				Enqueue(b, s, reqs...)
				for b.Loop() {
					if fresh {
						renew()
					}
					Enqueue(b, s, reqs...)
				}
				b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "jobs/s")
			})
		}
	}
}

// benchPickup is the time from the start of an Enqueue to the end of the Claim of a worker that waited.
func benchPickup(b *testing.B, k *Kit) {
	for _, other := range []bool{false, true} {
		name := map[bool]string{false: "same store", true: "other store"}[other]
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			worker := k.Own(b)
			producer := worker
			if other {
				producer = k.OwnAt(b, k.SchemaOf(worker))
			}
			ready, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for range ready {
					since := Claim(b, worker, 1, "job").Wake
					done <- struct{}{}
					if _, err := worker.AwaitWake(ctx, []string{"q"}, since); err != nil {
						return
					}
					for len(Claim(b, worker, 1, "job").Jobs) == 0 {
						continue
					}
					done <- struct{}{}
				}
			}()
			for b.Loop() {
				b.StopTimer()
				ready <- struct{}{}
				<-done
				b.StartTimer()
				Enqueue(b, producer, Request("job"))
				<-done
			}
			close(ready)
			<-done
		})
	}
}
