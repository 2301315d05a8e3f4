package core

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzSanitise: whatever an error says, what reaches a store is a text that every store takes (Q22).
func FuzzSanitise(f *testing.F) {
	f.Add("plain")
	f.Add("a\x00b\xff\xc3")
	f.Add(strings.Repeat("ü", MaxFailureBytes))
	f.Add("x" + strings.Repeat("\xf0\x9f\x98\x80", MaxFailureBytes/4))
	f.Fuzz(func(t *testing.T, s string) {
		got := sanitise(s)
		if !utf8.ValidString(got) || strings.IndexByte(got, 0) >= 0 || len(got) > MaxFailureBytes {
			t.Fatalf("%q became %q", s, got)
		}
		if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && len(s) <= MaxFailureBytes && got != s {
			t.Fatalf("a good text was changed: %q became %q", s, got)
		}
		if err := (Ack{Outcome: OutcomeFail, Failure: &Failure{Message: got}}).Validate(Limits{}); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzRequest: a request is accepted or refused with an InvalidError, and no two accepted pairs of name and key
// share an id (Q10, Q13).
func FuzzRequest(f *testing.F) {
	f.Add("send", "a", "sen", "d:a", "default", "")
	f.Add("a", "b:c", "a", "b:c", "q", "#1")
	f.Add("é", "\x00", "", "k", "\xff", "@x")
	f.Fuzz(func(t *testing.T, name, key, otherName, otherKey, queue, id string) {
		request := func(name, key, id string) (EnqueueRequest, bool) {
			r := EnqueueRequest{Name: name, Key: key, Queue: queue, ID: id, MaxAttempts: 1}
			err := r.Validate(Limits{})
			var invalid *InvalidError
			if err != nil && !errors.As(err, &invalid) {
				t.Fatalf("%T: %v", err, err)
			}
			return r, err == nil
		}
		if r, ok := request(name, key, id); ok {
			got := r.ResolvedID()
			if len(got) > MaxIDBytes || !utf8.ValidString(got) || strings.HasPrefix(got, "#") && id != "" {
				t.Fatalf("accepted id %q", got)
			}
		}
		a, okA := request(name, key, "")
		b, okB := request(otherName, otherKey, "")
		if okA && okB && key != "" && otherKey != "" && a.ResolvedID() == b.ResolvedID() && (name != otherName || key != otherKey) {
			t.Fatalf("(%q, %q) and (%q, %q) share %q", name, key, otherName, otherKey, a.ResolvedID())
		}
	})
}
