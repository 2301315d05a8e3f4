package pgsql

import (
	"slices"
	"time"
)

// horizon tells up to which number, and to which time, a claim has seen everything that there will ever be.
//
// Numbers are drawn, and times taken, by transactions that have a number of their own before (sqlInsert and all others
// see to that). A claim that takes a job has one as well: whatever was drawn before it was sent belongs to older
// transactions. Once all of these have ended, a claim that begins later sees what they left. (Of a claim that takes
// nothing it is not known which transactions are older: a snapshot names the newest that has ended, not the newest.)
//
// A transaction that writes for long, in whatever table, would stop this: so what was drawn settleAfter ago counts as
// seen. Of a transaction that took longer, and enqueued something in that time, its notification tells.
type horizon struct {
	seen   point // the newest that a claim brought back
	fences []fence
}

// point is a moment in the life of the database.
type point struct {
	number int64 // the newest that was drawn
	now    time.Time
}

// fence is what was drawn before a claim was sent, and the claim's own transaction, 0 if it had none.
type fence struct {
	point
	sent time.Time
	own  int64
}

const (
	settleAfter = 2 * time.Second
	maxFences   = 4096 // of claims during settleAfter
)

// note takes down what a claim brought back. before is what was seen when it was sent.
func (h *horizon) note(before point, sent time.Time, got point, own int64) {
	f := fence{before, sent, own}
	switch n := len(h.fences); {
	case before.number == 0:
	case n > 0 && before.number <= h.fences[n-1].number: // nothing new was drawn
		if h.fences[n-1].own == 0 && before.number == h.fences[n-1].number {
			h.fences[n-1].own = own
		}
	case n < maxFences:
		h.fences = append(h.fences, f)
	}
	if got.number >= h.seen.number {
		h.seen = got
	}
}

// reached is the point up to which a claim, sent then, has seen everything whose snapshot saw the end of all transactions
// before oldest. The zero point: nobody knows.
func (h *horizon) reached(oldest int64, sent time.Time) point {
	i := len(h.fences) - 1
	for ; i >= 0; i-- {
		if f := h.fences[i]; f.own != 0 && f.own < oldest || sent.Sub(f.sent) >= settleAfter {
			break
		}
	}
	if i < 0 {
		return point{}
	}
	h.fences = slices.Delete(h.fences, 0, i) // those before are of no more use
	return h.fences[0].point
}
