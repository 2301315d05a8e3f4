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

// Complete is one Ack of a caller's transaction (Q14). A repeated one is ErrLeaseLost: what else the transaction
// writes must not be written twice.
func (s *Session) Complete(ctx context.Context, l core.Lease, result []byte) error {
	ack := core.Ack{Lease: l, Outcome: core.OutcomeComplete, Result: result}
	if err := ack.Validate(s.limits); err != nil {
		return err
	}
	seqs, err := s.seqsOf(ctx, []core.Lease{l})
	if err != nil {
		return err
	}
	if seqs[0] == 0 {
		return core.ErrNotFound
	}
	standings, err := s.standings(ctx, seqs)
	if err != nil {
		return err
	}
	st := standings[seqs[0]]
	if st == nil || st.state != active || st.token != l.Token {
		return core.ErrLeaseLost
	}
	c := s.changes()
	if err := c.complete(st, result); err != nil {
		return err
	}
	if err := c.exec(ctx); err != nil {
		return err
	}
	return s.flush(ctx)
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
	seq, res := a.seqs[i], &a.results[i]
	if seq == 0 {
		res.Err = core.ErrNotFound
		return nil
	}
	if a.answers == nil {
		if err := a.readAnswers(ctx); err != nil {
			return err
		}
	}
	if was, ok := a.answers[answerKey{seq, a.acks[i].Lease.Token}]; ok && was.asked == a.acks[i].Outcome {
		res.State = stateName(was.state)
		return nil
	}
	res.Err = core.ErrLeaseLost
	return nil
}

// readAnswers reads the ledger of the call's jobs, and adds what this call did so far.
func (a *acking) readAnswers(ctx context.Context) error {
	a.answers = make(map[answerKey]answer)
	err := sqlexec.Each(ctx, a.s.x, func(r sqlexec.Rows) error {
		var key answerKey
		var was answer
		if err := r.Scan(&key.seq, &key.token, (*string)(&was.asked), &was.state); err != nil {
			return err
		}
		a.answers[key] = was
		return nil
	}, sqlAnswers, numbers(known(a.seqs)))
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
	return nil
}
