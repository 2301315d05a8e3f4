package conformance_test

import (
	"testing"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// TestMemory: the correct store passes.
func TestMemory(t *testing.T) { conformance.Run(t, memoryHarness()) }

func memoryHarness() conformance.Harness {
	return conformance.Harness{
		New: func(t testing.TB, clock core.Clock) core.Store {
			s := memstore.New(memstore.Options{Clock: clock})
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		Open: func(_ testing.TB, s core.Store, _ core.Clock) core.Store { return s },
		Begin: func(_ testing.TB, s core.Store) (core.TxView, func() error, func() error) {
			m := s.(*memstore.Store)
			tx := m.Begin()
			return m.WithTx(tx), tx.Commit, tx.Rollback
		},
	}
}
