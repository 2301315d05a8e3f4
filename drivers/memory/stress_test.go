package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestStress lets producers, workers that lose leases, sweeps, cancels, retries and readers loose on one store and
// accounts for every job: each ends, each claim shows in the fence, each answered ack in the ledger.
func TestStress(t *testing.T) {
	const producers, workers, perProducer = 3, 4, 400
	s, c := newStore(t)
	x := &stress{t: t, store: s, clock: c, total: producers * perProducer, claims: map[string]int64{}, runs: map[string]int{}}
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() { x.produce(p, perProducer) })
	}
	for range workers {
		all.Go(func() { x.until(x.work) })
	}
	all.Go(func() { x.until(x.sweep) })
	all.Go(func() { x.until(x.meddle) })
	all.Wait()

	counts, err := s.Counts(t.Context(), "")
	require.NoError(t, err)
	require.EqualValues(t, x.total, counts[core.StateCompleted]+counts[core.StateFailed]+counts[core.StateCancelled])
	p, err := s.List(t.Context(), core.Query{Limit: core.MaxListLimit})
	for seen := 0; ; {
		require.NoError(t, err)
		for _, r := range p.Jobs {
			require.Equal(t, x.claims[r.ID], r.Fence, "claims of %s", r.ID)
			require.Equal(t, x.runs[r.ID], r.Runs, "ledger entries of %s", r.ID)
		}
		if seen += len(p.Jobs); p.Cursor == "" {
			require.Equal(t, x.total, seen)
			return
		}
		p, err = s.List(t.Context(), core.Query{Limit: core.MaxListLimit, Cursor: p.Cursor})
	}
}

type stress struct {
	t        *testing.T
	store    *memstore.Store
	clock    *clock
	total    int
	enqueued atomic.Int64

	mu     sync.Mutex
	claims map[string]int64 // by job
	runs   map[string]int   // ledger entries that the store's answers account for
}

// until repeats step while a job may still run.
func (x *stress) until(step func()) {
	for !x.t.Failed() {
		counts, err := x.store.Counts(x.t.Context(), "q")
		if err != nil {
			x.t.Error(err)
			return
		}
		ended := counts[core.StateCompleted] + counts[core.StateFailed] + counts[core.StateCancelled]
		if int(x.enqueued.Load()) == x.total && int(ended) == x.total {
			return
		}
		step()
		runtime.Gosched()
	}
}

func (x *stress) produce(producer, n int) {
	for i := range n {
		r := request(fmt.Sprintf("n%d", i%3))
		r.ID = fmt.Sprintf("%d-%d", producer, i)
		r.Priority = i % 5
		r.Delay = time.Duration(i%4) * time.Second
		if _, err := x.store.Enqueue(x.t.Context(), []core.EnqueueRequest{r, r}); err != nil {
			x.t.Error(err)
		}
		x.enqueued.Add(1)
	}
}

func (x *stress) work() {
	token := core.NewToken()
	got, err := x.store.Claim(x.t.Context(), core.ClaimRequest{
		Wants: want("q", 1+rand.IntN(8), "n0", "n1", "n2"), Token: token, Lease: 10 * time.Second, Worker: "w",
	})
	if err != nil {
		x.t.Error(err)
	}
	var leases []core.Lease
	var acks []core.Ack
	x.mu.Lock()
	for _, j := range got.Jobs {
		x.claims[j.ID]++
		l := core.Lease{ID: j.ID, Token: token}
		leases = append(leases, l)
		if dice := rand.IntN(20); dice > 0 { // else the worker forgets it, and a sweep must take it back
			acks = append(acks, core.Ack{Lease: l, Outcome: outcomes[dice%len(outcomes)], Delay: time.Duration(dice%3) * time.Second})
		}
	}
	x.mu.Unlock()
	if _, err := x.store.Extend(x.t.Context(), leases, 20*time.Second); err != nil {
		x.t.Error(err)
	}
	res, err := x.store.Ack(x.t.Context(), acks)
	if err != nil {
		x.t.Error(err)
	}
	for i, r := range res {
		if r.Err == nil && (r.State.Terminal() || acks[i].Outcome == core.OutcomeRetry) {
			x.ran(acks[i].Lease.ID)
		}
	}
}

var outcomes = []core.Outcome{
	core.OutcomeComplete, core.OutcomeComplete, core.OutcomeFail, core.OutcomeRetry, core.OutcomeRelease, core.OutcomeSnooze, core.OutcomeCancel,
}

func (x *stress) ran(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.runs[id]++
}

func (x *stress) sweep() {
	x.clock.advance(100 * time.Millisecond)
	taken, err := x.store.RecoverStalled(x.t.Context(), core.RecoverRequest{MaxStalls: 2, Limit: 10, Confirm: time.Second})
	if err != nil {
		x.t.Error(err)
	}
	for _, r := range taken {
		x.ran(r.ID)
	}
}

// meddle does what an operator might, to a job that may or may not be there.
func (x *stress) meddle() {
	ctx := x.t.Context()
	id := fmt.Sprintf("%d-%d", rand.IntN(3), rand.IntN(400))
	switch rand.IntN(4) {
	case 0:
		if st, err := x.store.Cancel(ctx, id); err == nil && st == core.StateCancelled {
			x.ran(id)
		}
	case 1:
		_ = x.store.Promote(ctx, id) // most are not delayed
	case 2:
		if _, err := x.store.List(ctx, core.Query{States: []core.State{core.StateWaiting}, Limit: 5}); err != nil {
			x.t.Error(err)
		}
	case 3:
		if err := x.store.CheckInvariants(); err != nil {
			x.t.Error(err)
		}
	}
}
