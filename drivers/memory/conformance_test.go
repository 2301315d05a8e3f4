package memstore_test

import (
	"testing"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestConformance holds the store against the contract.
func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness{
		New: func(t testing.TB, clock core.Clock) core.Store {
			s := memstore.New(memstore.Options{Clock: clock})
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			return s
		},
		// Whoever shares the memory shares the store.
		Open: func(_ testing.TB, s core.Store, _ core.Clock) core.Store { return s },
		Begin: func(_ testing.TB, s core.Store) (core.TxView, func() error, func() error) {
			m := s.(*memstore.Store)
			tx := m.Begin()
			return m.WithTx(tx), tx.Commit, tx.Rollback
		},
		Check: func(t testing.TB, s core.Store) {
			if err := s.(*memstore.Store).CheckInvariants(); err != nil {
				t.Error(err)
			}
		},
	})
}
