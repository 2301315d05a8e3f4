// Package failing runs tests that are meant to fail: how suites are held against what they have to catch.
package failing

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// Result is what became of a test.
type Result struct {
	Failed, Skipped bool
	Said            []string // in order
}

// Run runs fn as a test of its own, cleanups included, and returns what came of it. No failure of fn is one of t.
func Run(t testing.TB, fn func(tb testing.TB)) Result {
	t.Helper()
	r := &recorder{TB: t}
	apart(func() { fn(r) })
	for _, f := range slices.Backward(r.cleanups) {
		apart(f)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result
}

// apart runs f to its end, or to its Goexit, which ends tests.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// recorder is a testing.TB that remembers a failure instead of failing the test.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	result   Result
	cleanups []func()
}

func (r *recorder) note(failed bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Failed = r.result.Failed || failed
	if text != "" {
		r.result.Said = append(r.result.Said, text)
	}
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result.Failed
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

func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result.Skipped
}

func (r *recorder) Skip(args ...any) {
	r.mu.Lock()
	r.result.Skipped = true
	r.result.Said = append(r.result.Said, fmt.Sprint(args...))
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}
