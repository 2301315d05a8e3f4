package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/failing"
)

// TestModel holds the model against the suite: what judges other stores keeps the contract itself.
func TestModel(t *testing.T) {
	Run(t, modelHarness(func(m *modelStore) core.Store { return m }, CapAdmin, CapDedupe))
}

// TestSixMethods: a store of the six methods alone is worth running.
func TestSixMethods(t *testing.T) {
	Run(t, modelHarness(func(m *modelStore) core.Store { return sixMethods{m} }))
}

// TestModelAlone: the state machine finds most faults without the other cases.
func TestModelAlone(t *testing.T) {
	tried, caught := 0, 0
	for _, m := range slices.Concat(claimMutants(), ackMutants(), leaseMutants()) {
		s := newSuite(m.harness)
		for _, c := range demanded() {
			s.has[c] = !slices.Contains(m.harness.Lacks, c)
		}
		if !s.has[CapInspector] {
			continue // it sees too little
		}
		tried++
		if failing.Run(t, func(tb testing.TB) { s.runCase(tb, modelCases()[0], NewClock()) }).Failed {
			caught++
		} else {
			t.Logf("not caught: %s", m.fault)
		}
	}
	t.Logf("caught %d of %d", caught, tried)
	if caught < tried*6/10 {
		t.Errorf("the state machine caught only %d of %d broken stores", caught, tried)
	}
}

// sixMethods hides everything but core.Store.
type sixMethods struct{ core.Store }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }
