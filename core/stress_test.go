package core_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// chaos is a store that fails one call in ten, before or after doing the work, does not renew some leases, and
// keeps books of everything that it really did.
type chaos struct {
	*memstore.Store
	mu    sync.Mutex
	books map[string]*book // by job id
	told  map[string]told  // by token and id: what hooks said
}

// book is what really happened to one job.
type book struct {
	entries []core.Outcome // what the ledger must say
	acked   map[string]core.Outcome
	stalls  int
	runs    []*liveRun
}

// liveRun is one call of the handler.
type liveRun struct {
	token string
	ended bool
	asked core.Outcome // what it should lead to: "" if that is for the context to say
}

func (c *chaos) book(id string) *book {
	b := c.books[id]
	if b == nil {
		b = &book{acked: make(map[string]core.Outcome)}
		c.books[id] = b
	}
	return b
}

// trouble returns an error to fail with before the work, or after it.
func trouble() (before, after error) {
	switch rand.IntN(20) {
	case 0:
		return core.ErrUnavailable, nil
	case 1:
		return nil, fmt.Errorf("reply lost: %w", core.ErrUnknown)
	}
	return nil, nil
}

func (c *chaos) Claim(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
	before, after := trouble()
	if before != nil {
		return core.Claimed{}, before
	}
	claimed, err := c.Store.Claim(ctx, req)
	if after != nil {
		return core.Claimed{}, after
	}
	return claimed, err
}

// unlucky leases are never renewed: their holder loses them.
func unlucky(l core.Lease) bool {
	h := fnv.New32()
	_, _ = h.Write([]byte(l.Token + l.ID))
	return h.Sum32()%20 == 0
}

func (c *chaos) Extend(ctx context.Context, ls []core.Lease, d time.Duration) (core.Extended, error) {
	before, after := trouble()
	if before != nil {
		return core.Extended{}, before
	}
	ext, err := c.Store.Extend(ctx, slices.DeleteFunc(slices.Clone(ls), unlucky), d)
	if after != nil {
		return core.Extended{}, after
	}
	return ext, err
}

func (c *chaos) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	before, after := trouble()
	if before != nil {
		return nil, before
	}
	c.mu.Lock()
	results, err := c.Store.Ack(ctx, acks)
	for i, r := range results {
		b, a := c.book(acks[i].Lease.ID), acks[i]
		if _, again := b.acked[a.Lease.Token]; again || r.Err != nil {
			continue
		}
		b.acked[a.Lease.Token] = a.Outcome
		switch {
		case r.State == core.StateCancelled:
			b.entries = append(b.entries, core.OutcomeCancel)
		case a.Outcome != core.OutcomeRelease && a.Outcome != core.OutcomeSnooze:
			b.entries = append(b.entries, a.Outcome)
		}
	}
	c.mu.Unlock()
	if after != nil {
		return nil, after
	}
	return results, err
}

func (c *chaos) RecoverStalled(ctx context.Context, req core.RecoverRequest) ([]core.Recovered, error) {
	before, after := trouble()
	if before != nil {
		return nil, before
	}
	c.mu.Lock()
	swept, err := c.Store.RecoverStalled(ctx, req)
	for _, r := range swept {
		b := c.book(r.ID)
		b.stalls++
		if r.State == core.StateCancelled {
			b.entries = append(b.entries, core.OutcomeCancel)
		} else {
			b.entries = append(b.entries, core.OutcomeStalled)
		}
	}
	c.mu.Unlock()
	if after != nil {
		return nil, after
	}
	return swept, err
}

func (c *chaos) Cancel(ctx context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, err := c.Store.Cancel(ctx, id)
	if err == nil && state == core.StateCancelled {
		c.book(id).entries = append(c.book(id).entries, core.OutcomeCancel)
	}
	if _, ok := errors.AsType[*core.StateError](err); ok {
		return nil
	}
	return err
}

// begin and end keep the book of handler calls. A job that runs twice at once must have lost a lease in between.
func (c *chaos) begin(t *testing.T, id, token string) *liveRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.book(id)
	live := 0
	for _, r := range b.runs {
		if !r.ended {
			live++
		}
	}
	if live > b.stalls {
		t.Errorf("%s runs %d times at once with %d leases swept", id, live+1, b.stalls)
	}
	r := &liveRun{token: token}
	b.runs = append(b.runs, r)
	return r
}

func (c *chaos) end(r *liveRun, asked core.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.ended, r.asked = true, asked
}

// TestStress: 10,000 jobs over 8 workers of 16 takers, with everything going wrong that may. Every job ends, none
// runs twice within a live lease, and the ledger says what happened (Q1, Q5 to Q9, Q19 to Q24).
func TestStress(t *testing.T) {
	bubble(t, func(t *testing.T, s *memstore.Store) {
		const jobs, workers, takers = 10_000, 8, 16
		c := &chaos{Store: s, books: make(map[string]*book), told: make(map[string]told)}
		task := core.NewTask[int]("task", core.JobOptions[int]{MaxAttempts: 4, MaxStalls: 3, Timeout: time.Hour})

		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range workers {
			w := newWorker(t, c, core.WorkerOptions{Concurrency: takers, Hooks: []core.Hooks{c.listen()}})
			task.Handle(w, func(ctx context.Context, _ int) (err error) {
				run, _ := core.Current(ctx)
				r := c.begin(t, run.ID, run.Lease.Token)
				asked := core.Outcome("")
				defer func() { c.end(r, asked) }()
				return misbehave(ctx, &asked)
			})
			running.Go(func() {
				if err := w.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		var ids []string
		for range jobs / 1000 {
			res, err := task.EnqueueMany(ctx, s, make([]int, 1000))
			require.NoError(t, err)
			for _, r := range res {
				ids = append(ids, r.ID)
			}
			time.Sleep(time.Second)
		}
		for range jobs / 20 {
			require.NoError(t, c.Cancel(ctx, ids[rand.IntN(len(ids))]))
			time.Sleep(10 * time.Millisecond)
		}
		pending := func() int64 {
			n := counts(t, s)
			return n[core.StateWaiting] + n[core.StateDelayed] + n[core.StateActive]
		}
		for deadline := time.Now().Add(24 * time.Hour); pending() > 0; time.Sleep(time.Minute) {
			require.True(t, time.Now().Before(deadline), "%d jobs do not end", pending())
		}
		cancel()
		running.Wait()

		ended := map[core.State]int{}
		for _, id := range ids {
			rec := get(t, s, id)
			ended[rec.State]++
			c.audit(t, rec, ledger(t, s, id))
		}
		t.Log("ended:", ended)
		require.Greater(t, ended[core.StateCompleted], jobs/2)
		require.NotZero(t, ended[core.StateFailed])
		require.NotZero(t, ended[core.StateCancelled])
		require.NoError(t, s.CheckInvariants())
	})
}

// misbehave is a handler of every temper. It says before it ends what should become of the run.
func misbehave(ctx context.Context, asked *core.Outcome) error {
	switch rand.IntN(12) {
	case 0:
		*asked = core.OutcomeRetry
		return errBoom
	case 1:
		*asked = core.OutcomeRetry
		panic("boom")
	case 2:
		*asked = core.OutcomeRetry
		runtime.Goexit()
	case 3:
		*asked = core.OutcomeFail
		return core.Unrecoverable(errBoom)
	case 4: // slow and deaf
		time.Sleep(rand.N(2 * time.Minute))
	case 5: // slow and obedient
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(2 * time.Minute)):
		}
	case 6:
		*asked = core.OutcomeSnooze
		return core.Snooze(rand.N(time.Minute))
	default:
		time.Sleep(rand.N(100 * time.Millisecond))
	}
	*asked = core.OutcomeComplete
	return nil
}

// audit compares a job's record and ledger with what was seen to happen.
func (c *chaos) audit(t *testing.T, rec core.Record, entries []core.Attempt) {
	b := c.book(rec.ID)
	var said []core.Outcome
	for i, e := range entries {
		said = append(said, e.Outcome)
		if e.Number != i+1 {
			t.Errorf("%s: entry %d is numbered %d", rec.ID, i+1, e.Number)
		}
	}
	if !slices.Equal(said, b.entries) {
		t.Errorf("%s: ledger %v, seen %v", rec.ID, said, b.entries)
	}
	tokens := map[string]bool{}
	completed := false
	for _, r := range b.runs {
		if !r.ended {
			t.Errorf("%s: a run never ended", rec.ID)
		}
		if tokens[r.token] {
			t.Errorf("%s: ran twice under one token", rec.ID)
		}
		tokens[r.token] = true
		got, landed := b.acked[r.token]
		c.auditHooks(t, rec.ID, r.token, got, landed)
		completed = completed || got == core.OutcomeComplete
		switch {
		case !landed || r.asked == "" || got == r.asked:
		case r.asked == core.OutcomeRetry && (got == core.OutcomeFail || got == core.OutcomeCancel):
			// The budget was used up, or somebody cancelled.
		case (r.asked == core.OutcomeFail || r.asked == core.OutcomeSnooze) && got == core.OutcomeCancel:
		default:
			t.Errorf("%s: a run that ended in %s was acked as %s", rec.ID, r.asked, got)
		}
	}
	if completed != (rec.State == core.StateCompleted) {
		t.Errorf("%s is %s, acked as complete: %v", rec.ID, rec.State, completed)
	}
	if len(b.runs) == 0 && rec.State == core.StateCompleted {
		t.Errorf("%s completed without a run", rec.ID)
	}
}
