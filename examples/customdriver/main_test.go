package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stintmq/stint/examples/customdriver/filestore"
)

// Time is the bubble's: nothing here waits.
func TestLettersAreSentOnceOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.json")
	for _, want := range []string{
		"5 new letters, 0 known ones|to Ada ... sent|to Ken ... sent|5 sent",
		"0 new letters, 5 known ones|0 sent, and no more for a while; -fresh starts over",
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

func TestFreshRemovesItsOwnFileOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.json")
	var out strings.Builder
	if err := startOver(&out, path); err != nil || out.Len() > 0 {
		t.Errorf("no file: %v, %q", err, out.String())
	}
	for _, text := range []string{"", "years of work\n", `{"name":"somebody's"}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := startOver(&out, path); err == nil || out.Len() > 0 {
			t.Errorf("took %q for its own", text)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != text {
			t.Errorf("%q became %q, %v", text, after, err)
		}
	}
	if err := startOver(&out, t.TempDir()); err == nil {
		t.Error("took a folder for its own")
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	store, err := filestore.Open(path, filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := enqueue(t.Context(), &out, store, path); err != nil {
		t.Fatal(err)
	}
	if locked := (*filestore.LockedError)(nil); !errors.As(startOver(&out, path), &locked) {
		t.Error("removed a file in use")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := startOver(&out, path); err != nil || !strings.HasSuffix(out.String(), "starting over: removed "+path+"\n") {
		t.Errorf("%v, %q", err, out.String())
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
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
