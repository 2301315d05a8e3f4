package bunstore

import (
	"context"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
	"github.com/stintmq/stint/internal/litesql"
)

// pruneTurn is how many jobs one turn of the writer deletes: a few milliseconds' worth.
const pruneTurn = 100

// Prune implements core.Retainer (Q28). Others may write between its turns.
func (s *lite) Prune(ctx context.Context, req core.PruneRequest) (int, error) {
	if err := req.Validate(); err != nil {
		return 0, err
	}
	var expired []litesql.Expired
	err := s.read(ctx, func(ctx context.Context, sn *session) (err error) {
		expired, err = sn.Expired(ctx, req)
		return err
	})
	if err != nil {
		return 0, err
	}
	limit, total := req.Limit, 0
	if limit == 0 {
		limit = core.DefaultPruneLimit
	}
	for len(expired) > 0 && total < limit {
		turn, n := min(limit-total, pruneTurn), 0
		err := s.write(ctx, func(ctx context.Context, sn *session) (err error) {
			n, err = sn.Prune(ctx, expired[0], turn)
			return err
		})
		if err != nil {
			return total, err
		}
		if total += n; n < turn {
			expired = expired[1:]
		}
	}
	return total, s.sweepKeys(ctx, max(limit, 2*limit)) // which an int may not hold
}

// sweepKeys looks at up to limit dedupe keys, from where it stopped the last time, for those that make no difference any
// more: twice as many as jobs are pruned, so that it keeps up with what is enqueued.
func (s *lite) sweepKeys(ctx context.Context, limit int) error {
	s.mu.Lock()
	after := s.swept
	s.mu.Unlock()
	for looked := 0; looked < limit; looked += 2 * pruneTurn {
		err := s.write(ctx, func(ctx context.Context, sn *session) (err error) {
			after, err = sn.SweepKeys(ctx, after, min(limit-looked, 2*pruneTurn))
			return err
		})
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.swept = after
		s.mu.Unlock()
		if after == (keyplan.Key{}) {
			break
		}
	}
	return nil
}
