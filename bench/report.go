package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// row is a contender with the medians of its rounds.
type row struct {
	contender
	sample
}

// median takes each figure's median by itself.
func median(list []sample) sample {
	of := func(figure func(sample) float64) float64 {
		values := make([]float64, len(list))
		for i, s := range list {
			values[i] = figure(s)
		}
		slices.Sort(values)
		half := len(values) / 2
		if len(values)%2 == 0 {
			return (values[half-1] + values[half]) / 2
		}
		return values[half]
	}
	return sample{
		Jobs:   list[0].Jobs,
		Insert: of(func(s sample) float64 { return s.Insert }),
		Single: of(func(s sample) float64 { return s.Single }),
		Drain:  of(func(s sample) float64 { return s.Drain }),
		CPU:    of(func(s sample) float64 { return s.CPU }),
		P50:    of(func(s sample) float64 { return s.P50 }),
		P99:    of(func(s sample) float64 { return s.P99 }),
	}
}

func heading(cfg config, before, after string) string {
	return fmt.Sprintf("%s/%s, %d cores, %s, load %s before and %s after; medians of %d rounds\n\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), before, after, cfg.rounds)
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

func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| contender | jobs | insert/s | one by one/s | drain/s | drain CPU µs/job | pickup p50 ms | p99 ms | how |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %d | %.0f | %.0f | %.0f | %.1f | %s | %s | %s |\n",
			r.name, r.Jobs, r.Insert, r.Single, r.Drain, r.CPU, millis(r.P50), millis(r.P99), r.note)
	}
	return b.String()
}

func millis(v float64) string { return fmt.Sprintf("%.2f", v) }

// verdicts compares stint on SQLite with everybody else on SQLite.
func verdicts(rows []row) string {
	const us = "stint SQLite"
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == us })
	if i < 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, r := range rows {
		if !strings.HasPrefix(r.name, "stint") {
			fmt.Fprintf(&b, "%s: %.2f x the drain of %s, at %.2f x its CPU per job.\n",
				us, rows[i].Drain/r.Drain, r.name, rows[i].CPU/r.CPU)
		}
	}
	return b.String()
}
