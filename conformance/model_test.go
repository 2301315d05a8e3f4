package conformance

import (
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// TestModel holds the model against the suite: what judges other stores keeps the contract itself.
func TestModel(t *testing.T) {
	Run(t, modelHarness(func(m *modelStore) core.Store { return m }, CapAdmin))
}

// TestSixMethods: a store of the six methods alone is worth running.
func TestSixMethods(t *testing.T) {
	Run(t, modelHarness(func(m *modelStore) core.Store { return sixMethods{m} }))
}

// sixMethods hides everything but core.Store.
type sixMethods struct{ core.Store }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }
