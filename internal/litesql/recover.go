package litesql

import (
	"context"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	sqlSuspect = `update stint_work indexed by stint_work_active set suspect_at = ?
		where state = 3 and until <= ? and suspect_at is null`

	sqlEnded = `select ` + standingColumns + `, j.id, l.name, l.queue, j.max_stalls
		from stint_work w indexed by stint_work_active
		cross join stint_jobs j on j.seq = w.seq
		cross join stint_lanes l on l.lane = j.lane
		where w.state = 3 and w.until <= ? and w.suspect_at <= ?
		order by w.until limit ?`
)

// defaultSweep is the most that a sweep without a Limit takes.
const defaultSweep = 1000

// RecoverStalled implements core.Store (Q7): first mark, then take what was marked Confirm ago.
func (s *Session) RecoverStalled(ctx context.Context, req core.RecoverRequest) ([]core.Recovered, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if _, err := s.x.Exec(ctx, sqlSuspect, s.now, s.now); err != nil {
		return nil, err
	}
	limit := req.Limit
	if limit == 0 {
		limit = defaultSweep
	}
	type ended struct {
		standing
		maxStalls int64
	}
	var jobs []*ended
	var out []core.Recovered
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		job := new(ended)
		var id *string
		var rec core.Recovered
		if err := job.scan(r, &id, &rec.Name, &rec.Queue, &job.maxStalls); err != nil {
			return err
		}
		if rec.ID = ownID(job.seq); id != nil {
			rec.ID = *id
		}
		jobs, out = append(jobs, job), append(out, rec)
		return nil
	}, sqlEnded, s.now, s.now-int64(req.Confirm/time.Microsecond), limit)
	if err != nil {
		return nil, err
	}
	c := s.changes()
	for i, job := range jobs {
		if err := c.stall(&job.standing, stallLimit(job.maxStalls, req.MaxStalls)); err != nil {
			return nil, err
		}
		out[i].State = job.shown(s.now)
	}
	if err := c.exec(ctx); err != nil {
		return nil, err
	}
	return out, s.flush(ctx)
}

// stallLimit is how many stalls a job tolerates: its own number, or the sweep's where it has none.
func stallLimit(own int64, request int) int64 {
	if own != 0 {
		return max(own, 0)
	}
	return max(int64(request), 0)
}

// stall takes one lease back.
func (c *changes) stall(st *standing, limit int64) error {
	if st.cancel {
		return c.end(st, cancelled, entry{outcome: core.OutcomeCancel})
	}
	st.stalls++
	if st.stalls > limit {
		return c.end(st, failed, entry{outcome: core.OutcomeStalled, failure: &core.Failure{
			Type:    "stalled",
			Message: fmt.Sprintf("stalled %d times, more than the limit of %d", st.stalls, limit),
		}})
	}
	err := c.record(st, delayed, entry{outcome: core.OutcomeStalled})
	c.again(st, c.s.now+micros(core.StallDelay(int(st.stalls))))
	return err
}
