package litesql

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// Counts come from indexes alone, lane by lane. For the age only those first in line are looked at, of each rank: to
// compare all would read every row.
const sqlGauges = `with recursive ranks (rank) as (select -9 union all select rank + 1 from ranks where rank < 9),
	held as materialized (select lane, count(*) as n from stint_work indexed by stint_work_active where state = 3 group by lane)
	select l.queue,
		(select count(*) from stint_work where lane = l.lane and state = 1),
		(select count(*) from stint_work where lane = l.lane and state = 2 and run_at <= ?1),
		(select count(*) from stint_work where lane = l.lane and state = 2 and run_at > ?1),
		coalesce((select n from held where lane = l.lane), 0),
		(select min((select run_at from stint_work where lane = l.lane and (stalls > 0) = 0 and rank = r.rank and state = 1 order by place limit 1)) from ranks r),
		(select min((select run_at from stint_work where lane = l.lane and (stalls > 0) = 1 and rank = r.rank and state = 1 order by place limit 1)) from ranks r),
		(select run_at from stint_work where lane = l.lane and state = 2 and run_at <= ?1 order by run_at limit 1)
	from stint_lanes l order by l.queue`

// Gauges implements core.Gauger.
func (s *Session) Gauges(ctx context.Context) ([]core.QueueGauge, error) {
	gauges := []core.QueueGauge{}
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		lane := core.QueueGauge{}
		var due int64
		var first, stalled, dueSince *int64
		if err := r.Scan(&lane.Queue, &lane.Waiting, &due, &lane.Delayed, &lane.Active, &first, &stalled, &dueSince); err != nil {
			return err
		}
		lane.Waiting += due
		if lane == (core.QueueGauge{Queue: lane.Queue}) {
			return nil // nothing pending
		}
		for _, at := range []*int64{first, stalled, dueSince} {
			if at != nil {
				lane.OldestWaiting = max(lane.OldestWaiting, time.Duration(s.now-*at)*time.Microsecond)
			}
		}
		if n := len(gauges); n > 0 && gauges[n-1].Queue == lane.Queue {
			sum := &gauges[n-1]
			sum.Waiting, sum.Delayed, sum.Active = sum.Waiting+lane.Waiting, sum.Delayed+lane.Delayed, sum.Active+lane.Active
			sum.OldestWaiting = max(sum.OldestWaiting, lane.OldestWaiting)
		} else {
			gauges = append(gauges, lane)
		}
		return nil
	}, sqlGauges, s.now)
	return gauges, err
}
