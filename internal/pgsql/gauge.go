package pgsql

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// One pass over each of the narrow tables. An index would find the first in line sooner, but not past the dead rows in
// front of it, of which there are most when somebody wants to know.
const sqlGauges = `select queue, sum(waiting)::bigint, sum(later)::bigint, sum(leased)::bigint,
		coalesce((extract(epoch from (select ` + since + `) - min(oldest)) * 1000000)::bigint, 0)
	from (
		select queue, count(*) as waiting, 0 as later, 0 as leased, min(run_at) as oldest from {}.ready group by queue
		union all
		select queue, count(*) filter (where run_at <= ` + since + `), count(*) filter (where run_at > ` + since + `), 0,
			min(run_at) filter (where run_at <= ` + since + `) from {}.delayed group by queue
		union all
		select queue, 0, 0, count(*), null from {}.leases group by queue) z
	group by queue order by queue`

// Gauges implements core.Gauger.
func (s *Session) Gauges(ctx context.Context) ([]core.QueueGauge, error) {
	gauges := []core.QueueGauge{}
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var g core.QueueGauge
		var micros int64
		err := r.Scan(&g.Queue, &g.Waiting, &g.Delayed, &g.Active, &micros)
		g.OldestWaiting = time.Duration(max(micros, 0)) * time.Microsecond
		gauges = append(gauges, g)
		return err
	}, sqlGauges, s.now)
	return gauges, err
}
