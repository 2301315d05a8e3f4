package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// BenchmarkStore takes jobs through their life in batches: enqueue, claim, complete. ns/op and allocs/op are per
// job. A backlog of waiting, of delayed and of another name's jobs must matter little. Finished jobs are removed now
// and then, off the clock: the garbage collector goes through all that stay.
func BenchmarkStore(b *testing.B) {
	for _, backlog := range []int{0, 100_000} {
		for _, batch := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("backlog=%d/batch=%d", backlog, batch), func(b *testing.B) {
				s := memstore.New(memstore.Options{})
				fill(b, s, backlog)
				reqs := make([]core.EnqueueRequest, batch)
				for i := range reqs {
					reqs[i] = request("work")
					reqs[i].Payload = []byte(`{"to":"somebody@example.org"}`)
				}
				claim := core.ClaimRequest{Wants: want("q", batch, "work"), Lease: time.Minute, Worker: "w"}
				acks := make([]core.Ack, batch)
				var finished []string
				b.ReportAllocs()
				b.ResetTimer()
				for n := 0; n < b.N; n += batch {
					if _, err := s.Enqueue(b.Context(), reqs); err != nil {
						b.Fatal(err)
					}
					claim.Token = core.NewToken()
					got, err := s.Claim(b.Context(), claim)
					if err != nil || len(got.Jobs) != batch {
						b.Fatal(len(got.Jobs), err)
					}
					for i, j := range got.Jobs {
						finished = append(finished, j.ID)
						acks[i] = core.Ack{Lease: core.Lease{ID: j.ID, Ref: j.Ref, Token: claim.Token}, Outcome: core.OutcomeComplete}
					}
					if _, err := s.Ack(b.Context(), acks); err != nil {
						b.Fatal(err)
					}
					if len(finished) >= 16<<10 {
						b.StopTimer()
						remove(b, s, finished)
						finished = finished[:0]
						b.StartTimer()
					}
				}
			})
		}
	}
}

// BenchmarkCounts must not depend on the number of jobs (Q27).
func BenchmarkCounts(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			s := memstore.New(memstore.Options{})
			fill(b, s, n)
			for b.Loop() {
				if _, err := s.Counts(b.Context(), ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fill adds n jobs each that wait, that are delayed, and that have a name which nobody asks for.
func fill(b *testing.B, s *memstore.Store, n int) {
	b.Helper()
	for range n {
		late, other := request("work"), request("other")
		late.Delay = time.Hour
		if _, err := s.Enqueue(b.Context(), []core.EnqueueRequest{request("work"), late, other}); err != nil {
			b.Fatal(err)
		}
	}
}

func remove(b *testing.B, s *memstore.Store, ids []string) {
	b.Helper()
	for _, id := range ids {
		if ok, err := s.Remove(b.Context(), id); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
