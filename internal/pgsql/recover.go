package pgsql

import (
	"context"
	"fmt"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	sqlSuspect = `update {}.leases set suspect_at = ` + since + `
		where seq = any(array(
			select seq from {}.leases where until <= ` + since + ` and suspect_at is null order by seq for update skip locked))`

	sqlEnded = `select w.seq, w.token::text, w.stalls, j.id, w.name, w.queue, j.max_stalls
		from (
			select * from {}.leases
			where until <= ` + since + ` and suspect_at <= ` + since + ` - ($2::bigint / 1000000) * interval '1 second'
				- ($2::bigint % 1000000) * interval '1 microsecond'
			order by until, seq limit $3::bigint for update skip locked) w
		cross join lateral (select id, max_stalls from {}.jobs where seq = w.seq limit 1) j
		order by w.until, w.seq`

	// Totals are rows that were added; many become few. Rows that another sweep folds are left to it.
	sqlFold = `with d as (
			delete from {}.tallies where ctid = any(array(select ctid from {}.tallies
				where (select count(*) from (select from {}.tallies limit 500) found) >= 500 limit 20000 for update skip locked))
			returning *)
		insert into {}.tallies (queue, name, completed, failed, cancelled)
		select queue, name, sum(completed), sum(failed), sum(cancelled) from d group by queue, name`
)

// defaultSweep is the most that a sweep without a Limit takes.
const defaultSweep = 1000

// RecoverStalled implements core.Store (Q7): first mark, then take what was marked Confirm ago. No row that somebody
// holds is waited for: its holder is at work.
func (s *Session) RecoverStalled(ctx context.Context, req core.RecoverRequest) ([]core.Recovered, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if _, err := s.x.Exec(ctx, sqlSuspect, s.now); err != nil {
		return nil, err
	}
	limit := int64(defaultSweep)
	if req.Limit > 0 {
		limit = int64(req.Limit)
	}
	confirm := micros(req.Confirm)
	var seqs []int64
	var ends []settlement
	var jobs []core.Recovered
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var seq, stalls, maxStalls int64
		var token string
		var id *string
		var rec core.Recovered
		if err := r.Scan(&seq, &token, &stalls, &id, &rec.Name, &rec.Queue, &maxStalls); err != nil {
			return err
		}
		if rec.ID = ownID(seq); id != nil {
			rec.ID = *id
		}
		seqs, jobs = append(seqs, seq), append(jobs, rec)
		ends = append(ends, stall(core.Lease{Ref: seq, ID: rec.ID, Token: tokenOf(token)}, stalls+1, stallLimit(maxStalls, req.MaxStalls)))
		return nil
	}, sqlEnded, s.now, confirm, limit)
	if err != nil || len(seqs) == 0 {
		return nil, err
	}
	done, err := s.settle(ctx, ends, confirm)
	if err != nil {
		return nil, err
	}
	taken := jobs[:0]
	for i, job := range jobs {
		if e, ok := done[seqs[i]]; ok {
			job.State = stateName(e.state)
			taken = append(taken, job)
		}
	}
	return taken, nil
}

// Fold sums up the totals of finished jobs, which every ack adds to.
func (s *Session) Fold(ctx context.Context) error {
	_, err := s.x.Exec(ctx, sqlFold)
	return err
}

// stallLimit is how many stalls a job tolerates: its own number, or the sweep's where it has none.
func stallLimit(own int64, request int) int64 {
	if own != 0 {
		return max(own, 0)
	}
	return max(int64(request), 0)
}

// stall is how a lease ends that is taken back: the n-th.
func stall(of core.Lease, n, limit int64) settlement {
	e := settlement{seq: of.Ref, id: of.ID, token: of.Token, outcome: core.OutcomeStalled, counts: countsStall, yields: true}
	if n > limit {
		e.state = failed
		e.failure = &core.Failure{
			Type:    "stalled",
			Message: fmt.Sprintf("stalled %d times, more than the limit of %d", n, limit),
		}
		return e
	}
	e.state, e.delay = delayed, micros(core.StallDelay(int(n)))
	return e
}
