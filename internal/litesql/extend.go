package litesql

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

const (
	sqlHeld = `select w.seq, w.token, w.cancel from json_each(?) e
		cross join stint_work w on w.seq = e.value where w.state = 3`

	sqlExtend = `update stint_work indexed by stint_work_active set until = max(until, ?), suspect_at = null
		where state = 3 and seq in (select value from json_each(?))`
)

// Extend implements core.Store (Q5, Q7, Q21). Nothing is ever Busy here: whoever holds the write lock holds all
// of it.
func (s *Session) Extend(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
	var out core.Extended
	if d < 0 {
		return out, &core.InvalidError{Field: "d", Reason: "must not be negative"}
	}
	seqs, err := s.seqsOf(ctx, leases)
	if err != nil || len(leases) == 0 {
		return out, err
	}
	type hold struct {
		token  string
		cancel bool
	}
	held := make(map[int64]hold, len(leases))
	err = sqlexec.Each(ctx, s.x, func(r sqlexec.Rows) error {
		var seq int64
		var h hold
		err := r.Scan(&seq, &h.token, &h.cancel)
		held[seq] = h
		return err
	}, sqlHeld, numbers(known(seqs)))
	if err != nil {
		return out, err
	}
	current := make([]int64, 0, len(leases))
	for i, l := range leases {
		switch h, ok := held[seqs[i]]; {
		case !ok || h.token != l.Token:
			out.Lost = append(out.Lost, l)
			continue
		case h.cancel:
			out.CancelRequested = append(out.CancelRequested, l)
		}
		current = append(current, seqs[i])
	}
	if len(current) == 0 {
		return out, nil
	}
	_, err = s.x.Exec(ctx, sqlExtend, s.now+int64(d/time.Microsecond), numbers(current))
	return out, err
}
