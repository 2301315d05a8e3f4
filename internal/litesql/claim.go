package litesql

import (
	"context"
	"math"
	"time"
	"unicode/utf8"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	// One row per wanted name that has a lane in a queue that is not paused.
	sqlLanes = `select e.key, l.lane,
			exists (select 1 from stint_work w where w.lane = l.lane and w.state = 1 and (w.stalls > 0) = 0),
			exists (select 1 from stint_work w where w.lane = l.lane and w.state = 1 and (w.stalls > 0) = 1),
			(select w.run_at from stint_work w where w.lane = l.lane and w.state = 2 order by w.run_at limit 1)
		from json_each(?) e
		cross join stint_lanes l on l.queue = e.value ->> 0 and l.name = e.value ->> 1
		where l.queue not in (select queue from stint_paused)`

	// json_each comes first and in order: the rows are read as they were picked, none further than the cap.
	sqlBodies = `select ` + bodyColumns + `, ` + claimColumns + `
		from json_each(?) e
		cross join stint_jobs j on j.seq = e.value
		cross join stint_lanes l on l.lane = j.lane
		cross join stint_work w on w.seq = j.seq`

	// An update by list: every row of the select is there already. What a plain update does with
	// "seq in (list)" depends on statistics, and those of a table with ten rows make it read all of a table that
	// has a million by now; cross join has one order.
	sqlLease = updateEach + `
		on conflict (seq) do update set state = 3, fence = fence + 1, token = ?, until = ?, suspect_at = null,
			claimed_at = ?, worker = ?, cancel = 0`

	sqlUnderToken = `select ` + bodyColumns + `, ` + claimColumns + `, w.cancel, w.claimed_at
		from stint_work w indexed by stint_work_active
		cross join stint_jobs j on j.seq = w.seq
		cross join stint_lanes l on l.lane = j.lane
		where w.state = 3 and w.token = ?`
)

// updateEach is the beginning of an upsert of the jobs in a JSON list; e.key is their position in it.
const updateEach = `insert into stint_work (seq, lane, rank, state, place, run_at)
		select w.seq, w.lane, w.rank, w.state, e.key, w.run_at
		from json_each(?) e cross join stint_work w on w.seq = e.value where true`

// never is later than every stored time.
const never = math.MaxInt64

// lane is what a claim knows of one wanted (queue, name).
type lane struct {
	id      int64
	fresh   bool  // jobs wait in it that never stalled
	stalled bool  // and jobs that did
	due     int64 // when its next delayed job is due, or never
}

// Claim implements core.Store (Q2 to Q4).
func (s *Session) Claim(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
	if err := req.Validate(); err != nil {
		return core.Claimed{}, err
	}
	tick, err := s.tick(ctx) // before the pick: news that came later wakes whoever waits with this token
	if err != nil {
		return core.Claimed{}, err
	}
	out := core.Claimed{Wake: WakeToken(tick)}
	if !wanting(req.Wants) {
		out.Jobs, err = s.underToken(ctx, req.Token)
		return out, err
	}
	lanes, err := s.lanes(ctx, req.Wants)
	if err != nil {
		return out, err
	}
	p := picker{s: s, taken: make(map[int64]bool)}
	if err := p.pick(ctx, req.Wants, lanes); err != nil {
		return out, err
	}
	if out.Jobs, err = s.bodies(ctx, p.picked); err != nil {
		return out, err
	}
	if len(out.Jobs) < len(p.picked) {
		p.cut(len(out.Jobs))
	}
	if err := s.lease(ctx, req, out.Jobs); err != nil {
		return out, err
	}
	out.NextIn = p.nextIn()
	return out, s.flush(ctx)
}

func wanting(wants []core.Want) bool {
	for _, w := range wants {
		if w.Limit > 0 {
			return true
		}
	}
	return false
}

// lanes finds the lanes of each want.
func (s *Session) lanes(ctx context.Context, wants []core.Want) ([][]lane, error) {
	var pairs [][2]string
	var wantOf []int
	for i, w := range wants {
		if w.Limit == 0 {
			continue
		}
		seen := make(map[string]bool, len(w.Names))
		for _, name := range w.Names {
			if !seen[name] && utf8.ValidString(name) && utf8.ValidString(w.Queue) {
				seen[name] = true
				pairs = append(pairs, [2]string{w.Queue, name})
				wantOf = append(wantOf, i)
			}
		}
	}
	lanes := make([][]lane, len(wants))
	if len(pairs) == 0 {
		return lanes, nil
	}
	list, err := texts(pairs)
	if err != nil {
		return nil, err
	}
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var key int
		var due *int64
		l := lane{due: never}
		if err := r.Scan(&key, &l.id, &l.fresh, &l.stalled, &due); err != nil {
			return err
		}
		if due != nil {
			l.due = *due
		}
		lanes[wantOf[key]] = append(lanes[wantOf[key]], l)
		return nil
	}, sqlLanes, list)
	return lanes, err
}

// bodies reads the picked jobs, in order, up to MaxClaimBytes of payload but one at least (Q4).
func (s *Session) bodies(ctx context.Context, picked []int64) ([]core.Record, error) {
	if len(picked) == 0 {
		return nil, nil
	}
	rows, err := s.x.Query(ctx, sqlBodies, numbers(picked))
	if err != nil {
		return nil, err
	}
	jobs := make([]core.Record, 0, len(picked))
	total := 0
	row := newClaimRow()
	for rows.Next() {
		rec, err := row.scan(rows)
		if err != nil {
			_ = rows.Close() // the scan's error says more
			return nil, err
		}
		if total += len(rec.Payload); total > core.MaxClaimBytes && len(jobs) > 0 {
			break
		}
		jobs = append(jobs, rec)
	}
	if err := rows.Err(); err != nil {
		_ = rows.Close() // the same error again
		return nil, err
	}
	return jobs, rows.Close()
}

// lease makes the jobs active under the request's token, in the table and in the records.
func (s *Session) lease(ctx context.Context, req core.ClaimRequest, jobs []core.Record) error {
	if len(jobs) == 0 {
		return nil
	}
	seqs := make([]int64, len(jobs))
	for i := range jobs {
		seqs[i] = jobs[i].Ref
		jobs[i].State = core.StateActive
		jobs[i].Fence++
		jobs[i].ClaimedAt = moment(&s.now)
	}
	_, err := s.x.Exec(ctx, sqlLease, numbers(seqs), req.Token, s.now+int64(req.Lease/time.Microsecond), s.now, text(req.Worker))
	return err
}

// underToken returns what a token still holds: how a worker finds out about a claim whose reply was lost.
func (s *Session) underToken(ctx context.Context, token string) ([]core.Record, error) {
	var jobs []core.Record
	var claimedAt *int64
	var cancel bool
	row := newClaimRow(&cancel, &claimedAt)
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		rec, err := row.scan(r)
		rec.State, rec.CancelRequested, rec.ClaimedAt = core.StateActive, cancel, moment(claimedAt)
		jobs = append(jobs, rec)
		return err
	}, sqlUnderToken, token)
	return jobs, err
}
