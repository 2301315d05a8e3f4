package conformance

import (
	"testing"

	"github.com/stintmq/stint/core"
)

// mutant is a store with one fault.
type mutant struct {
	fault   string
	harness Harness
}

// broken makes a mutant of the memory store.
func broken(fault string, breaks func(*hooked)) mutant { return mutant{fault, hookedHarness(breaks)} }

// spoilt makes a mutant of the model, for faults that sit deeper than a call. It has the admin verbs only.
func spoilt(fault string, spoil func(*modelStore) core.Store) mutant {
	return mutant{fault, Harness{
		New: func(_ testing.TB, clock core.Clock) core.Store {
			if clock == nil {
				clock = realClock{}
			}
			return spoil(newModel(clock))
		},
		Lacks: []Capability{CapInspector, CapTx, CapOpen, CapWake, CapDedupe, CapRetain, CapSchedule},
	}}
}

// TestMutants holds the suite against broken stores: each must fail a case.
func TestMutants(t *testing.T) {
	groups := map[string][]mutant{
		"enqueue": enqueueMutants(), "claim": claimMutants(), "ack": ackMutants(), "lease": leaseMutants(),
		"admin": adminMutants(), "inspect": inspectMutants(), "wake": wakeMutants(), "tx": txMutants(),
	}
	n := 0
	for group, mutants := range groups {
		n += len(mutants)
		t.Run(group, func(t *testing.T) {
			for _, m := range mutants {
				caught, why := firstFailure(t, m.harness)
				if caught == "" {
					t.Errorf("mutant %q survived", m.fault)
					continue
				}
				t.Logf("mutant %q: caught by %s", m.fault, caught)
				if testing.Verbose() {
					t.Log(why)
				}
			}
		})
	}
	t.Logf("%d mutants", n)
}

// TestUnbroken: the store that the mutants are made of passes, so it is their faults that are caught.
func TestUnbroken(t *testing.T) {
	if caught, why := firstFailure(t, hookedHarness(func(*hooked) {})); caught != "" {
		t.Errorf("a mutant without a fault fails %s:\n%s", caught, why)
	}
}
