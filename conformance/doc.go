// Package conformance is the contract of core.Store as tests: what every driver must do, rule by rule.
//
// A driver's whole test is one call of Run:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{
//			New: func(t testing.TB, clock core.Clock) core.Store {
//				s := mystore.New(mystore.Options{Clock: clock})
//				t.Cleanup(func() { _ = s.Close() })
//				return s
//			},
//			Lacks: []conformance.Capability{conformance.CapDedupe, conformance.CapSchedule},
//		})
//	}
//
// Each case gets a fresh store and, but for the
// real-clock pass, a clock that only the suite moves, so nothing sleeps. A failure names the rule (Q1 to Q28,
// or the Guarantees, docs/contract.md) and says what it demands. The suite never fails a store that keeps the contract; that it
// finds every fault of one that does not is not promised, but its own tests hold it against dozens of broken ones.
//
// The six methods of core.Store are enough to run: what a store lacks beyond them it declares in Harness.Lacks,
// and the cases that need it are skipped, each saying so. Cases use whatever method they need, so topics do not
// turn green strictly in order while a driver grows.
package conformance
