package bunstore

import (
	"context"

	"github.com/stintmq/stint/core"
)

// Get implements core.Inspector.
func (s *lite) Get(ctx context.Context, id string) (core.Record, error) {
	return result(ctx, s.read, func(ctx context.Context, sn *session) (core.Record, error) {
		return sn.Get(ctx, id)
	})
}

// Attempts implements core.Inspector.
func (s *lite) Attempts(ctx context.Context, id string) ([]core.Attempt, error) {
	return result(ctx, s.read, func(ctx context.Context, sn *session) ([]core.Attempt, error) {
		return sn.Attempts(ctx, id)
	})
}

// List implements core.Inspector. OrderEnqueued reads past the jobs that a filter leaves out; OrderRun serves
// delayed jobs of a queue; OrderFinished reads no more than it returns, unless Metadata filters.
func (s *lite) List(ctx context.Context, q core.Query) (core.Page, error) {
	return result(ctx, s.read, func(ctx context.Context, sn *session) (core.Page, error) {
		return sn.List(ctx, q)
	})
}

// Counts implements core.Inspector. Finished jobs cost nothing to count.
func (s *lite) Counts(ctx context.Context, queue string) (map[core.State]int64, error) {
	return result(ctx, s.read, func(ctx context.Context, sn *session) (map[core.State]int64, error) {
		return sn.Counts(ctx, queue)
	})
}

// Stranded implements core.Inspector.
func (s *lite) Stranded(ctx context.Context, known []string) ([]core.Stranded, error) {
	return result(ctx, s.read, func(ctx context.Context, sn *session) ([]core.Stranded, error) {
		return sn.Stranded(ctx, known)
	})
}

// Explain implements core.Inspector.
func (s *lite) Explain(ctx context.Context, id string) (core.Explanation, error) {
	return result(ctx, s.read, func(ctx context.Context, sn *session) (core.Explanation, error) {
		return sn.Explain(ctx, id)
	})
}
