package litesql

import (
	"context"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	sqlAnswers = `select r.seq, r.token, r.asked, r.answered from json_each(?1) e
			cross join stint_runs r on r.seq = e.value where r.token is not null and r.asked is not null
		union all
		select f.seq, f.token, f.asked, f.state from json_each(?1) e
			cross join stint_finished f on f.seq = e.value where f.token is not null and f.asked is not null`

	sqlNamed = `select j.seq, j.id from json_each(?) e cross join stint_jobs j on j.seq = e.value`
)

// Ack implements core.Store (Q5, Q6): positional, as if each had been a call of its own, in order.
func (s *Session) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	a := acking{s: s, acks: acks, results: make([]core.AckResult, len(acks)), changes: s.changes()}
	leases := make([]core.Lease, len(acks))
	for i, ack := range acks {
		leases[i] = ack.Lease
	}
	var err error
	if a.seqs, err = s.seqsOf(ctx, leases); err != nil {
		return nil, err
	}
	if a.standings, err = s.standings(ctx, known(a.seqs)); err != nil {
		return nil, err
	}
	for i := range acks {
		if err := a.one(ctx, i); err != nil {
			return nil, err
		}
	}
	if err := a.changes.exec(ctx); err != nil {
		return nil, err
	}
	return a.results, s.flush(ctx)
}

// seqsOf finds the jobs that leases are of, by Ref or by id; 0: there is none.
func (s *Session) seqsOf(ctx context.Context, leases []core.Lease) ([]int64, error) {
	seqs := make([]int64, len(leases))
	var ids []string
	for i, l := range leases {
		if seqs[i] = l.Ref; l.Ref != 0 {
			continue
		}
		if own, ok := seqOf(l.ID); ok {
			seqs[i] = own
		} else if sane(l.ID) {
			ids = append(ids, l.ID)
		}
	}
	held, err := s.holders(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, l := range leases {
		if seqs[i] == 0 {
			seqs[i] = held[l.ID].seq
		}
	}
	return seqs, nil
}

func known(seqs []int64) []int64 {
	list := make([]int64, 0, len(seqs))
	for _, seq := range seqs {
		if seq != 0 {
			list = append(list, seq)
		}
	}
	return list
}

// acking is one call of Ack.
type acking struct {
	s         *Session
	acks      []core.Ack
	results   []core.AckResult
	seqs      []int64
	standings map[int64]*standing
	changes   *changes

	answers map[answerKey]answer // of earlier calls and of this one; nil: not read yet
	ids     map[int64]string     // the jobs there are
}

type answerKey struct {
	seq   int64
	token string
}

// answer is what an ack was told, for when it is repeated.
type answer struct {
	asked core.Outcome
	state int64
}

func (a *acking) one(ctx context.Context, i int) error {
	ack, res := a.acks[i], &a.results[i]
	if res.Err = ack.Validate(a.s.limits); res.Err != nil {
		return nil
	}
	st := a.standings[a.seqs[i]]
	if st == nil || st.state != active || st.token != ack.Lease.Token {
		return a.late(ctx, i)
	}
	token := st.token
	recorded, err := a.apply(st, ack)
	if err != nil {
		return err
	}
	res.State = st.shown(a.s.now)
	if recorded && a.answers != nil {
		a.answers[answerKey{st.seq, token}] = answer{ack.Outcome, st.state}
	}
	return nil
}

// apply ends a lease that is current, and reports whether the ledger got an entry.
func (a *acking) apply(st *standing, ack core.Ack) (recorded bool, err error) {
	c, e := a.changes, entry{outcome: ack.Outcome, asked: ack.Outcome}
	switch ack.Outcome {
	case core.OutcomeComplete:
		return true, c.complete(st, ack.Result)
	case core.OutcomeFail:
		st.attempts++
		e.failure = ack.Failure
		return true, c.end(st, failed, e)
	}
	if ack.Outcome == core.OutcomeCancel || st.cancel { // Q6: whatever else was asked meets a pending cancel
		e.outcome = core.OutcomeCancel
		return true, c.end(st, cancelled, e)
	}
	runAt := a.s.now + micros(ack.Delay)
	switch ack.Outcome {
	case core.OutcomeRetry:
		st.attempts++
		e.failure = ack.Failure
		state := int64(waiting)
		if runAt > a.s.now {
			state = delayed
		}
		err = c.record(st, state, e)
		c.again(st, runAt)
		return true, err
	case core.OutcomeSnooze:
		st.snoozes++
		c.again(st, runAt)
	default: // release
		c.release(st)
	}
	return false, nil
}

// late answers an ack whose lease is not current: as it was answered the first time, if it was this one that
// ended the lease (Q5).
func (a *acking) late(ctx context.Context, i int) error {
	if a.answers == nil {
		if err := a.readAnswers(ctx); err != nil {
			return err
		}
	}
	lease, seq, res := a.acks[i].Lease, a.seqs[i], &a.results[i]
	if id, ok := a.ids[seq]; !ok || id != lease.ID {
		// The job that Ref names is gone; its id may have come back with another.
		if _, found, err := a.s.find(ctx, lease.ID); err != nil || !found {
			res.Err = core.ErrNotFound
			return err
		}
		res.Err = core.ErrLeaseLost
		return nil
	}
	if was, ok := a.answers[answerKey{seq, lease.Token}]; ok && was.asked == a.acks[i].Outcome {
		res.State = stateName(was.state)
		return nil
	}
	res.Err = core.ErrLeaseLost
	return nil
}

// readAnswers reads the ledger of the call's jobs, and adds what this call did so far.
func (a *acking) readAnswers(ctx context.Context) error {
	a.answers, a.ids = make(map[answerKey]answer), make(map[int64]string)
	list := numbers(known(a.seqs))
	err := sqlexec.Each(ctx, a.s.x, func(r sqlexec.Rows) error {
		var key answerKey
		var was answer
		if err := r.Scan(&key.seq, &key.token, (*string)(&was.asked), &was.state); err != nil {
			return err
		}
		a.answers[key] = was
		return nil
	}, sqlAnswers, list)
	if err != nil {
		return err
	}
	for i, res := range a.results {
		ack := a.acks[i]
		if res.Err == nil && res.State != "" && (res.State.Terminal() || ack.Outcome == core.OutcomeRetry) {
			key := answerKey{a.seqs[i], ack.Lease.Token}
			if _, ok := a.answers[key]; !ok {
				a.answers[key] = answer{ack.Outcome, stateCode(res.State)}
			}
		}
	}
	return sqlexec.Each(ctx, a.s.x, func(r sqlexec.Rows) error {
		var seq int64
		var id *string
		if err := r.Scan(&seq, &id); err != nil {
			return err
		}
		a.ids[seq] = ownID(seq)
		if id != nil {
			a.ids[seq] = *id
		}
		return nil
	}, sqlNamed, list)
}
