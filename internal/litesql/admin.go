package litesql

import (
	"context"
	"errors"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	sqlAskCancel = `update stint_work set cancel = 1 where seq = ?`

	sqlFinal = `select lane, state, run_at, snoozes, runs, fence from stint_finished where seq = ?`

	// The end becomes an ordinary ledger entry. It has no result: what completed is never revived.
	sqlKeepEntry = `insert into stint_runs (seq, number, outcome, asked, answered, token, started_at, finished_at, worker, failure)
		select seq, runs, outcome, asked, state, token, started_at, finished_at, worker, failure
		from stint_finished where seq = ?`
	sqlUnfinish = `delete from stint_finished where seq = ?`
	sqlRevive   = `insert into stint_work (seq, lane, rank, state, place, run_at, snoozes, runs, fence)
		select seq, lane, -priority, 1, ?, ?, ?, ?, ? from stint_jobs where seq = ?`

	sqlRemoveWork = `delete from stint_work where seq = ?`
	sqlRemoveRuns = `delete from stint_runs where seq = ?`
	sqlRemoveJob  = `delete from stint_jobs where seq = ?`

	sqlPause  = `insert into stint_paused (queue) values (?) on conflict do nothing`
	sqlResume = `delete from stint_paused where queue = ?`
	sqlPaused = `select queue from stint_paused order by queue`
)

// final is what an admin verb needs to know of a finished job.
type final struct {
	lane, state, runAt   int64
	snoozes, runs, fence int64
}

// locate returns how a job stands: one of its two rows, or ErrNotFound.
func (s *Session) locate(ctx context.Context, id string) (seq int64, st *standing, fin *final, err error) {
	seq, found, err := s.find(ctx, id)
	if err != nil {
		return 0, nil, nil, err
	}
	if !found {
		return 0, nil, nil, core.ErrNotFound
	}
	pending, err := s.standings(ctx, []int64{seq})
	if err != nil {
		return 0, nil, nil, err
	}
	if st := pending[seq]; st != nil {
		return seq, st, nil, nil
	}
	fin = new(final)
	_, err = sqlexec.One(ctx, s.x, []any{&fin.lane, &fin.state, &fin.runAt, &fin.snoozes, &fin.runs, &fin.fence},
		sqlFinal, seq)
	return seq, nil, fin, err
}

// Cancel implements core.Admin (Q8).
func (s *Session) Cancel(ctx context.Context, id string) (core.State, error) {
	seq, st, fin, err := s.locate(ctx, id)
	switch {
	case err != nil:
		return "", err
	case fin != nil:
		return "", &core.StateError{ID: id, State: stateName(fin.state), Op: "cancel"}
	case st.state == active:
		if _, err := s.x.Exec(ctx, sqlAskCancel, seq); err != nil {
			return "", err
		}
		s.wake(control)
		return core.StateActive, s.flush(ctx)
	}
	c := s.changes()
	if err := c.end(st, cancelled, entry{outcome: core.OutcomeCancel}); err != nil {
		return "", err
	}
	return core.StateCancelled, c.exec(ctx)
}

// Retry implements core.Admin (Q8): the budgets start again, the ledger goes on.
func (s *Session) Retry(ctx context.Context, id string) error {
	seq, st, fin, err := s.locate(ctx, id)
	switch {
	case err != nil:
		return err
	case st != nil:
		return &core.StateError{ID: id, State: st.shown(s.now), Op: "retry"}
	case fin.state == completed:
		return &core.StateError{ID: id, State: core.StateCompleted, Op: "retry"}
	}
	if err := s.retake(ctx, seq, id); err != nil {
		return err
	}
	place, err := s.take(ctx, 1)
	if err != nil {
		return err
	}
	undo := totals{}
	undo.add(fin.lane, fin.state, -1)
	if err := undo.exec(ctx, s.x); err != nil {
		return err
	}
	for _, step := range []struct {
		text string
		args []any
	}{
		{sqlKeepEntry, []any{seq}},
		{sqlUnfinish, []any{seq}},
		{sqlRevive, []any{place, s.now, fin.snoozes, fin.runs, fin.fence, seq}},
	} {
		if _, err := s.x.Exec(ctx, step.text, step.args...); err != nil {
			return err
		}
	}
	if err := s.wakeLane(ctx, fin.lane); err != nil {
		return err
	}
	return s.flush(ctx)
}

// Promote implements core.Admin (Q8).
func (s *Session) Promote(ctx context.Context, id string) error {
	_, st, fin, err := s.locate(ctx, id)
	if err != nil {
		return err
	}
	if fin != nil {
		return &core.StateError{ID: id, State: stateName(fin.state), Op: "promote"}
	}
	if state := st.shown(s.now); state != core.StateDelayed {
		return &core.StateError{ID: id, State: state, Op: "promote"}
	}
	c := s.changes()
	c.again(st, s.now)
	if err := c.exec(ctx); err != nil {
		return err
	}
	return s.flush(ctx)
}

// Remove implements core.Admin (Q8).
func (s *Session) Remove(ctx context.Context, id string) (bool, error) {
	seq, st, fin, err := s.locate(ctx, id)
	switch {
	case errors.Is(err, core.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case st != nil && st.state == active:
		return false, nil
	case fin != nil:
		undo := totals{}
		undo.add(fin.lane, fin.state, -1)
		if err := undo.exec(ctx, s.x); err != nil {
			return false, err
		}
	}
	if err := s.FreeKeys(ctx, []int64{seq}); err != nil {
		return false, err
	}
	// Row by row: the cascade works only on connections that enforce foreign keys.
	for _, text := range []string{sqlRemoveWork, sqlUnfinish, sqlRemoveRuns, sqlRemoveJob} {
		if _, err := s.x.Exec(ctx, text, seq); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Pause implements core.Admin (Q8).
func (s *Session) Pause(ctx context.Context, queue string) error {
	if err := core.ValidateQueue("queue", queue); err != nil {
		return err
	}
	_, err := s.x.Exec(ctx, sqlPause, queue)
	return err
}

// Resume implements core.Admin (Q8).
func (s *Session) Resume(ctx context.Context, queue string) error {
	if err := core.ValidateQueue("queue", queue); err != nil {
		return err
	}
	if _, err := s.x.Exec(ctx, sqlResume, queue); err != nil {
		return err
	}
	s.wake(queue)
	return s.flush(ctx)
}

// Paused implements core.Admin.
func (s *Session) Paused(ctx context.Context) ([]string, error) {
	queues := []string{}
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var q string
		err := r.Scan(&q)
		queues = append(queues, q)
		return err
	}, sqlPaused)
	return queues, err
}

// wakeLane tells the queue of a lane.
func (s *Session) wakeLane(ctx context.Context, lane int64) error {
	var queue string
	if _, err := sqlexec.One(ctx, s.x, []any{&queue}, sqlQueues, numbers([]int64{lane})); err != nil {
		return err
	}
	s.wake(queue)
	return nil
}
