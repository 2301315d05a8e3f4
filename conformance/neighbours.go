package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
)

// neighbourRounds is how often two claims meet: one that locks too much leaves the other short in most of these rounds.
const neighbourRounds = 30

// concurrentNeighbours has two claims meet where there is as much as both of them ask for, on several priorities.
func concurrentNeighbours(k *kit) {
	const each = 20
	for round := range neighbourRounds {
		reqs := make([]core.EnqueueRequest, 2*each)
		for i := range reqs {
			reqs[i] = request(fmt.Sprintf("job-%d-%d", round, i), prio(i%4))
		}
		for _, r := range k.enqueue(reqs...) {
			k.ok("Enqueue", r.Err)
		}
		var mu sync.Mutex
		var got []int
		k.race(2, func(ctx context.Context, _ int) error {
			c, err := k.store.Claim(ctx, core.ClaimRequest{Wants: wants(each), Token: core.NewToken(), Lease: time.Hour})
			mu.Lock()
			defer mu.Unlock()
			got = append(got, len(c.Jobs))
			return err
		})
		eqs(k, "jobs handed out", got, []int{each, each})
	}
}
