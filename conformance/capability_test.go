package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/failing"
)

// detected runs the detection alone and returns what it complained of.
func detected(t *testing.T, h Harness) []string {
	t.Helper()
	return failing.Run(t, func(tb testing.TB) { newSuite(h).detect(tb) }).Said
}

// TestDetectHonest: what is declared as it is passes.
func TestDetectHonest(t *testing.T) {
	for name, h := range map[string]Harness{
		"memory":            hookedHarness(func(*hooked) {}),
		"model":             modelHarness(func(m *modelStore) core.Store { return m }, CapAdmin, CapDedupe),
		"six methods":       modelHarness(func(m *modelStore) core.Store { return sixMethods{m} }),
		"wrapped":           wrapped(hookedHarness(func(*hooked) {})),
		"timer for a wake":  modelHarness(func(m *modelStore) core.Store { return timer{m, time.Millisecond} }, CapAdmin, CapDedupe),
		"a timer of 100 ms": modelHarness(func(m *modelStore) core.Store { return timer{m, 100 * time.Millisecond} }, CapAdmin, CapDedupe),
		"a timer of 600 ms": modelHarness(func(m *modelStore) core.Store { return timer{m, 600 * time.Millisecond} }, CapAdmin, CapDedupe),
		"switched off":      modelHarness(func(m *modelStore) core.Store { return switchedOff{m} }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly waits for what does not come
			if log := detected(t, h); len(log) > 0 {
				t.Errorf("complained of %q", log)
			}
		})
	}
}

// TestDetectWrongLacks: absent and not declared fails, declared and present fails.
func TestDetectWrongLacks(t *testing.T) {
	for _, c := range demanded() {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			full, bare := hookedHarness(func(*hooked) {}), modelHarness(func(m *modelStore) core.Store { return sixMethods{m} })
			want := "is declared in Harness.Lacks and present"
			if slices.Contains(full.Lacks, c) { // nobody has it yet: only its absence can be wrong
				full.Lacks = without(full.Lacks, c)
				want = "is absent and not declared"
			} else {
				full.Lacks = append(full.Lacks, c)
			}
			wantComplaint(t, "the full store", detected(t, full), c, want)
			bare.Lacks = without(bare.Lacks, c)
			wantComplaint(t, "the bare store", detected(t, bare), c, "is absent and not declared")
		})
	}
	unknown := hookedHarness(func(*hooked) {})
	unknown.Lacks = append(unknown.Lacks, "speed")
	wantComplaint(t, "the full store", detected(t, unknown), "speed", "none that is demanded")
}

func without(cs []Capability, c Capability) []Capability {
	return slices.DeleteFunc(slices.Clone(cs), func(o Capability) bool { return o == c })
}

func wantComplaint(t *testing.T, store string, log []string, c Capability, want string) {
	t.Helper()
	if len(log) != 1 || !strings.Contains(log[0], string(c)) || !strings.Contains(log[0], want) {
		t.Errorf("%s with a wrong word about %q: complained of %q, want one that it %s", store, c, log, want)
	}
}

// TestSkipsSayWhy: a case that a declared absence skips says so, and a failure names its rule and demand.
func TestSkipsSayWhy(t *testing.T) {
	s := newSuite(modelHarness(func(m *modelStore) core.Store { return m }, CapAdmin, CapDedupe))
	c := testCase{rule: "Q99", name: "n", demands: "that it is so", needs: []Capability{CapWake}, run: func(k *kit) { k.failf("it is not %d", 7) }}
	r := failing.Run(t, func(tb testing.TB) { s.runCase(tb, c, NewClock()) })
	if !r.Skipped || r.Failed || r.Said[0] != "declared lacking: wake" {
		t.Errorf("skipped %v, failed %v, log %q", r.Skipped, r.Failed, r.Said)
	}
	c.needs = nil
	r = failing.Run(t, func(tb testing.TB) { s.runCase(tb, c, NewClock()) })
	if !r.Failed || r.Said[0] != "Q99: it is not 7\n\tdemands: that it is so" {
		t.Errorf("failed %v, log %q", r.Failed, r.Said)
	}
	if table := s.table(); !strings.Contains(table, "wake") || !strings.Contains(table, "lacking") {
		t.Errorf("the table is %s", table)
	}
}

// TestWatchdog: a case that hangs and one that panics are reported with their rule.
func TestWatchdog(t *testing.T) {
	s := newSuite(modelHarness(func(m *modelStore) core.Store { return m }, CapAdmin, CapDedupe))
	release := make(chan struct{})
	for _, run := range []func(*kit){func(*kit) { panic("boom") }, func(*kit) { <-release }} {
		c := testCase{rule: "Q99", name: "n", demands: "an end", limit: time.Millisecond, run: run}
		r := failing.Run(t, func(tb testing.TB) { s.runCase(tb, c, NewClock()) })
		if !r.Failed || !strings.HasPrefix(r.Said[0], "Q99: ") {
			t.Errorf("failed %v, log %q", r.Failed, r.Said)
		}
	}
	close(release)
}

// TestRuleOfEachCase: every case is named, says what it demands, and cites a rule; every rule of a store has one.
func TestRuleOfEachCase(t *testing.T) {
	rules, names := map[string]bool{}, map[string]bool{}
	for _, top := range append(topics(), topic{"realclock", realClockCases()}) {
		for _, c := range top.cases {
			name := top.name + "/" + c.name
			if c.rule == "" || c.name == "" || c.demands == "" || c.run == nil || names[name] {
				t.Errorf("case %s is incomplete or there twice", name)
			}
			rules[c.rule], names[name] = true, true
		}
	}
	for _, rule := range []string{"Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8", "Q9", "Q10", "Q11", "Q12", "Q13", "Q14", "Q15", "Q26", "Q27", "Q28", "Guarantees"} {
		if !rules[rule] {
			t.Errorf("no case cites %s", rule)
		}
	}
	t.Logf("%d cases", len(names))
}

// modelHarness makes stores of the model, which lack all but what has names.
func modelHarness(wrap func(*modelStore) core.Store, has ...Capability) Harness {
	return Harness{
		New: func(_ testing.TB, clock core.Clock) core.Store {
			if clock == nil {
				clock = realClock{}
			}
			m := newModel(clock)
			m.keyless = !slices.Contains(has, CapDedupe)
			return wrap(m)
		},
		Lacks: slices.DeleteFunc(demanded(), func(c Capability) bool { return slices.Contains(has, c) }),
	}
}

// timer is a store whose AwaitWake is a bare timer.
type timer struct {
	*modelStore
	every time.Duration
}

func (w timer) AwaitWake(ctx context.Context, _ []string, _ core.WakeToken) (core.Wake, error) {
	t := time.NewTimer(w.every)
	defer t.Stop()
	select {
	case <-t.C:
		return core.Wake{Token: "tick"}, nil
	case <-ctx.Done():
		return core.Wake{}, ctx.Err()
	}
}

// switchedOff has an Admin that its configuration does without.
type switchedOff struct{ *modelStore }

func (switchedOff) Paused(context.Context) ([]string, error) {
	return nil, errors.Join(&core.UnsupportedError{Op: "admin"})
}

// wrapped hides a store behind a wrapper that has nothing but Unwrap.
func wrapped(h Harness) Harness {
	inner, begin := h.New, h.Begin
	h.New = func(t testing.TB, clock core.Clock) core.Store { return wrapper{inner(t, clock)} }
	h.Begin = func(t testing.TB, s core.Store) (core.TxView, func() error, func() error) {
		return begin(t, s.(wrapper).Store)
	}
	return h
}

type wrapper struct{ core.Store }

func (w wrapper) Unwrap() core.Store { return w.Store }

// TestCheckRuns: the driver's own invariants are looked at after a case.
func TestCheckRuns(t *testing.T) {
	h := hookedHarness(func(*hooked) {})
	h.Check = func(t testing.TB, s core.Store) {
		if _, ok := s.(*hooked); !ok {
			t.Errorf("Check got a %T", s)
		}
		t.Error("invariant broken")
	}
	if caught, _ := firstFailure(t, h, "", time.Second); caught != "Q1 enqueue/claimable" {
		t.Errorf("caught by %q, want the first case", caught)
	}
}
