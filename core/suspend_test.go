package core

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// leaseOnly is a store with one active job, whose Extend can be made to fail.
type leaseOnly struct {
	Store
	beats atomic.Int32
	down  atomic.Bool
}

func (s *leaseOnly) Extend(context.Context, []Lease, time.Duration) (Extended, error) {
	s.beats.Add(1)
	if s.down.Load() {
		return Extended{}, ErrUnavailable
	}
	return Extended{}, nil
}

// TestSuspendedMachine: the monotonic clock stands still while a machine sleeps, leases do not. A wall clock that
// ran ahead makes every lease doubtful until one Extend answers (architecture decision 4, Q21).
func TestSuspendedMachine(t *testing.T) {
	for _, reachable := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := &leaseOnly{}
			w, err := NewWorker(store, WorkerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var slept atomic.Int64
			w.beat.wall = func() time.Time { return time.Now().Round(0).Add(time.Duration(slept.Load())) }
			runs := newRuns(t.Context(), []Record{{ID: "a", Name: "n", Queue: "q"}}, NewToken(), time.Now().Add(30*time.Second), nil)
			w.flights.add(runs)
			ctx, cancel := context.WithCancel(t.Context())
			go w.beat.loop(ctx)
			time.Sleep(5 * time.Second)
			slept.Store(int64(time.Hour))
			store.down.Store(!reachable)
			time.Sleep(time.Second)
			synctest.Wait()
			if len(w.plan.kick) != 1 {
				t.Fatal("nobody looks for slots that passed meanwhile")
			}
			if store.beats.Load() != 1 {
				t.Fatalf("%d beats", store.beats.Load())
			}
			if cause := context.Cause(&runs[0].ctx); cause != nil {
				t.Fatalf("told before the store had time to answer: %v", cause)
			}
			time.Sleep(7 * time.Second)
			if cause := context.Cause(&runs[0].ctx); reachable && cause != nil || !reachable && !errors.Is(cause, ErrLeaseDoubtful) {
				t.Fatalf("reachable %v: cause %v", reachable, cause)
			}
			cancel()
		})
	}
}
