package conformance

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// The defaults of the cases.
const (
	theQueue = "default"
	theName  = "job"
	theLease = 30 * time.Second
)

// kit is what a case works with: the store under test and calls that end the case when they go wrong.
// Its methods belong to the case's own goroutine.
type kit struct {
	testing.TB
	suite         *suite
	rule, demands string
	clock         *Clock // nil: the store's own
	ctx           context.Context
	waiters       *sync.WaitGroup // the case's AwaitWake calls
	pending       []func() error  // rollbacks of transactions that are open
	over          *atomic.Bool    // the watchdog gave the case up: nobody listens any more

	store core.Store
	insp  core.Inspector // nil: lacking
	admin core.Admin     // nil: lacking
	sched core.Scheduler // nil: lacking
}

// use makes s the store under test.
func (k *kit) use(s core.Store) {
	k.store, k.insp, k.admin, k.sched = s, nil, nil, nil
	if k.suite.has[CapInspector] {
		k.insp, _ = core.As[core.Inspector](s)
	}
	if k.suite.has[CapAdmin] {
		k.admin, _ = core.As[core.Admin](s)
	}
	if k.suite.has[CapSchedule] {
		k.sched, _ = core.As[core.Scheduler](s)
	}
}

// other returns a kit on a second handle of the same data.
func (k *kit) other() *kit {
	k.Helper()
	o := *k
	o.use(k.suite.h.Open(k.TB, k.store, coreClock(k.clock)))
	return &o
}

// failf ends the case.
func (k *kit) failf(format string, args ...any) {
	k.Helper()
	if k.over.Load() {
		runtime.Goexit() // a report now would panic: the test has ended
	}
	k.Errorf(k.rule+": "+format+"\n\tdemands: "+k.demands, args...)
	runtime.Goexit()
}

// ok ends the case unless err is nil.
func (k *kit) ok(what string, err error) {
	k.Helper()
	if err != nil {
		k.failf("%s: %v", what, err)
	}
}

// is ends the case unless err is target.
func (k *kit) is(what string, err, target error) {
	k.Helper()
	if !errors.Is(err, target) {
		k.failf("%s: got error %v, want %v", what, err, target)
	}
}

// wantError ends the case unless err has the type E, which it returns.
func wantError[E error](k *kit, what string, err error) E {
	k.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		k.failf("%s: got error %v (%T), want %T", what, err, err, e)
	}
	return e
}

// eq ends the case unless got is want.
func eq[T comparable](k *kit, what string, got, want T) {
	k.Helper()
	if got != want {
		k.failf("%s: got %v, want %v", what, got, want)
	}
}

// eqs ends the case unless two lists are equal.
func eqs[T comparable](k *kit, what string, got, want []T) {
	k.Helper()
	if !slices.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		from := max(i-20, 0)
		k.failf("%s: got %s, want %s (they differ from element %d on)", what, excerpt(got, from), excerpt(want, from), i)
	}
}

// excerpt is as much of a list as one can read.
func excerpt[T any](list []T, from int) string {
	const most = 60
	if len(list) <= most {
		return fmt.Sprint(list)
	}
	from = min(from, len(list))
	return fmt.Sprintf("%d elements, from %d on: %v", len(list), from, list[from:min(from+most, len(list))])
}

// now is the store's time as a store keeps it. Only with an injected clock.
func (k *kit) now() time.Time { return core.Micros(k.clock.Now()) }

func (k *kit) advance(d time.Duration) { k.clock.Advance(d) }

// wantTime compares a time that the store answered, which is UTC in whole microseconds (Q13). Without an
// injected clock it can only say that there is one.
func (k *kit) wantTime(what string, got, want time.Time) {
	k.Helper()
	switch {
	case got.Location() != time.UTC:
		k.failf("%s: %v is not in UTC", what, got)
	case got != core.Micros(got):
		k.failf("%s: %v is not cut to whole microseconds", what, got)
	case k.clock == nil && got.IsZero() != want.IsZero(), k.clock != nil && !got.Equal(want):
		k.failf("%s: got %v, want %v", what, got, want)
	}
}

// nowOrAny is now, or without an injected clock any time that is not zero.
func (k *kit) nowOrAny() time.Time {
	if k.clock == nil {
		return time.Now()
	}
	return k.now()
}
