//go:build skeleton

package skeleton

import (
	"testing"

	"github.com/stintmq/stint/conformance"
	"github.com/stintmq/stint/core"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness{
		New: func(testing.TB, core.Clock) core.Store { return &Store{} },
		Lacks: []conformance.Capability{
			conformance.CapInspector, conformance.CapAdmin, conformance.CapTx, conformance.CapOpen,
			conformance.CapWake, conformance.CapGauge, conformance.CapDedupe, conformance.CapRetain, conformance.CapSchedule,
		},
	})
}
