package memstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// The ledger keeps the newest entries with their numbers, and an ack whose entry lives is answered again (Q5, Q9).
func TestLedgerIsTrimmed(t *testing.T) {
	s, _ := newStore(t)
	id := enqueue(t, s, request("work"))
	const runs = core.LedgerLimit + 7
	var leases []core.Lease
	for range runs {
		l := claimOne(t, s, "work")
		leases = append(leases, l)
		res, err := s.Ack(t.Context(), []core.Ack{{Lease: l, Outcome: core.OutcomeRetry}})
		require.NoError(t, err)
		require.Equal(t, []core.AckResult{{State: core.StateWaiting}}, res)
	}
	ledger, err := s.Attempts(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, ledger, core.LedgerLimit)
	require.Equal(t, runs-core.LedgerLimit+1, ledger[0].Number)
	require.Equal(t, runs, ledger[len(ledger)-1].Number)

	for i, want := range map[int]core.AckResult{
		0:                           {Err: core.ErrLeaseLost},
		runs - core.LedgerLimit - 1: {Err: core.ErrLeaseLost},
		runs - core.LedgerLimit:     {State: core.StateWaiting},
		runs - 1:                    {State: core.StateWaiting},
	} {
		res, err := s.Ack(t.Context(), []core.Ack{
			{Lease: leases[i], Outcome: core.OutcomeRetry},
			{Lease: leases[i], Outcome: core.OutcomeComplete},
		})
		require.NoError(t, err)
		require.Equal(t, []core.AckResult{want, {Err: core.ErrLeaseLost}}, res)
	}
}

// Every outcome that would have a job run again gives way to a pending cancel, and its repeat is answered so (Q5, Q6).
func TestPendingCancelWins(t *testing.T) {
	for _, asked := range []core.Outcome{core.OutcomeRetry, core.OutcomeSnooze, core.OutcomeRelease, core.OutcomeCancel} {
		t.Run(string(asked), func(t *testing.T) {
			s, _ := newStore(t)
			enqueue(t, s, request("work"))
			l := claimOne(t, s, "work")
			_, err := s.Cancel(t.Context(), l.ID)
			require.NoError(t, err)
			for range 2 {
				res, err := s.Ack(t.Context(), []core.Ack{{Lease: l, Outcome: asked, Delay: time.Second, Failure: &core.Failure{}}})
				require.NoError(t, err)
				require.Equal(t, []core.AckResult{{State: core.StateCancelled}}, res)
			}
			r, err := s.Get(t.Context(), l.ID)
			require.NoError(t, err)
			require.Zero(t, r.Attempts)
			require.Zero(t, r.Snoozes)
			require.False(t, r.CancelRequested)
			ledger, err := s.Attempts(t.Context(), l.ID)
			require.NoError(t, err)
			require.Len(t, ledger, 1)
			require.Equal(t, core.OutcomeCancel, ledger[0].Outcome)
			require.Nil(t, ledger[0].Failure)
			require.Equal(t, "w", ledger[0].Worker)
		})
	}
}

// A sweep suspects every ended lease at once but takes no more than its limit, the oldest first (Q7).
func TestSweepLimit(t *testing.T) {
	s, c := newStore(t)
	var order []string
	for range 5 {
		enqueue(t, s, request("work"))
		order = append(order, claimOne(t, s, "work").ID)
		c.advance(time.Second)
	}
	c.advance(time.Minute)
	sweep := func() []string {
		taken, err := s.RecoverStalled(t.Context(), core.RecoverRequest{MaxStalls: 1, Limit: 2, Confirm: time.Second})
		require.NoError(t, err)
		var out []string
		for _, r := range taken {
			require.Equal(t, core.StateDelayed, r.State)
			out = append(out, r.ID)
		}
		return out
	}
	require.Empty(t, sweep())
	c.advance(time.Second - time.Microsecond)
	require.Empty(t, sweep())
	c.advance(time.Microsecond)
	require.Equal(t, order[:2], sweep())
	require.Equal(t, order[2:4], sweep())
	require.Equal(t, order[4:], sweep())
	require.Empty(t, sweep())
}

// An Extend never shortens a lease, and clears the suspicion of a sweep (Q7, Q21).
func TestExtend(t *testing.T) {
	s, c := newStore(t)
	enqueue(t, s, request("work"))
	l := claimOne(t, s, "work") // 30 s
	extend := func(d time.Duration) core.Extended {
		out, err := s.Extend(t.Context(), []core.Lease{l}, d)
		require.NoError(t, err)
		return out
	}
	sweep := core.RecoverRequest{Confirm: time.Second}
	require.Equal(t, core.Extended{}, extend(time.Second))
	e, err := s.Explain(t.Context(), l.ID)
	require.NoError(t, err)
	require.Equal(t, 30*time.Second, e.LeaseFor)

	c.advance(30 * time.Second)
	for range 3 {
		taken, err := s.RecoverStalled(t.Context(), sweep)
		require.NoError(t, err)
		require.Empty(t, taken, "only suspected, each time anew")
		require.Equal(t, core.Extended{}, extend(time.Second))
		c.advance(time.Second)
	}
	_, err = s.Cancel(t.Context(), l.ID)
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, core.Extended{CancelRequested: []core.Lease{l}}, extend(time.Second))
	}
	l.Token = core.NewToken()
	require.Equal(t, core.Extended{Lost: []core.Lease{l}}, extend(time.Second))
	_, err = s.Extend(t.Context(), nil, -1)
	var invalid *core.InvalidError
	require.ErrorAs(t, err, &invalid)
}
