package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed transfers.csv
var shipped string // ledger -generate 10000

const header = "id,from,to,amount"

func openFile(path string) (io.ReadCloser, error) {
	if path == "" {
		return io.NopCloser(strings.NewReader(shipped)), nil
	}
	return os.Open(path)
}

// badShown is how many bad lines are quoted.
const badShown = 10

// imported is what an import did.
type imported struct {
	tally
	lines int64
	said  []string // of the first bad lines
}

func (m *imported) refuse(line int64, err error) {
	if m.bad++; m.bad <= badShown {
		m.said = append(m.said, fmt.Sprintf("line %d: %v", line, err))
	}
}

// load imports a file, so many lines in a transaction. A bad line is refused, and stops nothing.
func (b *bank) load(ctx context.Context, in io.Reader, batch int) (did imported, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	if lines.Scan() && strings.TrimSpace(lines.Text()) != header {
		return did, fmt.Errorf("the file must begin with the line %s", header)
	}
	var next []Transfer
	var at []int64 // their lines
	flush := func() error {
		t, bad, err := b.book(ctx, next)
		did.completed, did.refused, did.known = did.completed+t.completed, did.refused+t.refused, did.known+t.known
		for i := range next {
			if bad[i] != nil {
				did.refuse(at[i], bad[i])
			}
		}
		next, at = next[:0], at[:0]
		return err
	}
	for lines.Scan() {
		did.lines++
		tr, err := read(lines.Text())
		if err != nil {
			did.refuse(did.lines+1, err)
			continue
		}
		if next, at = append(next, tr), append(at, did.lines+1); len(next) == batch {
			if err := flush(); err != nil {
				return did, err
			}
		}
	}
	return did, errors.Join(lines.Err(), flush())
}

var name = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

const maxAmount = 1_000_000_000_000 // a million of them are no overflow

// read reads a line.
func read(line string) (Transfer, error) {
	f := strings.Split(strings.TrimSpace(line), ",")
	if len(f) != 4 {
		return Transfer{}, fmt.Errorf("%d columns, not 4", len(f))
	}
	for _, id := range f[:3] {
		if !name.MatchString(id) {
			return Transfer{}, fmt.Errorf("%.70q is no id", id)
		}
	}
	amount, err := strconv.ParseInt(f[3], 10, 64)
	switch {
	case err != nil:
		return Transfer{}, fmt.Errorf("%.70q is no amount", f[3])
	case amount <= 0 || amount > maxAmount:
		return Transfer{}, fmt.Errorf("the amount %d is not within 1 to %d", amount, int64(maxAmount))
	case f[1] == f[2]:
		return Transfer{}, fmt.Errorf("from %s to itself", f[1])
	}
	return Transfer{f[0], f[1], f[2], amount}, nil
}

// generate prints a file of n lines below its header, always the same: deposits at first, and now and then a transfer
// that nobody can pay, one that was seen before, and nonsense.
func generate(out io.Writer, n int) error {
	w := bufio.NewWriter(out)
	random := rand.New(rand.NewPCG(2026, 11))
	holders := min(100, n/5+2)
	printf(w, header)
	last := ""
	for i := range n {
		from, to := random.IntN(holders), random.IntN(holders-1)
		if to >= from {
			to++
		}
		line := fmt.Sprintf("t%06d,a%03d,a%03d,%d", i+1, from, to, 1+random.IntN(3000))
		switch {
		case i < holders:
			line = fmt.Sprintf("t%06d,%s,a%03d,%d", i+1, world, i, 5000+random.IntN(5000))
		case i%500 == 200:
			line = last
		case i%1000 == 300:
			line = fmt.Sprintf("t%06d,a%03d,a%03d,%d", i, from, to, 1) // the id of the line before
		case i%1000 == 400:
			line = []string{"t%d,a001,a002,-5", "t%d,a001,a001,5", "t%d,a001,a002", "t%d,a001,a002,five", "t%d,a 1,a002,5"}[i/1000%5]
			line = strings.Replace(line, "%d", fmt.Sprintf("%06d", i+1), 1)
		case i%100 == 50:
			line = fmt.Sprintf("t%06d,a%03d,%s,%d", i+1, from, world, 1+random.IntN(500)) // a withdrawal
		}
		printf(w, "%s", line)
		last = line
	}
	return w.Flush()
}

// print says what a run did.
func (m *imported) print(out io.Writer, took, all time.Duration) {
	for _, s := range m.said {
		printf(out, "refused: %s", s)
	}
	if more := m.bad - int64(len(m.said)); more > 0 {
		printf(out, "and %d more", more)
	}
	printf(out, "read %d lines: %d transfers completed, %d overdrafts refused, %d known before, %d bad",
		m.lines, m.completed, m.refused, m.known, m.bad)
	printf(out, "in %v, %.0f transfers/s, and %v until all webhooks were delivered",
		took.Round(10*time.Millisecond), float64(m.completed+m.refused)/max(took.Seconds(), 0.001), all.Round(10*time.Millisecond))
}
