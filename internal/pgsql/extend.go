package pgsql

import (
	"context"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	// Rows that somebody holds, an application's transaction with a Complete in it say, are not waited for: all
	// the others would run out meanwhile (Q21).
	sqlExtend = `with ` + moment + `,
		h as materialized (
			select seq from {}.leases l
			where seq = any((select $2::bigint[])::bigint[]) and token = ($3::uuid[])[width_bucket(seq, $2::bigint[])]
				and ` + hasID + `($5::text[])[width_bucket(seq, $2::bigint[])]
			order by seq for update skip locked),
		u as (
			update {}.leases set suspect_at = null, until = greatest(until,
				(select now from t) + ($4::bigint / 1000000) * interval '1 second' + ($4::bigint % 1000000) * interval '1 microsecond')
			where seq = any(array(select seq from h)) returning seq, cancel)
		select seq, cancel from u`

	sqlHeld = `select seq, token::text from {}.leases where seq = any((select $1::bigint[])::bigint[])`
)

// Extend implements core.Store (Q5, Q7, Q21).
func (s *Session) Extend(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
	var out core.Extended
	if d < 0 {
		return out, &core.InvalidError{Field: "d", Reason: "must not be negative"}
	}
	seqs, err := s.guess(ctx, leases)
	if err != nil {
		return out, err
	}
	valid := func(i int) bool { return core.ValidateToken("Token", leases[i].Token) == nil }
	for i, l := range leases {
		if !valid(i) {
			out.Lost = append(out.Lost, l) // nobody's
		}
	}
	for _, part := range rounds(leases, seqs, valid) {
		if err := s.extend(ctx, leases, part, d, &out); err != nil {
			return core.Extended{}, err
		}
	}
	return out, nil
}

func (s *Session) extend(ctx context.Context, leases []core.Lease, part round, d time.Duration, out *core.Extended) error {
	missing, err := s.extendRound(ctx, leases, part, d, out)
	if err != nil || len(missing.at) == 0 {
		return err
	}
	right, err := s.resolve(ctx, leases, missing)
	if err != nil {
		return err
	}
	if !slices.Equal(right.seqs, missing.seqs) {
		if right, err = s.extendRound(ctx, leases, right, d, out); err != nil {
			return err
		}
	}
	held, err := s.held(ctx, right.seqs)
	if err != nil {
		return err
	}
	for n, i := range right.at {
		if held[right.seqs[n]] == leases[i].Token {
			out.Busy = append(out.Busy, leases[i])
		} else {
			out.Lost = append(out.Lost, leases[i])
		}
	}
	return nil
}

// extendRound extends leases of jobs each of which occurs once, and returns those that it did not.
func (s *Session) extendRound(ctx context.Context, leases []core.Lease, part round, d time.Duration, out *core.Extended) (missing round, err error) {
	part = part.ascending()
	extended := make(map[int64]bool, len(part.at)) // seq -> cancel requested
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var seq int64
		var cancel bool
		err := r.Scan(&seq, &cancel)
		extended[seq] = cancel
		return err
	}, sqlExtend, s.now, part.seqs, tokensAt(leases, part.at), int64(d/time.Microsecond), idsAt(leases, part.at))
	if err != nil {
		return missing, err
	}
	for n, i := range part.at {
		switch cancel, ok := extended[part.seqs[n]]; {
		case !ok:
			missing.add(i, part.seqs[n])
		case cancel:
			out.CancelRequested = append(out.CancelRequested, leases[i])
		}
	}
	return missing, nil
}

// held returns the tokens under which jobs are leased, as a new statement sees them.
func (s *Session) held(ctx context.Context, seqs []int64) (map[int64]string, error) {
	held := make(map[int64]string, len(seqs))
	if len(seqs) == 0 {
		return held, nil
	}
	err := sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var seq int64
		var token string
		err := r.Scan(&seq, &token)
		held[seq] = tokenOf(token)
		return err
	}, sqlHeld, seqs)
	return held, err
}

func tokensAt(leases []core.Lease, at []int) []string {
	tokens := make([]string, len(at))
	for n, i := range at {
		tokens[n] = leases[i].Token
	}
	return tokens
}

// idsAt are the ids as they can be compared: what can't be stored is nobody's.
func idsAt(leases []core.Lease, at []int) []string {
	ids := make([]string, len(at))
	for n, i := range at {
		if sane(leases[i].ID) {
			ids[n] = leases[i].ID
		}
	}
	return ids
}
