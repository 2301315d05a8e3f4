package conformance

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
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

// recorder is a testing.TB that remembers a failure instead of failing the test.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	failed   bool
	skipped  bool
	log      []string
	cleanups []func()
}

func (r *recorder) note(failed bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	if text != "" {
		r.log = append(r.log, text)
	}
}

func (r *recorder) Helper()                      {}
func (r *recorder) Log(args ...any)              { r.note(false, fmt.Sprint(args...)) }
func (r *recorder) Logf(f string, args ...any)   { r.note(false, fmt.Sprintf(f, args...)) }
func (r *recorder) Error(args ...any)            { r.note(true, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) { r.note(true, fmt.Sprintf(f, args...)) }
func (r *recorder) Fail()                        { r.note(true, "") }
func (r *recorder) FailNow()                     { r.note(true, ""); runtime.Goexit() }
func (r *recorder) Fatal(args ...any)            { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(f string, args ...any) { r.Errorf(f, args...); runtime.Goexit() }

func (r *recorder) Skip(args ...any) {
	r.mu.Lock()
	r.skipped = true
	r.log = append(r.log, fmt.Sprint(args...))
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// record runs fn as a test of its own would and returns what came of it.
func record(t *testing.T, fn func(tb testing.TB)) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // Goexit ends this goroutine, as it would a test's
		defer close(done)
		fn(r)
	}()
	<-done
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	return r
}

// firstFailure runs the suite against a harness until a case fails, and says which did: its rule and name.
// "" means that every case passed. The topic named first comes before the others.
func firstFailure(t *testing.T, h Harness, first string, patience time.Duration) (caught, why string) {
	t.Helper()
	s := newSuite(h)
	s.patience = patience
	for _, c := range demanded() {
		s.has[c] = !slices.Contains(h.Lacks, c)
	}
	_, s.has[CapClose] = core.As[io.Closer](h.New(t, NewClock()))
	try := func(name string, c testCase, clock *Clock) bool {
		r := record(t, func(tb testing.TB) { s.runCase(tb, c, clock) })
		if r.failed {
			caught, why = c.rule+" "+name+"/"+c.name, strings.Join(r.log, "\n")
		}
		return r.failed
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
