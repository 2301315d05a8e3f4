package robust_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stintmq/stint/core"
)

// driver is how the tests reach a store.
type driver struct {
	name string
	open func(ctx context.Context, o openOptions) (*store, error)
	// migrate makes the schema.
	migrate func(ctx context.Context, at target, schema string) error
	// commit is the request that commits, as it is sent: "commit" alone is in "read committed", too.
	commit string
	// refuses are settings of a server that the library below does not work with, and says so.
	refuses []string
}

type openOptions struct {
	at     target
	schema string
	conns  int // of the application's pool, beside what the store takes of it; 0: the driver's default
	// watch, if not nil, sees each statement's arguments. On pgx only.
	watch func(sql string, args []any)
}

// store is one handle, as one process has it.
type store struct {
	core.Store
	core.Inspector
	core.Admin
	core.Scheduler
	// inTx runs do in a transaction of the application's own, and commits it unless do fails.
	inTx  func(ctx context.Context, do func(view core.TxView, exec execFunc) error) error
	close func() error
}

// execFunc runs a statement of the application's.
type execFunc = func(ctx context.Context, sql string, args ...any) error

// drivers are those that are tested. The first is the one for what has nothing to do with drivers.
func drivers() []driver { return []driver{pgxDriver(), pqDriver(), bunDriver()} }

// driverNamed finds the driver that a worker process is told of.
func driverNamed(name string) (driver, error) {
	for _, d := range drivers() {
		if d.name == name {
			return d, nil
		}
	}
	return driver{}, fmt.Errorf("no driver %q", name)
}

// eachDriver runs a test for each driver: what it sees, connections that break and servers that come and go, drivers
// see themselves.
func eachDriver(t *testing.T, test func(t *testing.T, d driver)) {
	t.Helper()
	for _, d := range drivers() {
		t.Run(d.name, func(t *testing.T) { test(t, d) })
	}
}

// anyDriver runs a test of what all drivers share for the first of them; the long form, for each.
func anyDriver(t *testing.T, test func(t *testing.T, d driver)) {
	t.Helper()
	for _, d := range drivers()[:size(1, len(drivers()))] {
		t.Run(d.name, func(t *testing.T) { test(t, d) })
	}
}
