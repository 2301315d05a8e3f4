package pgstore

import (
	"context"

	"github.com/stintmq/stint/core"
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
	for total < limit {
		batch := min(limit-total, pruneBatch)
		n, err := s.prune(ctx, req, batch)
		if total += n; err != nil || n < batch {
			return total, err
		}
	}
	return total, nil
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
