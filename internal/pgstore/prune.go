package pgstore

import (
	"context"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/keyplan"
	"github.com/stintmq/stint/internal/pgsql"
)

// pruneBatch is how many jobs one transaction deletes at most.
const pruneBatch = 1000

// Prune implements core.Retainer (Q28). One process of a schema prunes at a time: to the others it answers 0.
func (s *Store) Prune(ctx context.Context, req core.PruneRequest) (int, error) {
	if err := req.Validate(); err != nil {
		return 0, err
	}
	limit, total := req.Limit, 0
	if limit == 0 {
		limit = core.DefaultPruneLimit
	}
	for n, batch := 0, 0; total < limit && n == batch; total += n {
		batch = min(limit-total, pruneBatch)
		var err error
		if n, err = s.prune(ctx, req, batch); err != nil {
			return total, err
		}
	}
	return total, s.sweepKeys(ctx, max(limit, 2*limit)) // which an int may not hold
}

// sweepKeys looks at up to limit dedupe keys, from where it stopped the last time, for those that make no difference any
// more: twice as many as jobs are pruned, so that it keeps up with what is enqueued.
func (s *Store) sweepKeys(ctx context.Context, limit int) error {
	s.mu.Lock()
	after := s.sweptTo
	s.mu.Unlock()
	for looked := 0; looked < limit; looked += pruneBatch {
		var err error
		after, err = verb(ctx, s, func(ctx context.Context, sn *session) (keyplan.Key, error) {
			return sn.SweepKeys(ctx, after, min(limit-looked, pruneBatch))
		})
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.sweptTo = after
		s.mu.Unlock()
		if after == (keyplan.Key{}) {
			break
		}
	}
	return nil
}

func (s *Store) prune(ctx context.Context, req core.PruneRequest, batch int) (int, error) {
	from := s.pruned()
	var n int
	var to pgsql.Pruned
	err := s.atomic(ctx, func(ctx context.Context, sn *session) (err error) {
		n, to, err = sn.Prune(ctx, s.schema, req, batch, from)
		return err
	})
	if err != nil {
		return 0, err
	}
	s.setPruned(to)
	return n, nil
}

func (s *Store) pruned() pgsql.Pruned {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prunedTo
}

func (s *Store) setPruned(to pgsql.Pruned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prunedTo = to
}
