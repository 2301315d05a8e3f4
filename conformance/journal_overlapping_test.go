package conformance

import (
	"testing"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/journal"
)

// overlappingHarness makes them, broken if break is set.
func overlappingHarness(breaks func(*overlapping, *brokenLog)) JournalHarness[*overTx] {
	wrap := func(o *overlapping) (journal.Store[*overTx], core.Store) {
		b := &brokenLog{Store: o}
		if breaks != nil {
			breaks(o, b)
		}
		return b, overJobs{o.queue, o}
	}
	return JournalHarness[*overTx]{
		New: func(t testing.TB, clock core.Clock) (journal.Store[*overTx], core.Store) {
			o := newOverlapping(clock)
			t.Cleanup(func() { _ = o.queue.Close() })
			return wrap(o)
		},
		Open: func(_ testing.TB, s core.Store, _ core.Clock) (journal.Store[*overTx], core.Store) {
			return wrap(s.(overJobs).o)
		},
		Begin: func(_ testing.TB, s core.Store) (*overTx, func() error, func() error) {
			tx := s.(overJobs).o.begin()
			return tx, tx.Commit, tx.Rollback
		},
	}
}

// TestJournalOverlapping: transactions that stand open side by side change nothing of the contract.
func TestJournalOverlapping(t *testing.T) { RunJournal(t, overlappingHarness(nil)) }
