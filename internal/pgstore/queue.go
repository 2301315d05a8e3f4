package pgstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
)

// Enqueue implements core.Enqueuer: all items that are not refused or, with an error, none. When it returns, other
// processes have been told, unless they were less than 5 ms ago: then they are when these are over.
func (s *Store) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	if err := s.ensureLanes(ctx, reqs); err != nil {
		return nil, err
	}
	var notify pgsql.Notify
	if queues := queuesOf(reqs); s.teller.Due(queues...) {
		notify = pgsql.Notify{Channel: s.channel, Origin: s.origin}
	}
	run := func(do op) error { return s.plain(ctx, Shared, true, do) }
	if pgsql.Whole(reqs) {
		run = func(do op) error { return s.atomic(ctx, do) }
	}
	var laneless atomic.Bool
	res, err := value(run, func(ctx context.Context, sn *session) ([]core.EnqueueResult, error) {
		res, err := sn.Enqueue(ctx, reqs, notify)
		laneless.Store(sn.Laneless())
		return res, err
	})
	if pgsql.Contended(err) {
		res, err = value(func(do op) error { return s.atomic(ctx, do) },
			func(ctx context.Context, sn *session) ([]core.EnqueueResult, error) {
				res, err := sn.EnqueueApart(ctx, reqs, notify)
				laneless.Store(sn.Laneless())
				return res, err
			})
	}
	if err == nil && laneless.Load() {
		err = s.remakeLanes(ctx, reqs)
	}
	if err != nil {
		return nil, err
	}
	return res, nil
}

// remakeLanes makes lanes that were there once. The jobs have landed; without it nobody would claim them.
func (s *Store) remakeLanes(ctx context.Context, reqs []core.EnqueueRequest) error {
	s.lanes.Forget(reqs)
	if err := s.ensureLanes(ctx, reqs); err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnknown, err)
	}
	for _, queue := range queuesOf(reqs) {
		s.hub.Ring(pgsql.News{Queue: queue})
		s.teller.Tell(pgsql.News{Queue: queue})
	}
	return nil
}

// ensureLanes makes the lanes that reqs are the first to use.
func (s *Store) ensureLanes(ctx context.Context, reqs []core.EnqueueRequest) error {
	return s.lanes.Ensure(ctx, reqs, func(ctx context.Context, do func(context.Context, *session) error) error {
		return s.plain(ctx, Own, false, do)
	})
}

func queuesOf(reqs []core.EnqueueRequest) []string {
	var queues []string
	seen := make(map[string]bool, 1)
	for i := range reqs {
		if q := reqs[i].Queue; !seen[q] {
			seen[q] = true
			queues = append(queues, q)
		}
	}
	return queues
}

// Claim implements core.Store.
func (s *Store) Claim(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
	if err := s.listen(); err != nil {
		return core.Claimed{}, err
	}
	if err := s.settle(ctx); err != nil {
		return core.Claimed{}, err
	}
	wake := s.hub.Token() // before the pick: news that came later wakes whoever waits with this token
	got, err := hot(ctx, s, func(ctx context.Context, sn *session) (core.Claimed, error) { return sn.Claim(ctx, req) })
	if err == nil {
		got.Wake = wake
	}
	return got, err
}

// Extend implements core.Store.
func (s *Store) Extend(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
	return hot(ctx, s, func(ctx context.Context, sn *session) (core.Extended, error) { return sn.Extend(ctx, leases, d) })
}

// Ack implements core.Store.
func (s *Store) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	return hot(ctx, s, func(ctx context.Context, sn *session) ([]core.AckResult, error) { return sn.Ack(ctx, acks) })
}

// RecoverStalled implements core.Store.
func (s *Store) RecoverStalled(ctx context.Context, req core.RecoverRequest) ([]core.Recovered, error) {
	return hot(ctx, s, func(ctx context.Context, sn *session) ([]core.Recovered, error) {
		got, err := sn.RecoverStalled(ctx, req)
		if err != nil {
			return nil, err
		}
		if err := sn.Fold(ctx); err != nil {
			s.opts.Logger.Warn("stint: totals of finished jobs were not summed up", "error", err) // the next sweep does
		}
		return got, nil
	})
}

// AwaitWake implements core.Store (Q15). The first call, of this or of Claim, opens the connection that listens;
// while that is down, or nobody listens, only this process's own news wake.
func (s *Store) AwaitWake(ctx context.Context, queues []string, since core.WakeToken) (core.Wake, error) {
	if err := s.listen(); err != nil {
		return core.Wake{}, err
	}
	return s.hub.Await(ctx, queues, since)
}

func (s *Store) settle(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return pgsql.Fault(ctx, s.backend.Settle(ctx), false)
}
