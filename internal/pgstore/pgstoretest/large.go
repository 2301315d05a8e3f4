package pgstoretest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// LargePayloads enqueues five jobs of 16 MiB in one call of a store that takes 64 MiB, and one of 20 MiB. A claim hands
// out 16 MiB at most, but one job at least (Q4), and each ends with a result as large.
func LargePayloads(t testing.TB, s core.Store) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reqs := make([]core.EnqueueRequest, 6)
	for i := range reqs {
		reqs[i] = Request("job")
		reqs[i].Payload = bytes.Repeat([]byte{0, 0xff, byte(i), '\\'}, core.MaxClaimBytes/4)
	}
	reqs[5].Payload = append(reqs[5].Payload, make([]byte, 4<<20)...)
	Enqueue(t, s, reqs...)
	for i := range reqs {
		token := core.NewToken()
		got, err := s.Claim(ctx, core.ClaimRequest{Token: token, Lease: time.Minute,
			Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 10}}})
		require.NoError(t, err)
		require.Len(t, got.Jobs, 1)
		require.True(t, bytes.Equal(reqs[i].Payload, got.Jobs[0].Payload), "payload %d", i)
		res, err := s.Ack(ctx, []core.Ack{{Lease: leases(got, token)[0], Outcome: core.OutcomeComplete, Result: got.Jobs[0].Payload}})
		require.NoError(t, err)
		require.Equal(t, core.AckResult{State: core.StateCompleted}, res[0])
	}
	res, err := s.Enqueue(ctx, []core.EnqueueRequest{{Name: "job", Queue: "q", MaxAttempts: 1, Payload: make([]byte, core.MaxPayload+1)}})
	require.NoError(t, err)
	var invalid *core.InvalidError
	require.ErrorAs(t, res[0].Err, &invalid)
}
