package pgsql

import (
	"slices"
	"time"
)

// horizon tells up to which number, and to which time, a claim has seen everything that there will ever be.
//
// Numbers are drawn, and times taken, by transactions that have begun to write before (sqlInsert and all others see to
// that). So whatever was drawn when a claim was sent belongs to transactions older than those that began after it;
// and once all of these have ended, a claim that begins later sees what they left. A transaction that writes for long,
// in whatever table, would stop this: so what was drawn settleAfter ago counts as seen. Of a transaction that took
// longer, and enqueued something in that time, its notification tells.
type horizon struct {
	seen   point // the newest that a claim brought back
	fences []fence
}

// point is a moment in the life of the database.
type point struct {
	number int64 // the newest that was drawn
	now    time.Time
}

// fence is what was drawn before a claim was sent, and the first transaction that its snapshot knows nothing of.
type fence struct {
	point
	sent   time.Time
	future int64
}

const (
	settleAfter = 2 * time.Second
	maxFences   = 4096 // of claims during settleAfter
)

// note takes down what a claim brought back. before is what was seen when it was sent.
func (h *horizon) note(before point, sent time.Time, got point, future int64) {
	n := len(h.fences)
	if before.number > 0 && n < maxFences && (n == 0 || future > h.fences[n-1].future) {
		h.fences = append(h.fences, fence{before, sent, future})
	}
	if got.number >= h.seen.number {
		h.seen = got
	}
}

// reached is the point up to which a claim has seen everything whose snapshot saw the end of all transactions before
// oldest. The zero point: nobody knows.
func (h *horizon) reached(oldest int64) point {
	i := len(h.fences) - 1
	for ; i >= 0; i-- {
		if f := h.fences[i]; f.future <= oldest || time.Since(f.sent) >= settleAfter {
			break
		}
	}
	if i < 0 {
		return point{}
	}
	h.fences = slices.Delete(h.fences, 0, i) // those before are of no more use
	return h.fences[0].point
}
