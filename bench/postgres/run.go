package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// task is what a child process is asked to do.
type task struct {
	Config    Config
	Contender string
	DSN       string
}

// Run measures, in processes that self starts, and prints a table.
func Run(ctx context.Context, cfg Config, self func(ctx context.Context) *exec.Cmd) error {
	chosen := slices.DeleteFunc(contenders(cfg), func(c contender) bool { return !matches(c.name, cfg.Only) })
	if cfg.Pinned && cfg.Only == "" {
		chosen = slices.DeleteFunc(chosen, func(c contender) bool { return !slices.Contains(pinnable, c.name) })
	}
	if cfg.Big || cfg.Prune {
		chosen = slices.DeleteFunc(chosen, func(c contender) bool { return c.name != bareLoop })
	}
	if len(chosen) == 0 || cfg.Rounds < 1 || cfg.Jobs < 1000 {
		return fmt.Errorf("nothing to do: no contender matches %q, or -rounds < 1, or -n < 1000", cfg.Only)
	}
	rounds := cfg.Rounds
	if cfg.Pinned || cfg.Big || cfg.Prune {
		rounds = 1 // they compare a run with itself
	}
	return withServer(cfg, func(dsn string) error {
		repeated := rounds
		if cfg.Big {
			repeated = cfg.Rounds // within its one process
		}
		head, err := heading(ctx, dsn, cfg, repeated)
		if err != nil {
			return err
		}
		before := load()
		samples := make(map[string][]sample)
		for round := range rounds {
			for i := range chosen {
				c := chosen[(i+round)%len(chosen)] // nobody is always first, or always behind the same one
				s, err := spawn(ctx, dsn, task{Config: cfg, Contender: c.name}, self)
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				samples[c.name] = append(samples[c.name], s)
				fmt.Fprintf(os.Stderr, "round %d of %d: %-18s %s\n", round+1, rounds, c.name, brief(s))
			}
		}
		rows := make([]row, 0, len(chosen))
		for _, c := range chosen {
			rows = append(rows, row{c, median(samples[c.name])})
		}
		fmt.Printf("%s; load %s before and %s after\n\n", head, before, load())
		switch {
		case cfg.Pinned:
			fmt.Print(pinnedTable(rows, cfg))
		case cfg.Big:
			fmt.Print(bigTable(rows, cfg))
		case cfg.Prune:
			fmt.Print(pruneTable(rows, cfg))
		default:
			fmt.Print(table(rows), verdicts(rows))
		}
		return nil
	})
}

func matches(name, only string) bool {
	return only == "" || slices.ContainsFunc(strings.Split(only, ","), func(part string) bool {
		return strings.Contains(name, strings.TrimSpace(part))
	})
}

func fileName(name string) string { return strings.ReplaceAll(name, " ", "-") }

// spawn measures one contender in a child process, in a database of its own.
func spawn(ctx context.Context, dsn string, t task, self func(ctx context.Context) *exec.Cmd) (s sample, err error) {
	err = withDatabase(ctx, dsn, strings.ToLower(fileName(t.Contender)), func(dsn string) error {
		t.DSN = dsn
		in, err := json.Marshal(t)
		if err != nil {
			return err
		}
		cmd := self(ctx)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr // the DSN has a password, and arguments are public
		out, err := cmd.Output()
		if err != nil {
			return err
		}
		return json.Unmarshal(out, &s)
	})
	return s, err
}

// Child does what in asks for and writes what it measured to out.
func Child(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	var t task
	if err := json.NewDecoder(in).Decode(&t); err != nil {
		return err
	}
	all := contenders(t.Config)
	i := slices.IndexFunc(all, func(c contender) bool { return c.name == t.Contender })
	if i < 0 {
		return fmt.Errorf("no contender is called %q", t.Contender)
	}
	s := &subject{contender: all[i], cfg: t.Config, dsn: t.DSN}
	if s.queue, err = s.open(ctx, t.DSN); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.meter, err = openMeter(ctx, t.DSN); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.meter.conn.Close(context.WithoutCancel(ctx))) }()
	measure := s.measure
	switch {
	case t.Config.Pinned:
		measure = s.pinned
	case t.Config.Big:
		measure = s.big
	case t.Config.Prune:
		measure = s.prune
	}
	got, err := measure(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(got)
}
