package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/stintmq/stint/core"
)

var _ core.Gauger = (*Store)(nil)

// Gauges implements core.Gauger. It goes through the waiting jobs.
func (s *Store) Gauges(ctx context.Context) ([]core.QueueGauge, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	s.joinAllDue("", now)
	gauges := []core.QueueGauge{}
	for _, q := range s.queues {
		g := core.QueueGauge{
			Queue:   q.name,
			Waiting: q.counts[stateIndex(core.StateWaiting)],
			Delayed: q.counts[stateIndex(core.StateDelayed)],
			Active:  q.counts[stateIndex(core.StateActive)],
		}
		for _, l := range q.lanes {
			for _, b := range [...]*bin{&l.fresh, &l.stalled} {
				for i := range b.nodes {
					g.OldestWaiting = max(g.OldestWaiting, now.Sub(b.nodes[i].item.rec.RunAt))
				}
			}
		}
		if g != (core.QueueGauge{Queue: q.name}) {
			gauges = append(gauges, g)
		}
	}
	slices.SortFunc(gauges, func(a, b core.QueueGauge) int { return cmp.Compare(a.Queue, b.Queue) })
	return gauges, nil
}
