package bunstore

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/litesql"
)

// result runs an operation that answers with a value.
func result[T any](
	ctx context.Context,
	run func(context.Context, func(context.Context, *session) error) error,
	op func(context.Context, *session) (T, error),
) (T, error) {
	var out T
	err := run(ctx, func(ctx context.Context, sn *session) (err error) {
		out, err = op(ctx, sn)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return out, nil
}

// Enqueue implements core.Enqueuer: one transaction, all items or, with an error, none.
func (s *lite) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	return result(ctx, s.write, func(ctx context.Context, sn *session) ([]core.EnqueueResult, error) {
		return sn.Enqueue(ctx, reqs)
	})
}

// Claim implements core.Store.
func (s *lite) Claim(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
	return result(ctx, s.write, func(ctx context.Context, sn *session) (core.Claimed, error) {
		return sn.Claim(ctx, req)
	})
}

// Extend implements core.Store. Nothing is ever Busy.
func (s *lite) Extend(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
	return result(ctx, s.writeFirst, func(ctx context.Context, sn *session) (core.Extended, error) {
		return sn.Extend(ctx, leases, d)
	})
}

// Ack implements core.Store.
func (s *lite) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	return result(ctx, s.writeFirst, func(ctx context.Context, sn *session) ([]core.AckResult, error) {
		return sn.Ack(ctx, acks)
	})
}

// RecoverStalled implements core.Store.
func (s *lite) RecoverStalled(ctx context.Context, req core.RecoverRequest) ([]core.Recovered, error) {
	return result(ctx, s.write, func(ctx context.Context, sn *session) ([]core.Recovered, error) {
		return sn.RecoverStalled(ctx, req)
	})
}

// AwaitWake implements core.Store. Commits of this store wake at once, those of WithTx and of other processes
// within 2 to 20 ms (Q15).
func (s *lite) AwaitWake(ctx context.Context, queues []string, since core.WakeToken) (core.Wake, error) {
	if err := s.enter(); err != nil {
		return core.Wake{}, err
	}
	defer s.calls.Done()
	return s.hub.await(ctx, queues, since)
}

// news is what the hub reads: see litesql.Session.News.
func (s *lite) news(ctx context.Context, after int64) (last map[string]int64, tick int64, err error) {
	err = s.readOn(ctx, s.listener, s.listening, func(ctx context.Context, sn *litesql.Session) (err error) {
		last, tick, err = sn.News(ctx, after)
		return err
	})
	return last, tick, err
}
