// Bench measures stint beside its peers: the same jobs, the same machine, the same run.
//
//	cd bench && go run . [-n jobs] [-rounds n] [-only names] [-dir folder] [-cpuprofile folder]
//	cd bench && go run . -db postgres [-phases names] [-pinned | -big | -prune] ...
//
// The first is SQLite and memory, the second Postgres, on a throw-away server made of the machine's binaries. Every contender runs in a process of its own, in rounds that alternate, so that a neighbour's load meets all
// of them. It prints one table of medians. docs/benchmarks.md says how to read it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintmq/stint/bench/postgres"
)

type config struct {
	db       string
	postgres postgres.Config // what only Postgres knows of
	jobs     int
	rounds   int
	only     string
	dir      string
	profiles string
	child    string // the contender that this process measures; "": it is the parent
}

func main() {
	var cfg config
	flag.StringVar(&cfg.db, "db", "sqlite", "sqlite (and memory), or postgres")
	flag.StringVar(&cfg.postgres.Phases, "phases", "", "postgres: phases whose names contain one of these, separated by commas: insert, drain, steady, pickup, transaction")
	flag.BoolVar(&cfg.postgres.Pinned, "pinned", false, "postgres: measure under a transaction that stays open, instead of the phases")
	flag.DurationVar(&cfg.postgres.PinnedFor, "pinned-for", time.Minute, "postgres: for how long")
	flag.BoolVar(&cfg.postgres.Big, "big", false, "postgres: measure beside 1,000,000 delayed and many finished jobs, instead of the phases")
	flag.BoolVar(&cfg.postgres.Prune, "prune", false, "postgres: measure while finished jobs are pruned, instead of the phases")
	flag.IntVar(&cfg.postgres.Finished, "finished", 0, "postgres: how many finished ones (default 10,000,000; with -prune 1,000,000)")
	flag.BoolVar(&cfg.postgres.Statements, "statements", false, "postgres: print the statements of each drain (pg_stat_statements)")
	flag.StringVar(&cfg.postgres.Graphile, "graphile", "", "postgres: a folder in which npm installed graphile-worker, to measure that, too")
	flag.StringVar(&cfg.postgres.Settings, "settings", "", "postgres: further settings of the server, name=value, separated by commas")
	flag.IntVar(&cfg.jobs, "n", 0, "jobs to drain; slow contenders get a fraction, see the table (default 60,000, on Postgres 30,000)")
	flag.IntVar(&cfg.rounds, "rounds", 3, "rounds")
	flag.StringVar(&cfg.only, "only", "", "contenders whose names contain one of these, separated by commas; on Postgres journal: that, beside bare tables")
	flag.StringVar(&cfg.dir, "dir", "", "where the databases go; a real disk, else FULL says nothing (default the system's folder for temporary files)")
	flag.StringVar(&cfg.profiles, "cpuprofile", "", "folder for a CPU profile of each contender's last drain")
	flag.StringVar(&cfg.child, "child", "", "measure this contender in this process and print JSON")
	flag.Parse()
	if cfg.jobs == 0 {
		cfg.jobs = map[string]int{"sqlite": 60_000, "postgres": 30_000}[cfg.db]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := parent
	switch {
	case cfg.db == "postgres" && cfg.child != "":
		run = func(ctx context.Context, _ config) error { return postgres.Child(ctx, os.Stdin, os.Stdout) }
	case cfg.db == "postgres":
		run = onPostgres
	case cfg.db != "sqlite":
		run = func(context.Context, config) error { return fmt.Errorf("-db is sqlite or postgres, not %q", cfg.db) }
	case cfg.child != "":
		run = child
	}
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// onPostgres measures there. Its contenders have processes of their own, too.
func onPostgres(ctx context.Context, cfg config) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := cfg.postgres
	c.Jobs, c.Rounds, c.Only, c.Profiles = cfg.jobs, cfg.rounds, cfg.only, cfg.profiles
	if cfg.only == postgres.OnlyJournal {
		return postgres.Journal(ctx, c)
	}
	if c.Finished == 0 {
		c.Finished = 10_000_000
		if c.Prune {
			c.Finished = 1_000_000
		}
	}
	return postgres.Run(ctx, c, func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, self, "-db", "postgres", "-child", "yes")
	})
}

// parent runs the rounds and prints the table.
func parent(ctx context.Context, cfg config) error {
	chosen := slices.DeleteFunc(contenders(), func(c contender) bool { return !matches(c.name, cfg.only) })
	if len(chosen) == 0 || cfg.rounds < 1 || cfg.jobs < 1000 {
		return fmt.Errorf("nothing to do: no contender matches %q, or -rounds < 1, or -n < 1000", cfg.only)
	}
	before := load()
	samples := make(map[string][]sample)
	for round := range cfg.rounds {
		for i := range chosen {
			c := chosen[(i+round)%len(chosen)] // nobody is always first, or always behind the same one
			s, err := spawn(ctx, cfg, c.name)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			samples[c.name] = append(samples[c.name], s)
			fmt.Fprintf(os.Stderr, "round %d of %d: %-24s %8.0f jobs/s %8.1f µs/job\n", round+1, cfg.rounds, c.name, s.Drain, s.CPU)
		}
	}
	rows := make([]row, 0, len(chosen))
	for _, c := range chosen {
		rows = append(rows, row{contender: c, sample: median(samples[c.name])})
	}
	fmt.Print(heading(cfg, before, load()), table(rows), verdicts(rows))
	return nil
}

func matches(name, only string) bool {
	return only == "" || slices.ContainsFunc(strings.Split(only, ","), func(part string) bool {
		return strings.Contains(name, strings.TrimSpace(part))
	})
}

// spawn measures one contender in a child process: what it costs is what the process used.
func spawn(ctx context.Context, cfg config, name string) (sample, error) {
	self, err := os.Executable()
	if err != nil {
		return sample{}, err
	}
	dir, err := os.MkdirTemp(cfg.dir, "stint-bench-")
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays is in a folder for temporary files
	cmd := exec.CommandContext(ctx, self, "-child", name, "-n", strconv.Itoa(cfg.jobs), "-dir", dir, "-cpuprofile", cfg.profiles)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return sample{}, err
	}
	var s sample
	return s, json.Unmarshal(out, &s)
}

// child measures the contender of its name.
func child(ctx context.Context, cfg config) error {
	i := slices.IndexFunc(contenders(), func(c contender) bool { return c.name == cfg.child })
	if i < 0 {
		return fmt.Errorf("no contender is called %q", cfg.child)
	}
	profile := ""
	if cfg.profiles != "" {
		file := strings.NewReplacer(" ", "-", ",", "").Replace(cfg.child) + ".prof"
		profile = filepath.Join(cfg.profiles, file)
	}
	s, err := measure(ctx, contenders()[i], cfg, profile)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}
