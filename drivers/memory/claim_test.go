package memstore_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
)

// Jobs of several names, fresh and stalled ones, come out in one order (Q2).
func TestClaimMergesNames(t *testing.T) {
	s, _ := newStore(t)
	var byPriority [3][]string
	for i := range 30 {
		r := request(fmt.Sprintf("n%d", i%4))
		r.ID, r.Priority = fmt.Sprintf("j%d", i), i%3
		enqueue(t, s, r)
		byPriority[i%3] = append(byPriority[i%3], r.ID)
	}
	got, _ := claim(t, s, 30, "n0", "n1", "n2", "n3", "n1", "nobody")
	require.Equal(t, append(append(byPriority[2], byPriority[1]...), byPriority[0]...), ids(got.Jobs))
}

// Due jobs of all the names draw their places by RunAt, not by the order of insertion or of names (Q2, Q3).
func TestDueJobsJoinInOrder(t *testing.T) {
	s, c := newStore(t)
	for i, delay := range []int{5, 1, 4, 2, 3, 9} {
		r := request(fmt.Sprintf("n%d", i%2))
		r.ID, r.Delay = fmt.Sprint(delay), time.Duration(delay)*time.Second
		enqueue(t, s, r)
	}
	c.advance(5 * time.Second)
	got, _ := claim(t, s, 10, "n0", "n1")
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, ids(got.Jobs))
	require.Equal(t, 4*time.Second, got.NextIn)
}

// A claim that lets more due jobs join than it takes wakes those who wait; itself it only tells by NextIn (Q3).
func TestLeftoverDueJobsWakeOthers(t *testing.T) {
	s, c := newStore(t)
	late := func(name string) {
		r := request(name)
		r.Delay = time.Second
		enqueue(t, s, r)
	}
	late("mine")
	idle, _ := claim(t, s, 1, "mine")
	c.advance(time.Second)
	got, _ := claim(t, s, 1, "mine")
	require.Len(t, got.Jobs, 1)
	require.Equal(t, idle.Wake, got.Wake, "it took all that came due, so nobody need come")

	late("mine")
	late("mine")
	idle, _ = claim(t, s, 1, "mine")
	c.advance(time.Second)
	got, _ = claim(t, s, 1, "mine")
	require.Len(t, got.Jobs, 1)
	require.Equal(t, time.Duration(1), got.NextIn)
	require.NotEqual(t, idle.Wake, got.Wake)
	w, err := s.AwaitWake(t.Context(), []string{"q"}, idle.Wake)
	require.NoError(t, err)
	require.Equal(t, core.Wake{Token: got.Wake}, w)
}

// Coming due is bounded work per claim, and nobody else's jobs are touched; readers see them all (Q3, Q27).
func TestComingDueIsBounded(t *testing.T) {
	const n = 2500
	s, c := newStore(t)
	for i := range n {
		r := request("work")
		r.ID, r.Delay = fmt.Sprintf("j%04d", i), time.Duration(n-i)*time.Millisecond
		enqueue(t, s, r)
	}
	c.advance(time.Hour)
	got, _ := claim(t, s, 1, "work")
	require.Equal(t, []string{"j2499"}, ids(got.Jobs))
	require.Equal(t, time.Duration(1), got.NextIn)
	r := request("work")
	r.ID = "new" // behind those that joined, before those that did not yet
	enqueue(t, s, r)
	require.NoError(t, s.CheckInvariants())

	counts, err := s.Counts(t.Context(), "q")
	require.NoError(t, err)
	require.EqualValues(t, n, counts[core.StateWaiting])
	require.Zero(t, counts[core.StateDelayed])
	got, _ = claim(t, s, n, "work")
	require.Len(t, got.Jobs, n)
	require.Equal(t, "new", got.Jobs[999].ID)
	require.Equal(t, "j0000", got.Jobs[n-1].ID)
}

// Due jobs that were too many to join are left over too (Q4).
func TestNextInCountsDueJobs(t *testing.T) {
	s, c := newStore(t)
	const limit = 1000
	for range limit + 1 {
		r := request("work")
		r.Delay = time.Second
		enqueue(t, s, r)
	}
	c.advance(time.Second)
	got, _ := claim(t, s, limit, "work")
	require.Len(t, got.Jobs, limit)
	require.Equal(t, time.Duration(1), got.NextIn)
	got, _ = claim(t, s, limit, "work")
	require.Len(t, got.Jobs, 1)
	require.Zero(t, got.NextIn)
}

// A want takes one job that has stalled, and goes on with those that have not (Q4).
func TestOneStalledJobPerWant(t *testing.T) {
	s, c := newStore(t)
	for range 3 {
		enqueue(t, s, request("work"))
	}
	claim(t, s, 3, "work")
	c.advance(time.Minute)
	taken, err := s.RecoverStalled(t.Context(), core.RecoverRequest{MaxStalls: 3})
	require.NoError(t, err)
	require.Len(t, taken, 3)
	c.advance(time.Hour)
	_, err = s.Counts(t.Context(), "q") // they join here, before the fresh ones
	require.NoError(t, err)
	fresh := []string{enqueue(t, s, request("work")), enqueue(t, s, request("work"))}

	got, _ := claim(t, s, 10, "work")
	require.Len(t, got.Jobs, 3)
	require.Equal(t, 1, got.Jobs[0].Stalls)
	require.Equal(t, fresh, ids(got.Jobs[1:]))
	require.Equal(t, time.Duration(1), got.NextIn)
}

// The payloads of one call are bounded; the rest is left over, and nothing is lost (Q4).
func TestClaimBoundsPayload(t *testing.T) {
	s, _ := newStore(t)
	for range 20 {
		r := request("big")
		r.Payload = make([]byte, core.DefaultPayload)
		enqueue(t, s, r)
	}
	got, _ := claim(t, s, 100, "big")
	require.Len(t, got.Jobs, core.MaxClaimBytes/core.DefaultPayload)
	require.Equal(t, time.Duration(1), got.NextIn)
	got, _ = claim(t, s, 100, "big")
	require.Len(t, got.Jobs, 4)
	require.Zero(t, got.NextIn)
}

// A job that is due further away than a Duration reaches is asked for earlier, never later (Q4).
func TestNextInSaturates(t *testing.T) {
	s, _ := newStore(t)
	r := request("work")
	r.RunAt = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	id := enqueue(t, s, r)
	got, _ := claim(t, s, 1, "work")
	require.Equal(t, time.Duration(math.MaxInt64), got.NextIn)
	e, err := s.Explain(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, time.Duration(math.MaxInt64), e.DueIn)
}

// A token's holdings are the active jobs under exactly that token, and asking changes nothing (Q4).
func TestHoldings(t *testing.T) {
	s, c := newStore(t)
	for range 4 {
		enqueue(t, s, request("work"))
	}
	got, token := claim(t, s, 3, "work")
	claim(t, s, 1, "work")
	c.advance(time.Hour)
	for _, wants := range [][]core.Want{nil, want("q", 0, "work")} {
		held, err := s.Claim(t.Context(), core.ClaimRequest{Token: token, Wants: wants})
		require.NoError(t, err)
		require.Equal(t, got.Jobs, held.Jobs)
	}
	taken, err := s.RecoverStalled(t.Context(), core.RecoverRequest{})
	require.NoError(t, err)
	require.Len(t, taken, 4, "asking extended nothing")
}
