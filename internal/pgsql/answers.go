package pgsql

import (
	"context"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	sqlNamed = `select j.seq, j.id, l.token::text
		from {}.jobs j left join {}.leases l on l.seq = j.seq where j.seq = any((select $1::bigint[])::bigint[])`

	sqlAnswers = `select seq, token::text, asked, answered from {}.runs
			where seq = any((select $1::bigint[])::bigint[]) and token is not null and asked is not null
		union all
		select f.* from unnest((select $1::bigint[])) u (seq) cross join lateral (
			select seq, token::text, asked, state from {}.finished where seq between u.seq and u.seq order by seq limit 1) f
			where token is not null and asked is not null`
)

// lease is one claim of a job, by its number.
type lease struct {
	seq   int64
	token string
}

// answer answers the acks of a round that ended no lease: as they were answered the first time, if it was they that
// ended it (Q5). It returns those whose lease is current. The leases are looked at first: what ended one since
// its statement is in the ledger by the next.
func (s *Session) answer(ctx context.Context, acks []core.Ack, part round, results []core.AckResult) (held round, err error) {
	type job struct{ id, token string }
	jobs := make(map[int64]job, len(part.at))
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var seq int64
		var id, token *string
		if err := r.Scan(&seq, &id, &token); err != nil {
			return err
		}
		jobs[seq] = job{ownID(seq), tokenOf(value(token))}
		if id != nil {
			jobs[seq] = job{*id, jobs[seq].token}
		}
		return nil
	}, sqlNamed, part.seqs)
	if err != nil {
		return held, err
	}
	was := make(map[lease]answer, len(part.at))
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var of lease
		var a answer
		err := r.Scan(&of.seq, &of.token, (*string)(&a.asked), &a.state)
		of.token = tokenOf(of.token)
		was[of] = a
		return err
	}, sqlAnswers, part.seqs)
	if err != nil {
		return held, err
	}
	for n, i := range part.at {
		seq, ack := part.seqs[n], &acks[i]
		switch j, ok := jobs[seq]; {
		case !ok || j.id != ack.Lease.ID:
			// The job that Ref names is gone; its id may have come back with another.
			results[i].Err = core.ErrLeaseLost
			if _, found, err := s.find(ctx, ack.Lease.ID); err != nil {
				return held, err
			} else if !found {
				results[i].Err = core.ErrNotFound
			}
		case j.token != "" && j.token == ack.Lease.Token:
			held.at, held.seqs = append(held.at, i), append(held.seqs, seq)
		default:
			results[i].Err = core.ErrLeaseLost
			if a, ok := was[lease{seq, ack.Lease.Token}]; ok && a.asked == ack.Outcome && stateName(a.state) != "" {
				results[i] = core.AckResult{State: stateName(a.state)}
			}
		}
	}
	return held, nil
}

// answer is what an ack was told, for when it is repeated.
type answer struct {
	asked core.Outcome
	state int64
}
