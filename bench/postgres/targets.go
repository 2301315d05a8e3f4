package postgres

import (
	"fmt"
	"strings"
)

// verdicts hold the rows to what stint set out to reach. Judge by CPU: it depends least on the neighbours.
func verdicts(rows []row) string {
	v := judge{rows: rows}
	drain := func(r row) phase { return r.Drain }
	steady := func(r row) phase { return r.Steady }
	insert := func(r row) phase { return r.Insert }
	tx := func(r row) phase { return r.Tx }

	v.atLeast("drain", stintTuned, v.best(drain, riverFew, riverMany), drain, 3)
	v.atLeast("drain", stintTuned, graphileBatch, drain, 2)
	v.atLeast("drain", stintTuned, bareLoop, drain, 0.7)
	v.atLeast("drain", bareLoop, leanLoop, drain, 0.65)
	v.cpuAtMost("drain", stintTuned, v.thriftiest(drain, riverFew, riverMany), drain, 0.35)
	v.atLeast("drain", stintDefault, riverDefault, drain, 10)
	v.atLeast("drain", stintPQ, stintDefault, drain, 0.8)
	v.atLeast("steady state", stintTuned, v.best(steady, riverFew, riverMany), steady, 2.5)
	v.atLeast("insert", stintTuned, v.best(insert, riverFew, riverMany, riverDefault), insert, 1.5)
	v.atLeast("in a transaction each", stintTuned, v.best(tx, riverFew, riverMany, riverDefault), tx, 0)
	v.pickup()
	if v.text.Len() == 0 {
		return ""
	}
	return "\n| figure | of | to | ratio | CPU | target | |\n|---|---|---|--:|--:|--:|---|\n" + v.text.String()
}

type judge struct {
	rows []row
	text strings.Builder
}

func (v *judge) row(name string) (row, bool) {
	for _, r := range v.rows {
		if r.name == name {
			return r, true
		}
	}
	return row{}, false
}

func (v *judge) both(us, them string, of func(row) phase) (a, b phase, ok bool) {
	ours, have := v.row(us)
	theirs, has := v.row(them)
	a, b = of(ours), of(theirs)
	return a, b, have && has && a.Jobs > 0 && b.Jobs > 0
}

// best is the name of who is fastest.
func (v *judge) best(of func(row) phase, names ...string) (name string) {
	rate := -1.0
	for _, n := range names {
		if r, ok := v.row(n); ok && of(r).Rate > rate {
			name, rate = n, of(r).Rate
		}
	}
	return name
}

// thriftiest is the name of who needs the least CPU.
func (v *judge) thriftiest(of func(row) phase, names ...string) (name string) {
	least := 0.0
	for _, n := range names {
		if r, ok := v.row(n); ok && (name == "" || of(r).cpu() < least) {
			name, least = n, of(r).cpu()
		}
	}
	return name
}

// atLeast compares rates; a target of 0 is none.
func (v *judge) atLeast(figure, us, them string, of func(row) phase, target float64) {
	a, b, ok := v.both(us, them, of)
	if !ok {
		return
	}
	ratio, want, verdict := a.Rate/b.Rate, "", ""
	if target > 0 {
		want, verdict = fmt.Sprintf("at least %.2f", target), mark(ratio >= target)
	}
	fmt.Fprintf(&v.text, "| %s | %s | %s | %.2f | %.2f | %s | %s |\n", figure, us, them, ratio, a.cpu()/b.cpu(), want, verdict)
}

func (v *judge) cpuAtMost(figure, us, them string, of func(row) phase, target float64) {
	a, b, ok := v.both(us, them, of)
	if !ok {
		return
	}
	ratio := a.cpu() / b.cpu()
	fmt.Fprintf(&v.text, "| %s, CPU per job | %s | %s | | %.2f | at most %.2f | %s |\n", figure, us, them, ratio, target, mark(ratio <= target))
}

func (v *judge) pickup() {
	ours, have := v.row(stintTuned)
	if !have || ours.Near.P50 == 0 {
		return
	}
	for _, c := range []struct {
		figure string
		of     func(row) latency
	}{{"pickup", func(r row) latency { return r.Near }}, {"pickup from another process", func(r row) latency { return r.Far }}} {
		us := c.of(ours)
		best, name := 0.0, ""
		for _, n := range []string{riverFew, riverMany} {
			if r, ok := v.row(n); ok && (name == "" || c.of(r).P50 < best) {
				best, name = c.of(r).P50, n
			}
		}
		if name != "" && best > 0 {
			fmt.Fprintf(&v.text, "| %s, p50 | %s | %s | %.2f | | at most 0.70 | %s |\n", c.figure, stintTuned, name, us.P50/best, mark(us.P50 <= 0.7*best))
		}
		fmt.Fprintf(&v.text, "| %s, p99 | %s | | %.2f ms | | at most 8 ms | %s |\n", c.figure, stintTuned, us.P99, mark(us.P99 <= 8))
	}
}

func mark(met bool) string {
	if met {
		return "met"
	}
	return "**missed**"
}
