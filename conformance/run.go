package conformance

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// Run holds a driver against the contract. Its subtests are named topic/case, so that -run finds one; the run
// ends with a table of the store's capabilities. The state machine obeys the flags of pgregory.net/rapid
// (-rapid.checks, -rapid.steps, -rapid.seed) and -short.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("conformance: Harness.New is nil")
	}
	s := newSuite(h)
	s.detect(t) // not a subtest, which -run could leave out
	for _, top := range topics() {
		t.Run(top.name, func(t *testing.T) {
			for _, c := range top.cases {
				t.Run(c.name, func(t *testing.T) { s.runCase(t, c, NewClock()) })
			}
		})
	}
	t.Run("realclock", func(t *testing.T) {
		for _, top := range topics() {
			for _, c := range top.cases {
				if c.timeless {
					t.Run(top.name+"/"+c.name, func(t *testing.T) { s.runCase(t, c, nil) })
				}
			}
		}
		for _, c := range realClockCases() {
			t.Run(c.name, func(t *testing.T) { s.runCase(t, c, nil) })
		}
	})
	t.Log(s.table())
}

// testCase is one demand of the contract.
type testCase struct {
	rule     string // "Q4"
	name     string
	demands  string       // the rule in a sentence, printed with a failure
	needs    []Capability // skipped on stores that lack one of these
	without  Capability   // skipped on stores that have it: for what absence means
	limit    time.Duration
	closes   bool // leaves the store closed: Harness.Check is not called
	timeless bool // does not depend on the injected clock: run again on the store's own
	run      func(k *kit)
}

type topic struct {
	name  string
	cases []testCase
}

// topics lists the cases in the order of a job's life, the costly ones last.
func topics() []topic {
	return []topic{
		{"enqueue", enqueueCases()},
		{"ids", idCases()},
		{"invalid", invalidCases()},
		{"batch", batchCases()},
		{"dedupe", dedupeCases()},
		{"replace", replaceCases()},
		{"deduperace", dedupeRacingCases()},
		{"claim", claimCases()},
		{"order", orderCases()},
		{"delay", delayCases()},
		{"ack", ackCases()},
		{"fencing", fencingCases()},
		{"repeat", repeatCases()},
		{"lease", leaseCases()},
		{"stall", stallCases()},
		{"admin", adminCases()},
		{"cancel", cancelCases()},
		{"pause", pauseCases()},
		{"schedule", scheduleCases()},
		{"ledger", ledgerCases()},
		{"list", listCases()},
		{"counts", countsCases()},
		{"gauges", gaugeCases()},
		{"retain", retainCases()},
		{"wake", wakeCases()},
		{"ended", endedCases()},
		{"closed", closedCases()},
		{"tx", txCases()},
		{"committed", committedCases()},
		{"lacking", lackingCases()},
		{"concurrent", append(concurrentCases(), retainRaceCases()...)},
		{"model", modelCases()},
	}
}

// suite is one run against one driver.
type suite struct {
	h       Harness
	has     map[Capability]bool
	skipped map[Capability]int
	// patience bounds each wait for something that the contract promises. It is far above what a store needs:
	// only a broken one ever waits that long.
	patience time.Duration
}

func newSuite(h Harness) *suite {
	return &suite{h: h, has: map[Capability]bool{}, skipped: map[Capability]int{}, patience: 5 * time.Second}
}

// defaultLimit is how long a case may take before its watchdog ends it, unless Harness.CaseTimeout is longer.
const defaultLimit = 15 * time.Second

// runCase runs one case on a fresh store. The case has a goroutine of its own, so that one that hangs is
// reported with its rule instead of holding up the run.
func (s *suite) runCase(tb testing.TB, c testCase, clock *Clock) {
	tb.Helper()
	for _, need := range c.needs {
		if !s.has[need] {
			s.skipped[need]++
			why := "declared lacking: "
			if !slices.Contains(demanded(), need) {
				why = "absent: "
			}
			tb.Skip(why + string(need))
		}
	}
	if c.without != "" && s.has[c.without] {
		tb.Skip("not declared lacking: " + string(c.without))
	}
	limit := c.limit
	if limit == 0 {
		limit = defaultLimit
	}
	limit = max(limit, s.h.CaseTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	k := &kit{
		TB: tb, suite: s, rule: c.rule, demands: c.demands, clock: clock, ctx: ctx,
		waiters: &sync.WaitGroup{}, over: &atomic.Bool{},
	}
	k.use(s.h.New(tb, coreClock(clock)))

	done := make(chan struct{})
	go func() {
		defer close(done)
		defer k.undo()
		defer func() {
			if v := recover(); v != nil && !k.over.Load() {
				tb.Errorf("%s: panic: %v\n%s", c.rule, v, debug.Stack())
			}
		}()
		c.run(k)
	}()
	hang := time.NewTimer(limit + 2*time.Second) // the context ended two seconds before
	defer hang.Stop()
	select {
	case <-done:
	case <-hang.C:
		k.over.Store(true)
		buf := make([]byte, 1<<16)
		tb.Fatalf("%s: not done after %v and deaf to its context\n\tdemands: %s\n%s",
			c.rule, limit, c.demands, buf[:runtime.Stack(buf, true)])
	}
	cancel()
	s.join(k)
	if s.h.Check != nil && !c.closes && !tb.Failed() {
		s.h.Check(tb, k.store)
	}
}

// join waits for the case's own AwaitWake calls, whose context has ended.
func (s *suite) join(k *kit) {
	k.Helper()
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		k.waiters.Wait()
	}()
	patience := time.NewTimer(s.patience)
	defer patience.Stop()
	select {
	case <-joined:
	case <-patience.C:
		k.Fatalf("Q15: AwaitWake did not return within %v of the end of its context", s.patience)
	}
}

// coreClock keeps a nil *Clock from becoming a non-nil interface.
func coreClock(c *Clock) core.Clock {
	if c == nil {
		return nil
	}
	return c
}

// table says what the store has, what it declared, and what that cost in cases.
func (s *suite) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "capabilities:\n\t%-10s %-8s %-10s %s\n", "", "present", "declared", "cases skipped")
	for _, c := range append(demanded(), CapMigrate, CapClose) {
		present, declared := "yes", ""
		if !s.has[c] {
			present = "no"
		}
		if slices.Contains(s.h.Lacks, c) {
			declared = "lacking"
		}
		if c == CapMigrate || c == CapClose {
			declared = "(optional)"
		}
		fmt.Fprintf(&b, "\t%-10s %-8s %-10s %d\n", c, present, declared, s.skipped[c])
	}
	return b.String()
}
