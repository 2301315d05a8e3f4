package pgstoretest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// everythingAtOnce: claims, heartbeats, acks of every outcome, sweeps and admin verbs of two processes, in any order
// of rows. Nothing deadlocks, nothing fails, and every job is in one place in the end.
func everythingAtOnce(t testing.TB, k *Kit) {
	first := k.Open(t, nil)
	stores := []Store{first, k.OpenAt(t, k.SchemaOf(first), nil)}
	ctx := context.Background()
	var reqs []core.EnqueueRequest
	for i := range 300 {
		r := withID(fmt.Sprint("id-", i))
		r.Priority = i % 3
		reqs = append(reqs, r)
	}
	Enqueue(t, first, reqs...)
	until := time.Now().Add(2 * time.Second)
	var all sync.WaitGroup
	again := func(f func(r *rand.Rand, s Store) error) {
		for i := range 4 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				for time.Now().Before(until) {
					if err := f(r, stores[i%2]); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	again(func(r *rand.Rand, s Store) error {
		token := core.NewToken()
		got, err := s.Claim(ctx, core.ClaimRequest{Token: token, Worker: "w", Lease: time.Duration(r.IntN(20)) * time.Millisecond,
			Wants: []core.Want{{Queue: "q", Names: []string{"job"}, Limit: 1 + r.IntN(40)}}})
		if err != nil || len(got.Jobs) == 0 {
			return err
		}
		held := leases(got, token)
		r.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		if _, err := s.Extend(ctx, held, time.Duration(r.IntN(20))*time.Millisecond); err != nil {
			return err
		}
		outcomes := []core.Outcome{core.OutcomeComplete, core.OutcomeRetry, core.OutcomeRelease, core.OutcomeSnooze, core.OutcomeFail}
		acks := make([]core.Ack, len(held))
		for i := range held {
			acks[i] = core.Ack{Lease: held[i], Outcome: outcomes[r.IntN(len(outcomes))]}
			if acks[i].Outcome == core.OutcomeRetry {
				acks[i].Delay = time.Duration(r.IntN(3)) * time.Millisecond
			}
		}
		res, err := s.Ack(ctx, acks)
		for _, a := range res {
			if a.Err != nil && !errors.Is(a.Err, core.ErrLeaseLost) && !errors.Is(a.Err, core.ErrNotFound) && !errors.Is(a.Err, core.ErrUnavailable) {
				return a.Err
			}
		}
		return err
	})
	again(func(r *rand.Rand, s Store) error {
		_, err := s.RecoverStalled(ctx, core.RecoverRequest{MaxStalls: 1000, Limit: 20})
		return err
	})
	again(func(r *rand.Rand, s Store) error {
		req := reqs[r.IntN(len(reqs))]
		var err error
		switch r.IntN(4) {
		case 0:
			_, err = s.Cancel(ctx, req.ID)
		case 1:
			err = s.Retry(ctx, req.ID)
		case 2:
			err = s.Promote(ctx, req.ID)
		default:
			if _, err = s.Remove(ctx, req.ID); err == nil {
				_, err = s.Enqueue(ctx, []core.EnqueueRequest{req})
			}
		}
		if _, refused := errors.AsType[*core.StateError](err); refused || errors.Is(err, core.ErrNotFound) {
			return nil
		}
		return err
	})
	all.Wait()
	k.CheckInvariants(t, k.SchemaOf(first))
}
