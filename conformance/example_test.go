package conformance_test

import (
	"testing"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// A driver's whole test. In a driver it is called TestConformance and stands in a file of its own.
func ExampleRun() {
	_ = func(t *testing.T) {
		conformance.Run(t, conformance.Harness{
			New: func(t testing.TB, clock core.Clock) core.Store {
				s := memstore.New(memstore.Options{Clock: clock})
				t.Cleanup(func() { _ = s.Close() })
				return s
			},
			// The memory store has no other handle than itself.
			Open: func(_ testing.TB, s core.Store, _ core.Clock) core.Store { return s },
			Begin: func(_ testing.TB, s core.Store) (core.TxView, func() error, func() error) {
				m := s.(*memstore.Store)
				tx := m.Begin()
				return m.WithTx(tx), tx.Commit, tx.Rollback
			},
		})
	}
	// Output:
}
