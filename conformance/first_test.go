package conformance

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintmq/stint/internal/failing"
)

// TestMain keeps the state machine from writing down, and from shrinking at length, what broken stores do.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "100ms"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

// firstFailure runs the suite against a harness until a case fails, and says which did: its rule and name.
// "" means that every case passed. The topic named first comes before the others.
func firstFailure(t *testing.T, h Harness, first string, patience time.Duration) (caught, why string) {
	t.Helper()
	s := assuming(t, h)
	s.patience = patience
	try := func(name string, c testCase, clock *Clock) bool {
		r := failing.Run(t, func(tb testing.TB) { s.runCase(tb, c, clock) })
		if r.Failed {
			caught, why = c.rule+" "+name+"/"+c.name, strings.Join(r.Said, "\n")
		}
		return r.Failed
	}
	all := topics()
	slices.SortStableFunc(all, func(a, b topic) int {
		switch first {
		case a.name:
			return -1
		case b.name:
			return 1
		}
		return 0
	})
	for _, top := range all {
		for _, c := range top.cases {
			if try(top.name, c, NewClock()) {
				return caught, why
			}
		}
	}
	for _, c := range realClockCases() {
		if try("realclock", c, nil) {
			return caught, why
		}
	}
	return "", ""
}
