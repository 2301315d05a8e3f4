package bunstore

import (
	"context"

	"github.com/stintmq/stint/core"
)

var _ core.Gauger = (*Store)(nil)

// Gauges implements core.Gauger. It counts along indexes and reads no jobs.
func (s *lite) Gauges(ctx context.Context) ([]core.QueueGauge, error) {
	return result(ctx, s.read, func(ctx context.Context, sn *session) ([]core.QueueGauge, error) {
		return sn.Gauges(ctx)
	})
}
