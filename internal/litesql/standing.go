package litesql

import (
	"context"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// standing is a pending job's row, and what a call makes of it before it is written back.
type standing struct {
	seq, lane, state                int64
	place, runAt                    int64
	attempts, stalls, snoozes, runs int64
	fence                           int64
	token                           string
	claimedAt                       *int64
	worker                          string
	cancel                          bool
}

const standingColumns = `w.seq, w.lane, w.state, w.place, w.run_at, w.attempts, w.stalls, w.snoozes, w.runs,
	w.fence, w.token, w.claimed_at, w.worker, w.cancel`

// scan reads standingColumns and whatever a statement appends to them.
func (st *standing) scan(r sqlexec.Rows, more ...any) error {
	var token, worker *string
	err := r.Scan(append([]any{&st.seq, &st.lane, &st.state, &st.place, &st.runAt, &st.attempts, &st.stalls,
		&st.snoozes, &st.runs, &st.fence, &token, &st.claimedAt, &worker, &st.cancel}, more...)...)
	st.token, st.worker = value(token), value(worker)
	return err
}

// shown is the state that the outside sees: a delayed job that is due waits (Q27).
func (st *standing) shown(now int64) core.State {
	if st.state == delayed && st.runAt <= now {
		return core.StateWaiting
	}
	return stateName(st.state)
}

const (
	sqlStanding = `select ` + standingColumns + `
		from json_each(?) e cross join stint_work w on w.seq = e.value`

	sqlPending = `update stint_work set state = ?, place = ?, run_at = ?, attempts = ?, stalls = ?, snoozes = ?, runs = ?,
			token = null, until = null, suspect_at = null, claimed_at = null, worker = null, cancel = 0
		where seq = ?`

	sqlGone = `delete from stint_work indexed by stint_work_active
		where state = 3 and seq in (select value from json_each(?))`

	sqlTrim = `delete from stint_runs where seq = ? and number <= ?`

	// The finished rows of active jobs that completed and have no result: nearly all that most queues ever write.
	// What they say is in the work rows already. Written from arguments, 17 a row, they cost 1.5 times as much.
	sqlCompleted = `insert into stint_finished (seq, lane, state, run_at, attempts, stalls, snoozes, runs, fence,
			outcome, asked, token, started_at, finished_at, worker)
		select w.seq, w.lane, ?2, w.run_at, w.attempts + 1, w.stalls, w.snoozes, w.runs + 1, w.fence,
			?3, ?3, w.token, w.claimed_at, ?4, w.worker
		from json_each(?1) e cross join stint_work w on w.seq = e.value`
)

var (
	newFinished = into("stint_finished", "seq", "lane", "state", "run_at", "attempts", "stalls", "snoozes", "runs", "fence",
		"outcome", "asked", "token", "started_at", "finished_at", "worker", "result", "failure")
	newRuns = into("stint_runs", "seq", "number", "outcome", "asked", "answered", "token", "started_at", "finished_at",
		"worker", "failure")
)

// standings returns the rows of those of the jobs that are pending.
func (s *Session) standings(ctx context.Context, seqs []int64) (map[int64]*standing, error) {
	found := make(map[int64]*standing, len(seqs))
	if len(seqs) == 0 {
		return found, nil
	}
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		st := new(standing)
		if err := st.scan(r); err != nil {
			return err
		}
		found[st.seq] = st
		return nil
	}, sqlStanding, numbers(seqs))
	return found, err
}

// changes gathers what a call does to pending jobs, so that it is written in a few statements.
type changes struct {
	s        *Session
	ended    []int64 // leases that ended their jobs
	plain    []int64 // those of ended whose finished row follows from the work row
	waited   []int64 // jobs that ended while they were pending
	finished rows
	runs     rows
	trims    []*standing
	totals   totals
	pending  []*standing
	places   []*standing // those of pending that draw a new place, in order
}

func (s *Session) changes() *changes { return &changes{s: s, totals: totals{}} }

// entry is what the ledger says of a run, or of an end without one.
type entry struct {
	outcome, asked core.Outcome // asked "": nobody did
	result         []byte
	failure        *core.Failure
}

// complete finishes an active job that ran well.
func (c *changes) complete(st *standing, result []byte) error {
	st.attempts++
	if result != nil {
		return c.end(st, completed, entry{outcome: core.OutcomeComplete, asked: core.OutcomeComplete, result: result})
	}
	st.runs++
	c.plain = append(c.plain, st.seq)
	c.gone(st, completed)
	return nil
}

// end finishes a job; the finished row is its last ledger entry too (Q9).
func (c *changes) end(st *standing, state int64, e entry) error {
	failure, err := failureDoc(e.failure)
	if err != nil {
		return err
	}
	st.runs++
	c.finished.add(len(e.result),
		st.seq, st.lane, state, st.runAt, st.attempts, st.stalls, st.snoozes, st.runs, st.fence,
		string(e.outcome), text(string(e.asked)), text(st.token), st.claimedAt, c.s.now, text(st.worker),
		bytes(e.result), failure)
	c.gone(st, state)
	return nil
}

// gone notes that a job is pending no longer.
func (c *changes) gone(st *standing, state int64) {
	if st.state == active {
		c.ended = append(c.ended, st.seq)
	} else {
		c.waited = append(c.waited, st.seq)
	}
	c.totals.add(st.lane, state, 1)
	c.trim(st)
	st.state = state
}

// record writes a ledger entry of a run that did not end the job.
func (c *changes) record(st *standing, answered int64, e entry) error {
	failure, err := failureDoc(e.failure)
	if err != nil {
		return err
	}
	st.runs++
	c.runs.add(0, st.seq, st.runs, string(e.outcome), text(string(e.asked)), answered, text(st.token), st.claimedAt,
		c.s.now, text(st.worker), failure)
	c.trim(st)
	return nil
}

func (c *changes) trim(st *standing) {
	if st.runs > core.LedgerLimit {
		c.trims = append(c.trims, st)
	}
}

// release puts an active job back where it was, as if never claimed (Q2, Q6).
func (c *changes) release(st *standing) {
	st.state, st.token = waiting, ""
	c.pending = append(c.pending, st)
}

// again makes a job pending at runAt, at a new place (Q2).
func (c *changes) again(st *standing, runAt int64) {
	st.state, st.runAt, st.token = waiting, runAt, ""
	if runAt > c.s.now {
		st.state = delayed
	}
	c.pending = append(c.pending, st)
	c.places = append(c.places, st)
}

// exec writes everything down.
func (c *changes) exec(ctx context.Context) error {
	x := c.s.x
	if len(c.plain) > 0 { // before the work rows go
		if _, err := x.Exec(ctx, sqlCompleted, numbers(c.plain), completed, string(core.OutcomeComplete), c.s.now); err != nil {
			return err
		}
	}
	if len(c.ended) > 0 {
		if _, err := x.Exec(ctx, sqlGone, numbers(c.ended)); err != nil {
			return err
		}
	}
	for _, seq := range c.waited {
		if _, err := x.Exec(ctx, sqlRemoveWork, seq); err != nil {
			return err
		}
	}
	if err := newFinished.exec(ctx, x, &c.finished); err != nil {
		return err
	}
	if err := newRuns.exec(ctx, x, &c.runs); err != nil {
		return err
	}
	for _, st := range c.trims {
		if _, err := x.Exec(ctx, sqlTrim, st.seq, st.runs-core.LedgerLimit); err != nil {
			return err
		}
	}
	if err := c.totals.exec(ctx, x); err != nil {
		return err
	}
	if len(c.places) > 0 {
		place, err := c.s.take(ctx, len(c.places))
		if err != nil {
			return err
		}
		for i, st := range c.places {
			st.place = place + int64(i)
		}
	}
	for _, st := range c.pending {
		if _, err := x.Exec(ctx, sqlPending, st.state, st.place, st.runAt, st.attempts, st.stalls, st.snoozes, st.runs,
			st.seq); err != nil {
			return err
		}
	}
	return c.wake(ctx)
}

const sqlQueues = `select distinct l.queue from json_each(?) e cross join stint_lanes l on l.lane = e.value`

// wake tells the queues of jobs that became pending again.
func (c *changes) wake(ctx context.Context) error {
	if len(c.pending) == 0 {
		return nil
	}
	lanes := make([]int64, 0, 4)
	seen := make(map[int64]bool)
	for _, st := range c.pending {
		if !seen[st.lane] {
			seen[st.lane] = true
			lanes = append(lanes, st.lane)
		}
	}
	return sqlexec.Each(ctx, c.s.x, func(r sqlexec.Rows) error {
		var queue string
		err := r.Scan(&queue)
		c.s.wake(queue)
		return err
	}, sqlQueues, numbers(lanes))
}
