package memstore_test

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestRandomCalls makes random calls, one after the other, and checks the whole store after each: that it is
// consistent, and that List, Counts and Stranded, which take different ways, tell the same story.
func TestRandomCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
		x := &random{store: memstore.New(memstore.Options{Clock: c}), clock: c}
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": x.enqueue,
			"tx":      x.transact,
			"claim":   x.claim,
			"ack":     x.ack,
			"extend":  x.extend,
			"sweep":   x.sweep,
			"admin":   x.admin,
			"pause":   x.pause,
			"prune":   x.prune,
			"time":    func(t *rapid.T) { c.advance(time.Duration(rapid.IntRange(0, 20).Draw(t, "s")) * time.Second) },
			"":        x.check,
		})
	})
}

type random struct {
	store  *memstore.Store
	clock  *clock
	leases []core.Lease
}

var (
	someIDs    = rapid.SampledFrom([]string{"", "", "a", "b", "c", "d", "e", "f"})
	someNames  = rapid.SampledFrom([]string{"x", "y"})
	someQueues = rapid.SampledFrom([]string{"q", "r"})
	someKeeps  = rapid.SampledFrom([]core.Keep{
		{}, {Completed: core.KeepRule{None: true}, Failed: core.KeepRule{Count: 1}},
		{Completed: core.KeepRule{Age: 3 * time.Second, Count: 2}, Cancelled: core.KeepRule{None: true}},
	})
	someDelays = rapid.Map(rapid.IntRange(0, 12), func(s int) time.Duration { return time.Duration(max(s-4, 0)) * time.Second })
)

func (x *random) request(t *rapid.T) core.EnqueueRequest {
	r := core.EnqueueRequest{
		ID: someIDs.Draw(t, "id"), Name: someNames.Draw(t, "name"), Queue: someQueues.Draw(t, "queue"),
		MaxAttempts: 1, MaxStalls: rapid.IntRange(-1, 2).Draw(t, "stalls"),
		Priority: rapid.IntRange(-1, 1).Draw(t, "priority"), Delay: someDelays.Draw(t, "delay"), Keep: someKeeps.Draw(t, "keep"),
	}
	if rapid.Bool().Draw(t, "dedupe") {
		r.Dedupe = &core.Dedupe{Key: rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key"), TTL: someDelays.Draw(t, "ttl"),
			Replace: rapid.Bool().Draw(t, "replace")}
	}
	return r
}

// prune checks that what Prune says it deleted is what is missing.
func (x *random) prune(t *rapid.T) {
	before, limit := x.total(t), rapid.IntRange(1, 4).Draw(t, "limit")
	n, err := x.store.Prune(t.Context(), core.PruneRequest{Limit: limit})
	require.NoError(t, err)
	require.LessOrEqual(t, n, limit)
	require.Equal(t, before-int64(n), x.total(t))
}

func (x *random) total(t *rapid.T) (n int64) {
	counts, err := x.store.Counts(t.Context(), "")
	require.NoError(t, err)
	for _, c := range counts {
		n += c
	}
	return n
}

func (x *random) enqueue(t *rapid.T) {
	_, err := x.store.Enqueue(t.Context(), []core.EnqueueRequest{x.request(t), x.request(t)})
	require.NoError(t, err)
}

func (x *random) transact(t *rapid.T) {
	tx := x.store.Begin()
	_, err := x.store.WithTx(tx).Enqueue(t.Context(), []core.EnqueueRequest{x.request(t)})
	require.NoError(t, err)
	if len(x.leases) > 0 {
		_ = x.store.WithTx(tx).Complete(t.Context(), x.lease(t), nil) // lost, or not
	}
	if rapid.Bool().Draw(t, "commit") {
		require.NoError(t, tx.Commit())
	} else {
		require.NoError(t, tx.Rollback())
	}
}

// claim checks what a claim hands out against what a List said just before (Q2, Q4).
func (x *random) claim(t *rapid.T) {
	queue, limit := someQueues.Draw(t, "queue"), rapid.IntRange(1, 3).Draw(t, "limit")
	names := rapid.SliceOfN(someNames, 0, 3).Draw(t, "names")
	waiting, err := x.store.List(t.Context(), core.Query{Queue: queue, States: []core.State{core.StateWaiting}, Limit: core.MaxListLimit})
	require.NoError(t, err)
	paused, err := x.store.Paused(t.Context())
	require.NoError(t, err)
	token := core.NewToken()
	got, err := x.store.Claim(t.Context(), core.ClaimRequest{
		Wants: want(queue, limit, names...), Token: token, Lease: 10 * time.Second,
	})
	require.NoError(t, err)

	free, fresh := 0, 0
	for _, r := range waiting.Jobs {
		if slices.Contains(names, r.Name) && !slices.Contains(paused, queue) {
			free++
			if r.Stalls == 0 {
				fresh++
			}
		}
	}
	expected := min(limit, fresh+min(free-fresh, 1))
	require.Len(t, got.Jobs, expected)
	require.True(t, slices.IsSortedFunc(got.Jobs, func(a, b core.Record) int { return cmp.Compare(b.Priority, a.Priority) }))
	if free > expected {
		require.Equal(t, time.Duration(1), got.NextIn)
	}
	for _, j := range got.Jobs {
		require.Contains(t, names, j.Name)
		x.leases = append(x.leases, core.Lease{ID: j.ID, Token: token})
	}
}

// lease is one that was handed out some time.
func (x *random) lease(t *rapid.T) core.Lease {
	if len(x.leases) == 0 {
		t.Skip("none yet")
	}
	return rapid.SampledFrom(x.leases).Draw(t, "lease")
}

func (x *random) ack(t *rapid.T) {
	a := core.Ack{Lease: x.lease(t), Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"), Delay: someDelays.Draw(t, "delay")}
	first, err := x.store.Ack(t.Context(), []core.Ack{a})
	require.NoError(t, err)
	again, err := x.store.Ack(t.Context(), []core.Ack{a})
	require.NoError(t, err)
	if a.Outcome != core.OutcomeRelease && a.Outcome != core.OutcomeSnooze {
		require.Equal(t, first, again, "a repeat is answered as the first time (Q5)")
	}
}

func (x *random) extend(t *rapid.T) {
	l := x.lease(t)
	out, err := x.store.Extend(t.Context(), []core.Lease{l}, 5*time.Second)
	require.NoError(t, err)
	held, err := x.store.Claim(t.Context(), core.ClaimRequest{Token: l.Token})
	require.NoError(t, err)
	require.Equal(t, slices.Contains(ids(held.Jobs), l.ID), len(out.Lost) == 0)
}

func (x *random) sweep(t *rapid.T) {
	_, err := x.store.RecoverStalled(t.Context(), core.RecoverRequest{
		MaxStalls: 1, Limit: rapid.IntRange(0, 2).Draw(t, "limit"),
		Confirm: time.Duration(rapid.IntRange(0, 5).Draw(t, "confirm")) * time.Second,
	})
	require.NoError(t, err)
}

// admin calls a verb; whether it may depends on the state, which Get tells (Q8).
func (x *random) admin(t *rapid.T) {
	id := rapid.SampledFrom([]string{"a", "b", "c", "#1", "#2"}).Draw(t, "id")
	before, err := x.store.Get(t.Context(), id)
	known := err == nil
	var allowed bool
	switch verb := rapid.SampledFrom([]string{"retry", "cancel", "promote", "remove"}).Draw(t, "verb"); verb {
	case "retry":
		allowed, err = before.State.Terminal() && before.State != core.StateCompleted, x.store.Retry(t.Context(), id)
	case "cancel":
		_, err = x.store.Cancel(t.Context(), id)
		allowed = before.State.Pending()
	case "promote":
		allowed, err = before.State == core.StateDelayed, x.store.Promote(t.Context(), id)
	case "remove":
		ok, err := x.store.Remove(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, known && before.State != core.StateActive, ok)
		return
	}
	var state *core.StateError
	var conflict *core.ConflictError
	switch {
	case allowed && errors.As(err, &conflict):
		require.Equal(t, before.DedupeKey, conflict.Key)
		require.NotEqual(t, id, conflict.ID)
	case !known:
		require.ErrorIs(t, err, core.ErrNotFound)
	case allowed:
		require.NoError(t, err)
	default:
		require.ErrorAs(t, err, &state)
		require.Equal(t, before.State, state.State)
	}
}

func (x *random) pause(t *rapid.T) {
	queue := someQueues.Draw(t, "queue")
	if rapid.Bool().Draw(t, "pause") {
		require.NoError(t, x.store.Pause(t.Context(), queue))
	} else {
		require.NoError(t, x.store.Resume(t.Context(), queue))
	}
}

func (x *random) check(t *rapid.T) {
	require.NoError(t, x.store.CheckInvariants())
	all, err := x.store.List(t.Context(), core.Query{Limit: core.MaxListLimit})
	require.NoError(t, err)
	require.Empty(t, all.Cursor)
	listed, pending := map[core.State]int64{}, map[string]int64{}
	for _, st := range core.States() {
		listed[st] = 0
	}
	for _, r := range all.Jobs {
		listed[r.State]++
		if r.State.Pending() {
			pending[r.Queue+"/"+r.Name]++
			require.Equal(t, r.State == core.StateDelayed, r.RunAt.After(x.clock.Now()))
		}
	}
	counts, err := x.store.Counts(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, listed, counts)
	stranded, err := x.store.Stranded(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, stranded, len(pending))
	for _, g := range stranded {
		require.Equal(t, pending[g.Queue+"/"+g.Name], g.Count)
	}
}
