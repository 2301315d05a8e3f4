package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// screen prints lines, and a status that is redrawn in place on a terminal and a line now and then elsewhere.
// It is used by one goroutine at a time.
type screen struct {
	w     io.Writer
	live  bool          // a terminal
	look  time.Duration // between looks at the progress
	every time.Duration // between status lines where they can't be redrawn

	drawn int // width of the status on the line, 0: none
	last  time.Time
	late  string // the newest status, if it came too soon to be shown
}

func newScreen(f *os.File) *screen {
	info, err := f.Stat()
	return &screen{
		w: f, live: err == nil && info.Mode()&os.ModeCharDevice != 0,
		look: 100 * time.Millisecond, every: 2 * time.Second,
	}
}

// printf prints a line that stays, in the place of the status.
func (s *screen) printf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.late = ""
	if s.drawn > 0 {
		text = s.over(text)
		s.drawn = 0
	}
	s.line(text + "\n")
}

// status replaces the status before.
func (s *screen) status(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.live {
		s.line(s.over(text))
		s.drawn = len(text)
		return
	}
	s.late = text
	if now := time.Now(); now.Sub(s.last) >= s.every {
		s.last, s.late = now, ""
		s.line(text + "\n")
	}
}

// over is text that covers all of the status on the line.
func (s *screen) over(text string) string {
	return "\r" + text + strings.Repeat(" ", max(0, s.drawn-len(text)))
}

// end shows the newest status if it was not, leaves it where it is and goes on below.
func (s *screen) end() {
	if s.late != "" {
		s.line(s.late + "\n")
		s.late = ""
	}
	if s.drawn > 0 {
		s.line("\n")
		s.drawn = 0
	}
}

func (s *screen) line(text string) {
	_, _ = io.WriteString(s.w, text) // a reader that is gone is no reason to stop working
}

// printable keeps a file's odd name from drawing on the terminal.
func printable(s string) string {
	if quoted := strconv.Quote(s); !utf8.ValidString(s) || len(quoted) != len(s)+2 {
		return quoted
	}
	return s
}
