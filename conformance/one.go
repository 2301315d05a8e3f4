package conformance

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stintmq/stint/core"
)

// RunCase runs one case on tb, by its name among Run's subtests: "claim/names", "realclock/delay". It is for drivers that
// hold the suite against broken forms of themselves, and tb may be a testing.TB that only remembers failures. What
// Harness.Lacks does not name is taken to be there: nothing is looked for.
func RunCase(tb testing.TB, h Harness, name string) {
	tb.Helper()
	c, clock, ok := caseNamed(name)
	if !ok {
		tb.Fatalf("conformance: there is no case %q", name)
	}
	assuming(tb, h).runCase(tb, c, clock)
}

func caseNamed(name string) (c testCase, clock *Clock, ok bool) {
	group, short, _ := strings.Cut(name, "/")
	cases := realClockCases()
	if group != "realclock" {
		clock = NewClock()
		i := slices.IndexFunc(topics(), func(t topic) bool { return t.name == group })
		if i < 0 {
			return c, nil, false
		}
		cases = topics()[i].cases
	} else if group, rest, inner := strings.Cut(short, "/"); inner { // a timeless one, once more
		c, _, ok = caseNamed(group + "/" + rest)
		return c, nil, ok && c.timeless
	}
	i := slices.IndexFunc(cases, func(c testCase) bool { return c.name == short })
	if i < 0 {
		return c, nil, false
	}
	return cases[i], clock, true
}

// assuming is a suite for a store that has what it does not lack.
func assuming(tb testing.TB, h Harness) *suite {
	tb.Helper()
	s := newSuite(h)
	for _, c := range demanded() {
		s.has[c] = !slices.Contains(h.Lacks, c)
	}
	store := h.New(tb, NewClock())
	_, s.has[CapMigrate] = core.As[core.Migrator](store)
	_, s.has[CapClose] = core.As[io.Closer](store)
	return s
}
