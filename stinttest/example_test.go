package stinttest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/stinttest"
)

// A service's test: what it enqueues, what its handlers do, and what happens tomorrow.
func TestSignUp(t *testing.T) {
	k := stinttest.New(t)
	s := &shop{jobs: k.Store}
	s.handle(k.Worker)
	if err := s.signUp(t.Context(), "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	if first := stinttest.Only(k, welcome); first.Payload.Mail != "ada@example.com" || first.Queue != "mail" {
		t.Errorf("enqueued %+v", first)
	}
	k.Work()                  // the welcome; a failure would end the test
	k.Advance(24 * time.Hour) // the reminder
	if fmt.Sprint(s.sent) != "[welcome ada@example.com remember ada@example.com]" {
		t.Errorf("sent %v", s.sent)
	}
}

// In an example there is no testing.TB; tests pass theirs.
func Example() {
	t := new(testing.T)
	k := stinttest.New(t)
	s := &shop{jobs: k.Store, offline: 2}
	s.handle(k.Worker)
	_ = s.signUp(context.Background(), "ada@example.com")

	fmt.Println(stinttest.Only(k, reminder).In)
	for _, ran := range k.Advance(25 * time.Hour) {
		fmt.Println(ran)
	}
	stinttest.None(k, welcome)
	fmt.Println(s.sent)
	// Output:
	// 24h0m0s
	// welcome welcome:ada@example.com, attempt 1 of 10: delayed (sending: mail server is offline)
	// welcome welcome:ada@example.com, attempt 2 of 10: delayed (sending: mail server is offline)
	// welcome welcome:ada@example.com, attempt 3 of 10: completed
	// reminder #2, attempt 1 of 3: completed
	// [welcome ada@example.com remember ada@example.com]
}

// One handler, once, without a service around it.
func ExamplePerform() {
	t := new(testing.T)
	double := core.NewJob[int, int]("double")
	rec, err := stinttest.Perform(t, double, func(_ context.Context, n int) (int, error) { return 2 * n, nil }, 21)
	result, _ := double.Result(rec)
	fmt.Println(rec.State, result, err)
	// Output: completed 42 <nil>
}
