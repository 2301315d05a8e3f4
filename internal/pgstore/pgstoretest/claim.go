package pgstoretest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// claimsLockNoMoreThanTheyTake: with 40 jobs on four priorities, two claims of 20 at once get 20 each. One that
// locked more than it took would leave the other with less.
func claimsLockNoMoreThanTheyTake(t testing.TB, k *Kit) {
	s := k.Open(t, nil)
	for range 50 {
		var reqs []core.EnqueueRequest
		for i := range 40 {
			r := Request("job")
			r.Priority = i % 4
			reqs = append(reqs, r)
		}
		Enqueue(t, s, reqs...)
		var got [2]core.Claimed
		var both sync.WaitGroup
		for i := range got {
			both.Go(func() {
				got[i], _ = s.Claim(context.Background(), core.ClaimRequest{Token: core.NewToken(), Lease: time.Minute, Worker: "w",
					Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 20}}})
			})
		}
		both.Wait()
		require.Len(t, got[0].Jobs, 20)
		require.Len(t, got[1].Jobs, 20)
	}
}
