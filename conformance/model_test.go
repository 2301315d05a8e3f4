package conformance

import (
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// TestModel holds the model against the suite: what judges other stores keeps the contract itself, as a store
// without a single capability but the admin verbs.
func TestModel(t *testing.T) {
	Run(t, Harness{
		New: func(_ testing.TB, clock core.Clock) core.Store {
			if clock == nil {
				clock = realClock{}
			}
			return newModel(clock)
		},
		Lacks: []Capability{CapInspector, CapTx, CapOpen, CapWake, CapDedupe, CapRetain, CapSchedule},
	})
}

// TestSixMethods: a store of the six methods alone is worth running.
func TestSixMethods(t *testing.T) {
	Run(t, Harness{
		New: func(_ testing.TB, clock core.Clock) core.Store {
			if clock == nil {
				clock = realClock{}
			}
			return sixMethods{newModel(clock)}
		},
		Lacks: demanded(),
	})
}

// sixMethods hides everything but core.Store.
type sixMethods struct{ core.Store }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }
