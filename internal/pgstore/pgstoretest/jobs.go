package pgstoretest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

func withID(id string) core.EnqueueRequest {
	r := Request("job")
	r.ID = id
	return r
}

// begin has a store listen, and returns a token from before it does: whoever waits with that returns once it does.
func begin(t testing.TB, s core.Store) core.WakeToken {
	t.Helper()
	wake, err := s.AwaitWake(context.Background(), nil, "")
	require.NoError(t, err)
	return wake.Token
}

// Request asks for a job on queue q.
func Request(name string) core.EnqueueRequest {
	return core.EnqueueRequest{Name: name, Queue: "q", Payload: []byte(`{"n":1}`), MaxAttempts: 3, Backoff: core.DefaultBackoff()}
}

// Claim claims from queue q.
func Claim(t testing.TB, s core.Store, limit int, names ...string) core.Claimed {
	t.Helper()
	got, err := s.Claim(context.Background(), core.ClaimRequest{
		Wants: []core.Want{{Queue: "q", Names: names, Limit: limit}},
		Token: core.NewToken(), Lease: time.Minute, Worker: "w",
	})
	require.NoError(t, err)
	return got
}

// Enqueue enqueues what nothing refuses.
func Enqueue(t testing.TB, s core.Enqueuer, reqs ...core.EnqueueRequest) []core.EnqueueResult {
	t.Helper()
	res, err := s.Enqueue(context.Background(), reqs)
	require.NoError(t, err)
	for _, r := range res {
		require.NoError(t, r.Err)
	}
	return res
}

func leases(c core.Claimed, token string) []core.Lease {
	list := make([]core.Lease, len(c.Jobs))
	for i, j := range c.Jobs {
		list[i] = core.Lease{ID: j.ID, Ref: j.Ref, Token: token}
	}
	return list
}

// Take claims n jobs and returns their leases.
func Take(t testing.TB, s core.Store, n int) []core.Lease {
	t.Helper()
	token := core.NewToken()
	got, err := s.Claim(context.Background(), core.ClaimRequest{
		Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: n}}, Token: token, Lease: time.Minute, Worker: "w"})
	require.NoError(t, err)
	require.Len(t, got.Jobs, n)
	return leases(got, token)
}

// AckAll completes jobs that are held.
func AckAll(t testing.TB, s core.Store, held []core.Lease) {
	t.Helper()
	acks := make([]core.Ack, len(held))
	for i := range held {
		acks[i] = core.Ack{Lease: held[i], Outcome: core.OutcomeComplete}
	}
	res, err := s.Ack(context.Background(), acks)
	require.NoError(t, err)
	for _, r := range res {
		require.Equal(t, core.AckResult{State: core.StateCompleted}, r)
	}
}
