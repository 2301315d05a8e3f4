// Package robust holds the tests that break what a store on Postgres stands on: worker processes, the server, its
// backends, the network, clocks and settings. It has no code of its own.
//
// What they hold it to: no job is lost, and none runs twice but where a lease ran out. Workers are processes of their
// own, this test binary in another role, and each of their runs leaves a mark in a table of the test's own, by the
// database's clock. Triggers note when leases come and go. Afterwards every job, every run and every lease is counted.
//
// Each driver is one function in driver_test.go. STINT_ROBUST=full makes the long forms.
package robust
