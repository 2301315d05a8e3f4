package filestore

import (
	"path/filepath"
	"reflect"
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
		Check: func(t testing.TB, s core.Store) { fileHoldsState(t, s.(*Store)) },
		Lacks: []conformance.Capability{
			conformance.CapInspector, conformance.CapAdmin, conformance.CapTx, conformance.CapOpen,
			conformance.CapGauge, conformance.CapDedupe, conformance.CapRetain, conformance.CapSchedule,
		},
	})
}

// fileHoldsState finds a change that nobody wrote (a forgotten touch) and whatever JSON does not bring back.
func fileHoldsState(t testing.TB, s *Store) {
	t.Helper()
	saved, err := s.file.load()
	if err != nil {
		t.Fatal(err)
	}
	if len(saved.jobs) != len(s.state.jobs) {
		t.Fatalf("the file holds %d jobs, not %d", len(saved.jobs), len(s.state.jobs))
	}
	for id, j := range s.state.jobs {
		want := *j
		want.line = nil
		if got := saved.jobs[id]; got == nil || !reflect.DeepEqual(*got, want) {
			t.Fatalf("the file holds job %q as\n%+v\nnot\n%+v", id, got, want)
		}
	}
}
