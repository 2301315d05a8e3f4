package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// row is a contender with the medians of its rounds.
type row struct {
	contender
	sample
}

// middle is the median.
func middle(list []float64) float64 {
	values := slices.Sorted(slices.Values(list))
	half := len(values) / 2
	if len(values)%2 == 0 {
		return (values[half-1] + values[half]) / 2
	}
	return values[half]
}

// median takes each figure's median by itself.
func median(list []sample) sample {
	of := func(figure func(sample) float64) float64 {
		values := make([]float64, len(list))
		for i, s := range list {
			values[i] = figure(s)
		}
		return middle(values)
	}
	phaseOf := func(which func(sample) phase) phase {
		return phase{
			Jobs:   which(list[0]).Jobs,
			Rate:   of(func(s sample) float64 { return which(s).Rate }),
			Client: of(func(s sample) float64 { return which(s).Client }),
			Server: of(func(s sample) float64 { return which(s).Server }),
			WAL:    of(func(s sample) float64 { return which(s).WAL }),
		}
	}
	latencyOf := func(which func(sample) latency) latency {
		return latency{of(func(s sample) float64 { return which(s).P50 }), of(func(s sample) float64 { return which(s).P99 })}
	}
	return sample{
		Insert: phaseOf(func(s sample) phase { return s.Insert }),
		Drain:  phaseOf(func(s sample) phase { return s.Drain }),
		Steady: phaseOf(func(s sample) phase { return s.Steady }),
		Tx:     phaseOf(func(s sample) phase { return s.Tx }),
		Near:   latencyOf(func(s sample) latency { return s.Near }),
		Far:    latencyOf(func(s sample) latency { return s.Far }),
		Parts:  list[0].Parts,
		Pruned: list[0].Pruned,
	}
}

// heading says where and on what it ran.
func heading(ctx context.Context, dsn string, cfg Config, rounds int) (head string, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var on []string
	for _, name := range []string{"server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size"} {
		var value string
		if err := conn.QueryRow(ctx, "select current_setting($1)", name).Scan(&value); err != nil {
			return "", err
		}
		on = append(on, name+" "+value)
	}
	if cfg.Settings != "" {
		on = append(on, cfg.Settings)
	}
	return fmt.Sprintf("%s/%s, %d cores that client and server share, %s; Postgres: %s; medians of %d rounds",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), strings.Join(on, ", "), rounds), nil
}

// load is the machine's load average of the last minute, where the system tells.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}

// brief is a sample in one line.
func brief(s sample) string {
	var parts []string
	for _, p := range []struct {
		name string
		phase
	}{{"insert", s.Insert}, {"drain", s.Drain}, {"steady", s.Steady}, {"tx", s.Tx}} {
		if p.Jobs > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f/s (%.0f/%.0f µs, %.0f B)", p.name, p.Rate, p.Client, p.Server, p.WAL))
		}
	}
	if s.Near.P50 > 0 {
		parts = append(parts, fmt.Sprintf("pickup %.2f/%.2f, from elsewhere %.2f/%.2f ms", s.Near.P50, s.Near.P99, s.Far.P50, s.Far.P99))
	}
	for _, p := range s.Parts {
		parts = append(parts, p.cell())
	}
	return strings.Join(parts, ", ")
}

func table(rows []row) string {
	var b strings.Builder
	b.WriteString("Rates are jobs/s; in brackets CPU of client/server in µs per job, and bytes of WAL per job. Pickup is p50/p99 in ms.\n\n")
	b.WriteString("| contender | jobs | insert, 1,000 a call | drain | steady state | in a transaction each, 16 connections | pickup | from another process |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s | %s |\n", r.name, max(r.Drain.Jobs, r.Steady.Jobs),
			r.Insert.cell(), r.Drain.cell(), r.Steady.cell(), r.Tx.cell(), r.Near.cell(), r.Far.cell())
	}
	b.WriteString("\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "- %s: %s.\n", r.name, r.note)
	}
	return b.String()
}

func (p phase) cell() string {
	if p.Jobs == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f (%.0f/%.0f, %.0f)", p.Rate, p.Client, p.Server, p.WAL)
}

func (l latency) cell() string {
	if l.P50 == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f/%.2f", l.P50, l.P99)
}
