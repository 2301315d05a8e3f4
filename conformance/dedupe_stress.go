package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
)

// dedupeEverything makes all calls that have to do with keys at once, on a few keys, over two handles.
func dedupeEverything(k *kit) {
	o := k
	if k.suite.has[CapOpen] {
		o = k.other()
	}
	x := &keyStress{k: k, active: map[string]string{}}
	workers := []func(context.Context, *rand.Rand) error{
		x.produce(k), x.produce(o), x.produce(k), x.work(k), x.work(o), x.operate(o), x.watch(k),
	}
	k.race(len(workers), func(ctx context.Context, n int) error {
		return workers[n](ctx, rand.New(rand.NewPCG(uint64(n), 7)))
	})
	k.ok("what is pending at last", x.onePending(k.ctx, k))
}

type keyStress struct {
	k      *kit
	mu     sync.Mutex
	active map[string]string // the job that runs under a key
	ids    []string          // of jobs that were made
}

const stressKeys, stressCalls = 3, 60

func stressKey(rng *rand.Rand) string { return fmt.Sprintf("key-%d", rng.IntN(stressKeys)) }

// produce enqueues, plainly or with Replace, now or later, one or several.
func (x *keyStress) produce(k *kit) func(context.Context, *rand.Rand) error {
	return func(ctx context.Context, rng *rand.Rand) error {
		for n := range stressCalls {
			reqs := make([]core.EnqueueRequest, 1+rng.IntN(3))
			for i := range reqs {
				reqs[i] = request("", deduped(core.Dedupe{Key: stressKey(rng), Replace: rng.IntN(3) > 0}),
					payload(fmt.Appendf(nil, "%d-%d-%d", n, i, rng.Int())), delay(time.Duration(rng.IntN(4))*time.Second), prio(rng.IntN(3)))
			}
			res, err := k.store.Enqueue(ctx, reqs)
			if err != nil {
				return err
			}
			for _, r := range res {
				if r.Err != nil {
					return r.Err
				}
				x.mu.Lock()
				x.ids = append(x.ids, r.ID)
				x.mu.Unlock()
			}
		}
		return nil
	}
}

// work claims, looks whether it alone runs under its key, and what is stored is what it got, and ends in any way.
func (x *keyStress) work(k *kit) func(context.Context, *rand.Rand) error {
	outcomes := []core.Outcome{core.OutcomeComplete, core.OutcomeComplete, core.OutcomeFail, core.OutcomeRetry, core.OutcomeRelease}
	return func(ctx context.Context, rng *rand.Rand) error {
		for range stressCalls {
			token := core.NewToken()
			c, err := k.store.Claim(ctx, core.ClaimRequest{Wants: wants(2), Token: token, Lease: time.Hour})
			if err != nil {
				return err
			}
			for _, j := range c.Jobs {
				if err := x.begin(ctx, k, j); err != nil {
					return err
				}
				res, err := k.store.Ack(ctx, []core.Ack{{Lease: core.Lease{ID: j.ID, Token: token, Ref: j.Ref},
					Outcome: outcomes[rng.IntN(len(outcomes))], Delay: time.Duration(rng.IntN(3)) * time.Second}})
				if err != nil {
					return err
				}
				if res[0].Err != nil {
					return res[0].Err
				}
			}
		}
		return nil
	}
}

func (x *keyStress) begin(ctx context.Context, k *kit, j core.Record) error {
	x.mu.Lock()
	other, held := x.active[j.DedupeKey]
	x.active[j.DedupeKey] = j.ID
	x.mu.Unlock()
	if held {
		return fmt.Errorf("%q runs under %q while %q does", j.ID, j.DedupeKey, other)
	}
	r, err := k.insp.Get(ctx, j.ID)
	if err == nil && (!bytes.Equal(r.Payload, j.Payload) || r.Priority != j.Priority) {
		err = fmt.Errorf("%q runs with %q at %d, and its record says %q at %d", j.ID, j.Payload, j.Priority, r.Payload, r.Priority)
	}
	x.mu.Lock()
	delete(x.active, j.DedupeKey)
	x.mu.Unlock()
	return err
}

// operate cancels by key, retries and removes, and lets time pass.
func (x *keyStress) operate(k *kit) func(context.Context, *rand.Rand) error {
	return func(ctx context.Context, rng *rand.Rand) error {
		for range 2 * stressCalls {
			x.k.clock.Advance(time.Second / 2)
			x.mu.Lock()
			id := ""
			if len(x.ids) > 0 {
				id = x.ids[rng.IntN(len(x.ids))]
			}
			x.mu.Unlock()
			var err error
			switch rng.IntN(4) {
			case 0:
				_, err = k.admin.CancelByKey(ctx, theName, stressKey(rng))
			case 1:
				_, err = k.admin.Remove(ctx, id)
			default:
				err = k.admin.Retry(ctx, id)
			}
			var state *core.StateError
			var conflict *core.ConflictError
			if err != nil && !errors.As(err, &state) && !errors.As(err, &conflict) && !errors.Is(err, core.ErrNotFound) {
				return err
			}
		}
		return nil
	}
}

// watch looks at what is pending again and again.
func (x *keyStress) watch(k *kit) func(context.Context, *rand.Rand) error {
	return func(ctx context.Context, _ *rand.Rand) error {
		for range stressCalls {
			if err := x.onePending(ctx, k); err != nil {
				return err
			}
		}
		return nil
	}
}

func (x *keyStress) onePending(ctx context.Context, k *kit) error {
	page, err := k.insp.List(ctx, core.Query{States: []core.State{core.StateWaiting, core.StateDelayed, core.StateActive}, Limit: core.MaxListLimit})
	pending := map[string]string{}
	for _, j := range page.Jobs {
		if other, twice := pending[j.DedupeKey]; twice {
			return fmt.Errorf("%q and %q are pending under %q", other, j.ID, j.DedupeKey)
		}
		pending[j.DedupeKey] = j.ID
	}
	return err
}
