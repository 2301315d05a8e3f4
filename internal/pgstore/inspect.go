package pgstore

import (
	"context"

	"github.com/stintmq/stint/core"
)

// Get implements core.Inspector.
func (s *Store) Get(ctx context.Context, id string) (core.Record, error) {
	return read(ctx, s, func(ctx context.Context, sn *session) (core.Record, error) {
		return sn.Get(ctx, id)
	})
}

// Attempts implements core.Inspector.
func (s *Store) Attempts(ctx context.Context, id string) ([]core.Attempt, error) {
	return read(ctx, s, func(ctx context.Context, sn *session) ([]core.Attempt, error) {
		return sn.Attempts(ctx, id)
	})
}

// List implements core.Inspector. OrderEnqueued is the order of insertion, and reads past the jobs that a filter leaves out; OrderRun serves
// delayed jobs of a queue; OrderFinished reads no more than it returns, unless Metadata filters.
func (s *Store) List(ctx context.Context, q core.Query) (core.Page, error) {
	return read(ctx, s, func(ctx context.Context, sn *session) (core.Page, error) {
		return sn.List(ctx, q)
	})
}

// Counts implements core.Inspector. Finished jobs cost nothing to count.
func (s *Store) Counts(ctx context.Context, queue string) (map[core.State]int64, error) {
	return read(ctx, s, func(ctx context.Context, sn *session) (map[core.State]int64, error) {
		return sn.Counts(ctx, queue)
	})
}

// Stranded implements core.Inspector.
func (s *Store) Stranded(ctx context.Context, known []string) ([]core.Stranded, error) {
	return read(ctx, s, func(ctx context.Context, sn *session) ([]core.Stranded, error) {
		return sn.Stranded(ctx, known)
	})
}

// Explain implements core.Inspector.
func (s *Store) Explain(ctx context.Context, id string) (core.Explanation, error) {
	return read(ctx, s, func(ctx context.Context, sn *session) (core.Explanation, error) {
		return sn.Explain(ctx, id)
	})
}
