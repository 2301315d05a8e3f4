package litesql

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	sqlGet = `select ` + bodyColumns + `, ` + anyColumns + ` from ` + anyFrom + ` where j.seq = ?`

	sqlAttempts = `select number, outcome, started_at, finished_at, worker, failure, null from stint_runs where seq = ?1
		union all
		select runs, outcome, started_at, finished_at, worker, failure, result from stint_finished where seq = ?1
		order by 1`

	sqlCountWork = `select
		(select count(*) from stint_work where state = 1),
		(select count(*) from stint_work where state = 2),
		(select count(*) from stint_work where state = 2 and run_at <= ?1),
		(select count(*) from stint_work where state = 3)`
	sqlCountDone = `select coalesce(sum(completed), 0), coalesce(sum(failed), 0), coalesce(sum(cancelled), 0) from stint_lanes`

	sqlCountQueueWork = `select
		(select count(*) from stint_work where state = 1 and lane in (select lane from stint_lanes where queue = ?2)),
		(select count(*) from stint_work where state = 2 and lane in (select lane from stint_lanes where queue = ?2)),
		(select count(*) from stint_work where state = 2 and lane in (select lane from stint_lanes where queue = ?2) and run_at <= ?1),
		(select count(*) from stint_work where state = 3 and lane in (select lane from stint_lanes where queue = ?2))`
	sqlCountQueueDone = sqlCountDone + ` where queue = ?`

	sqlStranded = `select l.queue, l.name, count(*) from stint_work w
		join stint_lanes l on l.lane = w.lane
		where l.name not in (select value from json_each(?))
		group by l.queue, l.name order by l.queue, l.name`

	// Runnable jobs of a queue that come before (rank, place); due ones that did not join yet will do so behind
	// the waiting ones of their rank.
	sqlAhead = `select
		(select count(*) from stint_lanes l cross join stint_work w on w.lane = l.lane
			where l.queue = ?1 and w.state = 1 and (w.rank, w.place) < (?2, ?3)) +
		(select count(*) from stint_lanes l cross join stint_work w on w.lane = l.lane
			where l.queue = ?1 and w.state = 2 and w.run_at <= ?4 and (w.rank, w.run_at, w.seq) < (?2, ?5, ?6))`

	sqlLine = `select rank, coalesce(until, 0) from stint_work where seq = ?`

	sqlIsPaused = `select count(*) from stint_paused where queue = ?`
)

// Get implements core.Inspector. One statement sees one moment, so a job that moves is never missed.
func (s *Session) Get(ctx context.Context, id string) (core.Record, error) {
	seq, found, err := s.find(ctx, id)
	if err != nil {
		return core.Record{}, err
	}
	var rec core.Record
	if found {
		found = false
		err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) (err error) {
			found = true
			rec, err = scanRecord(r, s.now)
			return err
		}, sqlGet, seq)
	}
	if err == nil && !found {
		err = core.ErrNotFound
	}
	return rec, err
}

// Attempts implements core.Inspector (Q9).
func (s *Session) Attempts(ctx context.Context, id string) ([]core.Attempt, error) {
	attempts := []core.Attempt{}
	seq, found, err := s.find(ctx, id)
	if err != nil || !found {
		return attempts, err
	}
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var a core.Attempt
		var startedAt, finishedAt *int64
		var worker, failure *string
		var result blob
		if err := r.Scan(&a.Number, (*string)(&a.Outcome), &startedAt, &finishedAt, &worker, &failure, &result); err != nil {
			return err
		}
		a.StartedAt, a.FinishedAt = moment(startedAt), moment(finishedAt)
		a.Worker, a.Result = value(worker), result
		attempts = append(attempts, a)
		return fromDoc(failure, &attempts[len(attempts)-1].Failure)
	}, sqlAttempts, seq)
	return attempts, err
}

// Counts implements core.Inspector (Q27). Finished jobs are summed over lanes, not counted.
func (s *Session) Counts(ctx context.Context, queue string) (map[core.State]int64, error) {
	counts := make(map[core.State]int64)
	for _, state := range core.States() {
		counts[state] = 0
	}
	work, workArgs := sqlCountWork, []any{s.now}
	done, doneArgs := sqlCountDone, []any{}
	if queue != "" {
		work, workArgs = sqlCountQueueWork, []any{s.now, queue}
		done, doneArgs = sqlCountQueueDone, []any{queue}
	}
	var wait, delay, due, act, comp, fail, canc int64
	if _, err := sqlexec.One(ctx, s.x, []any{&wait, &delay, &due, &act}, work, workArgs...); err != nil {
		return nil, err
	}
	if _, err := sqlexec.One(ctx, s.x, []any{&comp, &fail, &canc}, done, doneArgs...); err != nil {
		return nil, err
	}
	counts[core.StateWaiting], counts[core.StateDelayed], counts[core.StateActive] = wait+due, delay-due, act
	counts[core.StateCompleted], counts[core.StateFailed], counts[core.StateCancelled] = comp, fail, canc
	return counts, nil
}

// Stranded implements core.Inspector.
func (s *Session) Stranded(ctx context.Context, known []string) ([]core.Stranded, error) {
	names := make([]string, 0, len(known))
	for _, name := range known {
		if utf8.ValidString(name) {
			names = append(names, name)
		}
	}
	list, err := texts(names)
	if err != nil {
		return nil, err
	}
	stranded := []core.Stranded{}
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var st core.Stranded
		err := r.Scan(&st.Queue, &st.Name, &st.Count)
		stranded = append(stranded, st)
		return err
	}, sqlStranded, list)
	return stranded, err
}

// Explain implements core.Inspector (Q27).
func (s *Session) Explain(ctx context.Context, id string) (core.Explanation, error) {
	ex := core.Explanation{ID: id}
	seq, st, fin, err := s.locate(ctx, id)
	if err != nil {
		return ex, err
	}
	if fin != nil {
		ex.State, ex.Reason = stateName(fin.state), core.ReasonFinished
		return ex, nil
	}
	var rank, until int64
	if _, err := sqlexec.One(ctx, s.x, []any{&rank, &until}, sqlLine, seq); err != nil {
		return ex, err
	}
	switch ex.State = st.shown(s.now); ex.State {
	case core.StateActive:
		ex.Reason, ex.Worker = core.ReasonLeased, st.worker
		ex.LeaseFor = time.Duration(until-s.now) * time.Microsecond
		return ex, nil
	case core.StateDelayed:
		ex.Reason = core.ReasonDelayed
		ex.DueIn = time.Duration(st.runAt-s.now) * time.Microsecond
		return ex, nil
	}
	var queue string
	if _, err := sqlexec.One(ctx, s.x, []any{&queue}, sqlQueues, numbers([]int64{st.lane})); err != nil {
		return ex, err
	}
	var paused int
	if _, err := sqlexec.One(ctx, s.x, []any{&paused}, sqlIsPaused, queue); err != nil {
		return ex, err
	}
	if paused > 0 {
		ex.Reason = core.ReasonPaused
		return ex, nil
	}
	ex.Reason = core.ReasonQueued
	place, runAt := st.place, int64(0)
	if st.state == delayed { // due, not joined: behind every waiting job of its rank
		place, runAt = never, st.runAt
	}
	_, err = sqlexec.One(ctx, s.x, []any{&ex.Ahead}, sqlAhead, queue, rank, place, s.now, runAt, seq)
	return ex, err
}
