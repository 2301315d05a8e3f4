package filestore

import (
	"path/filepath"
	"testing"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness{
		New: func(t testing.TB, clock core.Clock) core.Store {
			s, err := Open(filepath.Join(t.TempDir(), "jobs.json"), Options{Clock: clock, NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		Lacks: []conformance.Capability{
			conformance.CapInspector, conformance.CapAdmin, conformance.CapTx, conformance.CapOpen,
			conformance.CapDedupe, conformance.CapRetain, conformance.CapSchedule,
		},
	})
}
