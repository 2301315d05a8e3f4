package pgstore

import (
	"context"

	"github.com/stintmq/stint/core"
)

var _ core.Gauger = (*Store)(nil)

// Gauges implements core.Gauger. It reads what is pending, and nothing of what has finished.
func (s *Store) Gauges(ctx context.Context) ([]core.QueueGauge, error) {
	return read(ctx, s, func(ctx context.Context, sn *session) ([]core.QueueGauge, error) {
		return sn.Gauges(ctx)
	})
}
