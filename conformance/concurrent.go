package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
)

// The cases here use real goroutines; what they share is guarded by a mutex of their own, so that they are as
// useful under -race as the driver is clean.
func concurrentCases() []testCase {
	const limit = 60 * time.Second
	return []testCase{
		{rule: "Q4", name: "claims", run: concurrentClaims, limit: limit, timeless: true,
			demands: "concurrent claims never hand out one job twice, and leave none behind"},
		{rule: "Q4", name: "claims-over-handles", run: concurrentHandles, needs: []Capability{CapOpen}, limit: limit,
			demands: "concurrent claims through two handles never hand out one job twice, and leave none behind"},
		{rule: "Q4", name: "neighbours", run: concurrentNeighbours, limit: limit, timeless: true,
			demands: "a claim locks no more jobs than it takes: of two at once each gets its limit where there are jobs for both"},
		{rule: "Q10", name: "first-enqueues", run: concurrentFirst, limit: limit,
			demands: "concurrent first enqueues of one id make one job; all but one are duplicates"},
		{rule: "Q11", name: "overlapping-batches", run: concurrentBatches, limit: limit,
			demands: "overlapping batches in any order make one job per id and do not deadlock"},
		{rule: "Q5", name: "acks-and-sweeps", run: concurrentSweeps, limit: limit,
			demands: "an ack that races a sweep is either done or lost, and every job is accounted for"},
		{rule: "Q8", name: "acks-and-cancels", run: concurrentCancels, needs: []Capability{CapAdmin}, limit: limit,
			demands: "a cancel that races claims and acks answers what is, never ErrNotFound; every job ends once"},
		{rule: "Q5", name: "one-lease-many-acks", run: concurrentAcks, limit: limit,
			demands: "of different acks that race for one lease exactly one is done"},
	}
}

// race runs fn in n goroutines and ends the case with the first error.
func (k *kit) race(n int, fn func(ctx context.Context, worker int) error) {
	k.Helper()
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	errs := make(chan error, n)
	for i := range n {
		go func() {
			err := fn(ctx, i)
			if err != nil {
				cancel()
			}
			errs <- err
		}()
	}
	var first error
	for range n {
		if err := <-errs; err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	k.ok("concurrent calls", first)
}

// addMany enqueues n default jobs in one batch.
func (k *kit) addMany(n int) {
	k.Helper()
	reqs := make([]core.EnqueueRequest, n)
	for i := range reqs {
		reqs[i] = request(fmt.Sprintf("job-%d", i))
	}
	for _, r := range k.enqueue(reqs...) {
		k.ok("Enqueue", r.Err)
	}
}

// tally counts events by job.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func newTally() *tally { return &tally{n: map[string]int{}} }

func (t *tally) add(id string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n[id]++
	return t.n[id]
}

func concurrentClaims(k *kit) { claimAll(k, k.store) }

func concurrentHandles(k *kit) { claimAll(k, k.store, k.other().store) }

// claimAll lets claimers take 2,000 jobs through some handles, each job once.
func claimAll(k *kit, stores ...core.Store) {
	const n = 2000
	k.addMany(n)
	taken := newTally()
	k.race(8, func(ctx context.Context, worker int) error {
		store := stores[worker%len(stores)]
		for i := 0; ; i++ {
			token := core.NewToken()
			c, err := store.Claim(ctx, core.ClaimRequest{Wants: wants(1 + (worker+i)%20), Token: token, Lease: time.Hour})
			if err != nil {
				return err
			}
			if len(c.Jobs) == 0 && c.NextIn == 0 {
				return nil
			}
			acks := make([]core.Ack, len(c.Jobs))
			for j, job := range c.Jobs {
				if taken.add(job.ID) > 1 || job.Fence != 1 {
					return fmt.Errorf("job %q was handed out twice (fence %d)", job.ID, job.Fence)
				}
				acks[j] = core.Ack{Lease: core.Lease{ID: job.ID, Token: token, Ref: job.Ref}, Outcome: core.OutcomeComplete}
			}
			res, err := store.Ack(ctx, acks)
			if err != nil {
				return err
			}
			for _, r := range res {
				if r.Err != nil {
					return r.Err
				}
			}
		}
	})
	eq(k, "jobs handed out", len(taken.n), n)
	k.wantCounts("", map[core.State]int64{core.StateCompleted: n})
}

func concurrentFirst(k *kit) {
	const racers, rounds = 8, 20
	made := newTally()
	for round := range rounds {
		id := fmt.Sprintf("first-%d", round)
		k.race(racers, func(ctx context.Context, worker int) error {
			res, err := k.store.Enqueue(ctx, []core.EnqueueRequest{request(id, prio(worker))})
			switch {
			case err != nil:
				return err
			case res[0].Err != nil:
				return res[0].Err
			case res[0].ID != id:
				return fmt.Errorf("enqueue of %q answered %q", id, res[0].ID)
			case !res[0].Duplicate && made.add(id) > 1:
				return fmt.Errorf("two enqueues of %q were told that they are the first", id)
			}
			return nil
		})
		eq(k, "first enqueues of "+id, made.n[id], 1)
	}
	eq(k, "jobs", len(k.claim(want(racers*rounds)).Jobs), rounds)
}

func concurrentBatches(k *kit) {
	const ids, racers = 200, 6
	made := newTally()
	k.race(racers, func(ctx context.Context, worker int) error {
		reqs := make([]core.EnqueueRequest, ids)
		for i := range reqs {
			at := i // each worker has its own order: up, down, or from somewhere in the middle
			switch worker % 3 {
			case 1:
				at = ids - 1 - i
			case 2:
				at = (i*7 + worker*31) % ids
			}
			reqs[i] = request(fmt.Sprintf("id-%d", at))
		}
		res, err := k.store.Enqueue(ctx, reqs)
		if err != nil {
			return err
		}
		for i, r := range res {
			switch {
			case r.Err != nil:
				return r.Err
			case r.ID != reqs[i].ID:
				return fmt.Errorf("result %d is for %q, want %q", i, r.ID, reqs[i].ID)
			case !r.Duplicate && made.add(r.ID) > 1:
				return fmt.Errorf("two batches were told that they made %q", r.ID)
			}
		}
		return nil
	})
	eq(k, "ids made", len(made.n), ids)
	eq(k, "jobs", len(k.claim(want(ids*racers)).Jobs), ids)
	k.total(ids)
}

func concurrentSweeps(k *kit) {
	const n = 300
	k.addMany(n)
	done, stalled := newTally(), newTally()
	var sweeping sync.WaitGroup
	stop := make(chan struct{})
	swept := make(chan error, 1)
	sweeping.Go(func() {
		// So many and no more: a store that serves callers in turn has a sweep between every claim and its ack.
		for range n {
			got, err := k.store.RecoverStalled(k.ctx, core.RecoverRequest{MaxStalls: 1 << 20, Limit: 7})
			if err != nil {
				swept <- err
				return
			}
			for _, r := range got {
				stalled.add(r.ID)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	finish := sync.OnceFunc(func() { close(stop); sweeping.Wait() })
	defer finish()
	k.race(4, func(ctx context.Context, worker int) error {
		for {
			done.mu.Lock()
			over := len(done.n) == n
			done.mu.Unlock()
			if over {
				return nil
			}
			token := core.NewToken()
			// A lease that has ended already: the sweep and the ack are after the same jobs.
			c, err := k.store.Claim(ctx, core.ClaimRequest{Wants: wants(5), Token: token})
			if err != nil {
				return err
			}
			if len(c.Jobs) == 0 && k.clock != nil {
				k.clock.Advance(7 * time.Minute) // past any backoff
			}
			for _, j := range c.Jobs {
				res, err := k.store.Ack(ctx, []core.Ack{{Lease: core.Lease{ID: j.ID, Token: token, Ref: j.Ref}, Outcome: core.OutcomeComplete}})
				switch {
				case err != nil:
					return err
				case errors.Is(res[0].Err, core.ErrLeaseLost):
				case res[0].Err != nil:
					return res[0].Err
				case done.add(j.ID) > 1:
					return fmt.Errorf("job %q was completed twice", j.ID)
				}
			}
		}
	})
	finish()
	select {
	case err := <-swept:
		k.failf("RecoverStalled: %v", err)
	default:
	}
	k.wantCounts("", map[core.State]int64{core.StateCompleted: n})
	for id := range done.n {
		k.look(id, func(r core.Record) {
			eq(k, "attempts of "+id, r.Attempts, 1)
			eq(k, "stalls of "+id, r.Stalls, stalled.n[id])
			eq(k, "runs of "+id, r.Runs, 1+stalled.n[id])
			eq(k, "fence of "+id, r.Fence, int64(1+stalled.n[id]))
		})
	}
}

func concurrentCancels(k *kit) {
	const n = 300
	k.addMany(n)
	var mu sync.Mutex
	ended := map[string]core.State{}
	asked := newTally()
	k.race(4, func(ctx context.Context, worker int) error {
		if worker == 0 {
			for i := range n {
				id := fmt.Sprintf("job-%d", n-1-i)
				state, err := k.admin.Cancel(ctx, id)
				var finished *core.StateError
				switch {
				case errors.As(err, &finished):
				case err != nil:
					return err
				case state == core.StateCancelled:
					mu.Lock()
					ended[id] = core.StateCancelled
					mu.Unlock()
				default:
					asked.add(id)
				}
			}
			return nil
		}
		for {
			token := core.NewToken()
			c, err := k.store.Claim(ctx, core.ClaimRequest{Wants: wants(3), Token: token, Lease: time.Hour})
			if err != nil {
				return err
			}
			if len(c.Jobs) == 0 && c.NextIn == 0 {
				return nil
			}
			acks := make([]core.Ack, len(c.Jobs))
			for i, j := range c.Jobs {
				acks[i] = core.Ack{Lease: core.Lease{ID: j.ID, Token: token, Ref: j.Ref}, Outcome: core.OutcomeRelease}
				if j.Fence > 1 || worker == 1 {
					acks[i].Outcome = core.OutcomeComplete
				}
			}
			res, err := k.store.Ack(ctx, acks)
			if err != nil {
				return err
			}
			mu.Lock()
			for i, r := range res {
				id := acks[i].Lease.ID
				if _, twice := ended[id]; r.Err == nil && r.State.Terminal() && twice {
					r.Err = fmt.Errorf("job %q ended twice", id)
				}
				if r.Err != nil {
					mu.Unlock()
					return r.Err
				}
				if r.State.Terminal() {
					ended[id] = r.State
				}
			}
			mu.Unlock()
		}
	})
	eq(k, "jobs that ended", len(ended), n)
	for id, state := range ended {
		k.wantState(id, state)
		k.look(id, func(r core.Record) {
			eq(k, "ledger entries of "+id, r.Runs, 1)
			eq(k, "CancelRequested", r.CancelRequested, false)
		})
	}
	k.none("every job ended")
}

func concurrentAcks(k *kit) {
	outcomes := []core.Outcome{core.OutcomeComplete, core.OutcomeFail, core.OutcomeCancel, core.OutcomeRetry}
	for round := range 20 {
		id := k.add(fmt.Sprintf("job-%d", round))
		h := k.takeID(id)
		var mu sync.Mutex
		var won []core.Outcome
		k.race(len(outcomes), func(ctx context.Context, worker int) error {
			res, err := k.store.Ack(ctx, []core.Ack{{Lease: h.lease, Outcome: outcomes[worker], Delay: time.Hour}})
			if err == nil && res[0].Err != nil && !errors.Is(res[0].Err, core.ErrLeaseLost) {
				err = res[0].Err
			}
			if err == nil && res[0].Err == nil {
				mu.Lock()
				defer mu.Unlock()
				won = append(won, outcomes[worker])
			}
			return err
		})
		eq(k, "acks that were done", len(won), 1)
		k.wantLedger(id, won[0])
	}
}
