package memstore_test

import (
	"testing"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
)

// TestJournalConformance holds the store's journal against the contract.
func TestJournalConformance(t *testing.T) {
	type tx = *memstore.Transaction
	conformance.RunJournal(t, conformance.JournalHarness[tx]{
		New: func(t testing.TB, clock core.Clock) (journal.Store[tx], core.Store) {
			s := memstore.New(memstore.Options{Clock: clock})
			t.Cleanup(func() {
				if err := s.CheckInvariants(); err != nil {
					t.Error(err)
				}
				_ = s.Close()
			})
			return s.Journal(), s
		},
		// Whoever shares the memory shares the store.
		Open: func(_ testing.TB, s core.Store, _ core.Clock) (journal.Store[tx], core.Store) {
			return s.(*memstore.Store).Journal(), s
		},
		Begin: func(_ testing.TB, s core.Store) (tx, func() error, func() error) {
			t := s.(*memstore.Store).Begin()
			return t, t.Commit, t.Rollback
		},
		Serial: true,
	})
}
