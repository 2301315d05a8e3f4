package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// mutant is a store with one fault.
type mutant struct {
	fault   string
	harness Harness
}

// broken makes a mutant of the memory store.
func broken(fault string, breaks func(*hooked)) mutant { return mutant{fault, hookedHarness(breaks)} }

// spoilt makes a mutant of the model, for faults that sit deeper than a call. It has the admin verbs and dedupe keys only.
func spoilt(fault string, spoil func(*modelStore) core.Store) mutant {
	return mutant{fault, modelHarness(spoil, CapAdmin, CapDedupe)}
}

// bare makes a mutant of the model with the six methods only.
func bare(fault string, spoil func(*modelStore) core.Store) mutant {
	return mutant{fault, modelHarness(func(m *modelStore) core.Store { return sixMethods{spoil(m)} })}
}

// TestMutants holds the suite against broken stores: each must fail a case.
func TestMutants(t *testing.T) {
	groups := []struct {
		topic   string // the one that should catch most of them comes first, to save time
		mutants []mutant
	}{
		{"enqueue", enqueueMutants()}, {"claim", claimMutants()}, {"ack", ackMutants()}, {"stall", leaseMutants()},
		{"admin", adminMutants()}, {"list", inspectMutants()}, {"retain", retainMutants()}, {"wake", wakeMutants()}, {"tx", txMutants()},
		{"dedupe", dedupeMutants()}, {"dedupe", keyVerbMutants()}, {"replace", replaceMutants()}, {"deduperace", dedupeRacingMutants()},
		{"ended", endedMutants()}, {"closed", closedMutants()}, {"concurrent", concurrentMutants()},
		{"schedule", scheduleMutants()},
		{"gauges", gaugeMutants()},
	}
	n := 0
	for _, g := range groups {
		n += len(g.mutants)
		t.Run(g.topic, func(t *testing.T) {
			t.Parallel()
			for _, m := range g.mutants {
				// Impatience makes no difference to a store that never wakes.
				caught, why := firstFailure(t, m.harness, g.topic, 300*time.Millisecond)
				if caught == "" {
					t.Errorf("mutant %q survived", m.fault)
					continue
				}
				line, _, _ := strings.Cut(why, "\n")
				t.Logf("mutant %q: caught by %s: %.100s", m.fault, caught, line)
			}
		})
	}
	t.Logf("%d mutants", n)
}

// TestUnbroken: the store that the mutants are made of passes, so it is their faults that are caught.
func TestUnbroken(t *testing.T) {
	if caught, why := firstFailure(t, hookedHarness(func(*hooked) {}), "", 5*time.Second); caught != "" {
		t.Errorf("a mutant without a fault fails %s:\n%s", caught, why)
	}
}
