package memstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// clock is a time that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newStore is an empty store whose invariants are checked when the test ends.
func newStore(t *testing.T) (*memstore.Store, *clock) {
	t.Helper()
	c := &clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := memstore.New(memstore.Options{Clock: c})
	t.Cleanup(func() {
		require.NoError(t, s.CheckInvariants())
		require.NoError(t, s.Close())
	})
	return s, c
}

// request is a valid request on queue q.
func request(name string) core.EnqueueRequest {
	return core.EnqueueRequest{Name: name, Queue: "q", MaxAttempts: 3}
}

func want(queue string, limit int, names ...string) []core.Want {
	return []core.Want{{Queue: queue, Names: names, Limit: limit}}
}

// enqueue inserts one job and returns its id.
func enqueue(t *testing.T, to core.Enqueuer, r core.EnqueueRequest) string {
	t.Helper()
	res, err := to.Enqueue(t.Context(), []core.EnqueueRequest{r})
	require.NoError(t, err)
	require.NoError(t, res[0].Err)
	return res[0].ID
}

// claim leases up to limit jobs of queue q for 30 s.
func claim(t *testing.T, s core.Store, limit int, names ...string) (core.Claimed, string) {
	t.Helper()
	token := core.NewToken()
	got, err := s.Claim(t.Context(), core.ClaimRequest{
		Wants: want("q", limit, names...), Token: token, Lease: 30 * time.Second, Worker: "w",
	})
	require.NoError(t, err)
	return got, token
}

// claimOne leases the one job that there must be.
func claimOne(t *testing.T, s core.Store, name string) core.Lease {
	t.Helper()
	got, token := claim(t, s, 1, name)
	require.Len(t, got.Jobs, 1)
	return core.Lease{ID: got.Jobs[0].ID, Token: token, Ref: got.Jobs[0].Ref}
}

func ids(jobs []core.Record) []string {
	var out []string
	for _, j := range jobs {
		out = append(out, j.ID)
	}
	return out
}
