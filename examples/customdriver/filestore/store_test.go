package filestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintmq/stint/core"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func enqueue(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		res, err := s.Enqueue(t.Context(), []core.EnqueueRequest{{ID: id, Name: "letter", Queue: "q", MaxAttempts: 3}})
		if err != nil || res[0].Err != nil {
			t.Fatal(err, res)
		}
	}
}

func claim(t *testing.T, s *Store) (core.Claimed, string) {
	t.Helper()
	token := core.NewToken()
	c, err := s.Claim(t.Context(), core.ClaimRequest{
		Wants: []core.Want{{Queue: "q", Names: []string{"letter"}, Limit: 1}}, Token: token, Lease: time.Hour, Worker: "w",
	})
	if err != nil || len(c.Jobs) != 1 {
		t.Fatal(err, c.Jobs)
	}
	return c, token
}

func reopen(t *testing.T, s *Store) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, s.file.path)
}

// A claim is durable when it returns (Q4), and so is the answer to a repeated ack (Q5).
func TestLeasesSurviveARestart(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.json"))
	enqueue(t, s, "a")
	c, token := claim(t, s)

	s = reopen(t, s)
	held, err := s.Claim(t.Context(), core.ClaimRequest{Token: token})
	if err != nil || len(held.Jobs) != 1 || held.Jobs[0].ID != "a" || held.Jobs[0].Fence != 1 {
		t.Fatalf("after a restart the token holds %v, %v", held.Jobs, err)
	}
	ack := core.Ack{Lease: core.Lease{ID: "a", Token: token, Ref: c.Jobs[0].Ref}, Outcome: core.OutcomeComplete}
	for range 2 {
		res, err := s.Ack(t.Context(), []core.Ack{ack})
		if err != nil || res[0] != (core.AckResult{State: core.StateCompleted}) {
			t.Fatal(err, res)
		}
		s = reopen(t, s)
	}

	// What the earlier handle called now may have been long ago: look at once (Q15).
	wake, err := s.AwaitWake(t.Context(), []string{"q"}, c.Wake)
	if err != nil || wake.Token == c.Wake {
		t.Fatal(err, wake)
	}
}

func TestOneHandleAtATime(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.json"))
	var locked *LockedError
	if _, err := Open(s.file.path, Options{}); !errors.As(err, &locked) || locked.Path != s.file.path+".lock" {
		t.Fatalf("a second Open answered %v", err)
	}
	reopen(t, s)
}

func TestADamagedFileStaysAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.json")
	s := open(t, path)
	enqueue(t, s, "a", "b")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	for name, content := range map[string]string{
		"empty":       "",
		"not JSON":    "once upon a time",
		"other JSON":  `{"name": "left-pad"}`,
		"cut":         string(whole[:len(whole)-9]),
		"line lost":   lines[0] + lines[1],
		"line twice":  lines[0] + lines[1] + lines[1],
		"newer":       strings.Replace(string(whole), `"Format":1`, `"Format":2`, 1),
		"newer field": strings.Replace(string(whole), `"Queue"`, `"Mood":"good","Queue"`, 1),
		"old header":  strings.Replace(string(whole), `"Seq":2`, `"Seq":1`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var damaged *DamagedError
			if _, err := Open(path, Options{}); !errors.As(err, &damaged) || damaged.Path != path {
				t.Fatalf("Open answered %v", err)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != content {
				t.Fatalf("the file was changed to %q, %v", after, err)
			}
		})
	}
}

// ErrUnavailable is a promise that nothing was done.
func TestWhatCouldNotBeWrittenDidNotHappen(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.json"))
	enqueue(t, s, "a")
	obstacle := s.file.path + ".tmp"
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := s.Claim(t.Context(), core.ClaimRequest{
		Wants: []core.Want{{Queue: "q", Names: []string{"letter"}, Limit: 1}}, Token: core.NewToken(), Lease: time.Hour,
	})
	if !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("Claim on a full disk answered %v", err)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	if c, _ := claim(t, s); c.Jobs[0].ID != "a" || c.Jobs[0].Fence != 1 {
		t.Fatalf("the claim that failed left a trace: %+v", c.Jobs[0])
	}
}

func TestCloseEndsEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, filepath.Join(t.TempDir(), "jobs.json"))
		wake, err := s.AwaitWake(t.Context(), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		go func() {
			_, err := s.AwaitWake(t.Context(), []string{"q"}, wake.Token)
			waiting <- err
		}()
		synctest.Wait()
		for range 2 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-waiting; !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("AwaitWake answered %v", err)
		}
	})
}

func TestAWaitForTheTurnHeedsItsContext(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.json"))
	s.turn <- struct{}{}
	defer s.leave()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Ack(ctx, nil); !errors.Is(err, context.Canceled) || !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Ack answered %v", err)
	}
}
