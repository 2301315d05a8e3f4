package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// Time is the bubble's: nothing here waits.
func TestLettersAreSentOnceOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.json")
	for _, want := range []string{
		"5 new letters, 0 known ones|to Ada ... sent|to Ken ... sent|5 sent",
		"0 new letters, 5 known ones|0 sent",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			if err := run(t.Context(), &out, path, func() {}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.SplitSeq(want, "|") {
				if !strings.Contains(out.String(), line) {
					t.Errorf("no %q in\n%s", line, out.String())
				}
			}
		})
	}
}

func TestTheLetterUnderWayIsSentAgainAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.json")
	crashed := filepath.Join(t.TempDir(), "crashed.json")
	var before, after strings.Builder
	synctest.Test(t, func(t *testing.T) {
		// The file as it was at the moment of the crash is what the next process finds.
		if err := run(t.Context(), &before, path, func() { copyFile(t, path, crashed) }); err != nil {
			t.Fatal(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if err := run(t.Context(), &after, crashed, func() {}); err != nil {
			t.Fatal(err)
		}
	})
	if got := after.String(); !strings.Contains(got, "to Edsger (start 2) ... sent") || strings.Contains(got, "to Ada") ||
		!strings.Contains(got, "3 sent") {
		t.Errorf("after the crash:\n%s", got)
	}
}

func copyFile(t *testing.T, from, to string) {
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}
