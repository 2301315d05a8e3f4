package conformance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/failing"
)

// pruning is Prune written down as a scan of all jobs, in parts that a mutant replaces.
type pruning struct {
	pool    func(core.Record) bool // what may be pruned
	state   func(core.Record) core.State
	group   func(core.Record) string
	newest  func(a, b core.Record) int // the order of a group, the ruler first
	rule    func(core.PruneRequest, core.State, []core.Record) core.KeepRule
	order   func(a, b core.Record) int // of a group, the first to stay first
	expired func(rule core.KeepRule, place int, age time.Duration) bool
	limit   func(core.PruneRequest) int
	deleted func(h *hooked, id string) // instead of removing it
	answer  func(deleted, limit int) int
}

func finishedLast(a, b core.Record) int {
	return cmp.Or(b.FinishedAt.Compare(a.FinishedAt), cmp.Compare(b.Ref, a.Ref))
}

func goodPruning() pruning {
	return pruning{
		pool:   func(r core.Record) bool { return r.State.Terminal() },
		state:  func(r core.Record) core.State { return r.State },
		group:  func(r core.Record) string { return r.Name + ":" + string(r.State) },
		newest: finishedLast,
		rule: func(req core.PruneRequest, s core.State, jobs []core.Record) core.KeepRule {
			return req.Rule(s, jobs[0].Keep)
		},
		order: finishedLast,
		expired: func(r core.KeepRule, place int, age time.Duration) bool {
			return r.None || !r.Forever && (r.Count > 0 && place >= r.Count || r.Age > 0 && age >= r.Age)
		},
		limit: func(req core.PruneRequest) int {
			if req.Limit == 0 {
				return core.DefaultPruneLimit
			}
			return req.Limit
		},
		answer: func(deleted, _ int) int { return deleted },
	}
}

// breaks makes a memory store's Prune the one that p says.
func (p pruning) breaks(h *hooked) {
	var mu sync.Mutex
	var clock core.Clock = realClock{}
	if h.clock != nil {
		clock = h.clock
	}
	h.prune = func(ctx context.Context, req core.PruneRequest) (int, error) {
		if _, err := h.Store.Counts(ctx, ""); err != nil {
			return 0, err // closed, or ctx has ended
		}
		if err := req.Validate(); err != nil {
			return 0, err
		}
		mu.Lock()
		defer mu.Unlock()
		return p.run(ctx, h, core.Micros(clock.Now()), req)
	}
}

func (p pruning) run(ctx context.Context, h *hooked, now time.Time, req core.PruneRequest) (int, error) {
	groups, err := p.groups(ctx, h)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, jobs := range groups {
		slices.SortFunc(jobs, p.newest)
		rule := p.rule(req, p.state(jobs[0]), jobs)
		slices.SortFunc(jobs, p.order)
		for place, j := range slices.Backward(jobs) {
			if n == p.limit(req) || !p.expired(rule, place, now.Sub(j.FinishedAt)) {
				break
			}
			n++
			if p.deleted != nil {
				p.deleted(h, j.ID)
			} else if _, err := h.Store.Remove(ctx, j.ID); err != nil {
				return n, err
			}
		}
	}
	return p.answer(n, p.limit(req)), nil
}

func (p pruning) groups(ctx context.Context, h *hooked) (map[string][]core.Record, error) {
	groups := map[string][]core.Record{}
	for cursor := ""; ; {
		page, err := h.Store.List(ctx, core.Query{Limit: core.MaxListLimit, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, j := range page.Jobs {
			if p.pool(j) {
				groups[p.group(j)] = append(groups[p.group(j)], j)
			}
		}
		if cursor = page.Cursor; cursor == "" {
			return groups, nil
		}
	}
}

// pruned makes a mutant of Prune.
func pruned(fault string, change func(*pruning)) mutant {
	p := goodPruning()
	change(&p)
	return broken(fault, p.breaks)
}

// TestGoodPruning: what the mutants of Prune are made of passes.
func TestGoodPruning(t *testing.T) {
	s := assuming(t, hookedHarness(goodPruning().breaks))
	for _, c := range retainCases() {
		if r := failing.Run(t, func(tb testing.TB) { s.runCase(tb, c, NewClock()) }); r.Failed {
			t.Errorf("the pruning without a fault fails %s: %v", c.name, r.Said)
		}
	}
}

func retainMutants() []mutant {
	type (
		rules = func(core.PruneRequest, core.State, []core.Record) core.KeepRule
		keeps = func(rule core.KeepRule, place int, age time.Duration) bool
	)
	rule := func(fault string, change func(good rules) rules) mutant {
		return pruned(fault, func(p *pruning) { p.rule = change(p.rule) })
	}
	expires := func(fault string, change func(good keeps) keeps) mutant {
		return pruned(fault, func(p *pruning) { p.expired = change(p.expired) })
	}
	return append([]mutant{
		expires("prune keeps everything", func(keeps) keeps {
			return func(core.KeepRule, int, time.Duration) bool { return false }
		}),
		expires("prune deletes a moment late", func(good keeps) keeps {
			return func(r core.KeepRule, place int, age time.Duration) bool { return good(r, place, age-time.Microsecond) }
		}),
		expires("prune deletes a moment early", func(good keeps) keeps {
			return func(r core.KeepRule, place int, age time.Duration) bool { return good(r, place, age+time.Microsecond) }
		}),
		expires("prune cuts Age to microseconds", func(good keeps) keeps {
			return func(r core.KeepRule, place int, age time.Duration) bool {
				r.Age = max(r.Age.Truncate(time.Microsecond), min(r.Age, 1))
				return good(r, place, age)
			}
		}),
		expires("prune keeps one more than Count", func(good keeps) keeps {
			return func(r core.KeepRule, place int, age time.Duration) bool { return good(r, place-1, age) }
		}),
		expires("prune keeps one less than Count", func(good keeps) keeps {
			return func(r core.KeepRule, place int, age time.Duration) bool { return good(r, place+1, age) }
		}),
		expires("prune ignores Count", func(good keeps) keeps {
			return func(r core.KeepRule, _ int, age time.Duration) bool { return good(r, -1, age) }
		}),
		expires("prune ignores Age beside Count", func(good keeps) keeps {
			return func(r core.KeepRule, place int, age time.Duration) bool {
				if r.Count > 0 {
					r.Age = 0
				}
				return good(r, place, age)
			}
		}),
		expires("prune needs both Count and Age", func(good keeps) keeps {
			return func(r core.KeepRule, place int, age time.Duration) bool {
				if r.Count > 0 && r.Age > 0 {
					return place >= r.Count && age >= r.Age
				}
				return good(r, place, age)
			}
		}),
		expires("prune takes None for Forever", func(good keeps) keeps {
			return func(r core.KeepRule, place int, age time.Duration) bool { return !r.None && good(r, place, age) }
		}),
		expires("prune takes Forever for None", func(good keeps) keeps {
			return func(r core.KeepRule, place int, age time.Duration) bool { return r.Forever || good(r, place, age) }
		}),
		rule("prune has no defaults", func(good rules) rules {
			return func(req core.PruneRequest, s core.State, jobs []core.Record) core.KeepRule {
				if r := of(jobs[0].Keep, s); r == (core.KeepRule{}) && of(req.Default, s) == r {
					return core.KeepRule{Forever: true}
				}
				return good(req, s, jobs)
			}
		}),
		rule("prune keeps failed jobs for a day", func(good rules) rules {
			return func(req core.PruneRequest, s core.State, jobs []core.Record) core.KeepRule {
				if req.Default.Failed == (core.KeepRule{}) {
					req.Default.Failed = core.DefaultKeep().Completed
				}
				return good(req, s, jobs)
			}
		}),
		rule("prune ignores Default", func(good rules) rules {
			return func(req core.PruneRequest, s core.State, jobs []core.Record) core.KeepRule {
				req.Default = core.Keep{}
				return good(req, s, jobs)
			}
		}),
		rule("prune lets Default win", func(good rules) rules {
			return func(req core.PruneRequest, s core.State, jobs []core.Record) core.KeepRule {
				if of(req.Default, s) != (core.KeepRule{}) {
					jobs = []core.Record{{}}
				}
				return good(req, s, jobs)
			}
		}),
		rule("prune ignores Ceiling", func(good rules) rules {
			return func(req core.PruneRequest, s core.State, jobs []core.Record) core.KeepRule {
				req.Ceiling = core.Keep{}
				return good(req, s, jobs)
			}
		}),
		rule("prune keeps Forever under a Ceiling", func(good rules) rules {
			return func(req core.PruneRequest, s core.State, jobs []core.Record) core.KeepRule {
				if of(jobs[0].Keep, s).Forever {
					return core.KeepRule{Forever: true}
				}
				return good(req, s, jobs)
			}
		}),
		rule("prune keeps as long as Ceiling says", func(good rules) rules {
			return func(req core.PruneRequest, s core.State, jobs []core.Record) core.KeepRule {
				if top := of(req.Ceiling, s); top != (core.KeepRule{}) {
					return top
				}
				return good(req, s, jobs)
			}
		}),
		rule("prune takes one state's rule for all", func(good rules) rules {
			return func(req core.PruneRequest, s core.State, jobs []core.Record) core.KeepRule {
				k := jobs[0].Keep
				return good(req, s, []core.Record{{Keep: everyState(cmp.Or(of(k, s), k.Completed, k.Failed, k.Cancelled))}})
			}
		}),
		rule("prune lets the oldest rule", func(good rules) rules {
			return func(req core.PruneRequest, s core.State, jobs []core.Record) core.KeepRule {
				return good(req, s, jobs[len(jobs)-1:])
			}
		}),
		pruned("prune lets each job rule for itself", func(p *pruning) {
			p.group = func(r core.Record) string { return fmt.Sprint(r.Name, r.State, r.Keep) }
		}),
		pruned("prune lets the job rule that was inserted last", func(p *pruning) {
			p.newest = func(a, b core.Record) int { return cmp.Compare(b.Ref, a.Ref) }
		}),
		pruned("prune lets the first of equals rule", func(p *pruning) {
			p.newest = func(a, b core.Record) int {
				return cmp.Or(b.FinishedAt.Compare(a.FinishedAt), cmp.Compare(a.Ref, b.Ref))
			}
		}),
		pruned("prune deletes by insertion", func(p *pruning) {
			p.order = func(a, b core.Record) int { return cmp.Compare(b.Ref, a.Ref) }
		}),
		pruned("prune deletes the last of equals first", func(p *pruning) {
			p.order = func(a, b core.Record) int {
				return cmp.Or(b.FinishedAt.Compare(a.FinishedAt), cmp.Compare(a.Ref, b.Ref))
			}
		}),
		pruned("prune groups by queue", func(p *pruning) {
			p.group = func(r core.Record) string { return r.Queue + ":" + r.Name + ":" + string(r.State) }
		}),
		pruned("prune has one group for all names", func(p *pruning) {
			p.group = func(r core.Record) string { return string(r.State) }
		}),
		pruned("prune has one group for all states", func(p *pruning) {
			p.group = func(r core.Record) string { return r.Name }
		}),
		pruned("prune deletes pending jobs", func(p *pruning) {
			p.pool = func(core.Record) bool { return true }
			p.state = func(r core.Record) core.State {
				if r.State.Pending() {
					return core.StateCompleted
				}
				return r.State
			}
		}),
		pruned("prune deletes jobs that Retry revived", func(p *pruning) {
			p.pool = func(r core.Record) bool { return r.State.Terminal() || r.State == core.StateWaiting && r.Runs > 0 }
			p.state = func(r core.Record) core.State {
				if r.State.Pending() {
					return core.StateFailed
				}
				return r.State
			}
		}),
		pruned("prune has no limit", func(p *pruning) {
			p.limit = func(core.PruneRequest) int { return 1 << 30 }
		}),
		pruned("prune deletes one more than Limit", func(p *pruning) {
			good := p.limit
			p.limit = func(req core.PruneRequest) int { return good(req) + 1 }
		}),
		pruned("prune answers Limit", func(p *pruning) { p.answer = func(_, limit int) int { return limit } }),
		pruned("prune answers 1 at most", func(p *pruning) { p.answer = func(n, _ int) int { return min(n, 1) } }),
		pruned("prune only says that it deletes", func(p *pruning) { p.deleted = func(*hooked, string) {} }),
	}, retainCallMutants()...)
}

// retainCallMutants break what is around Prune.
func retainCallMutants() []mutant {
	return []mutant{
		broken("prune takes what is invalid", func(h *hooked) {
			prune := h.prune
			h.prune = func(ctx context.Context, r core.PruneRequest) (int, error) {
				if r.Validate() != nil {
					return 0, nil
				}
				return prune(ctx, r)
			}
		}),
		broken("prune deaf to its context", func(h *hooked) {
			prune := h.prune
			h.prune = func(ctx context.Context, r core.PruneRequest) (int, error) {
				return prune(context.WithoutCancel(ctx), r)
			}
		}),
		broken("pruned jobs keep their ledger", func(h *hooked) {
			ledgers := map[string][]core.Attempt{}
			prune, attempts := h.prune, h.attempts
			var mu sync.Mutex
			h.attempts = func(ctx context.Context, id string) ([]core.Attempt, error) {
				as, err := attempts(ctx, id)
				mu.Lock()
				defer mu.Unlock()
				if len(as) > 0 {
					ledgers[id] = as
				}
				return append(as, ledgers[id][min(len(as), len(ledgers[id])):]...), err
			}
			h.prune = func(ctx context.Context, r core.PruneRequest) (int, error) {
				page, err := h.Store.List(ctx, core.Query{Limit: core.MaxListLimit})
				for i := range page.Jobs {
					_, _ = h.attempts(ctx, page.Jobs[i].ID)
				}
				if err != nil {
					return 0, err
				}
				return prune(ctx, r)
			}
		}),
		broken("ids of pruned jobs stay taken", func(h *hooked) {
			made := map[string]bool{}
			enqueue := h.enqueue
			var mu sync.Mutex
			h.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
				res, err := enqueue(ctx, reqs)
				mu.Lock()
				defer mu.Unlock()
				for i := range res {
					res[i].Duplicate = res[i].Duplicate || res[i].Err == nil && made[res[i].ID]
					made[res[i].ID] = true
				}
				return res, err
			}
		}),
		broken("counts forget prunes", func(h *hooked) {
			var extra int64
			prune, counts := h.prune, h.counts
			h.prune = func(ctx context.Context, r core.PruneRequest) (int, error) {
				n, err := prune(ctx, r)
				extra += int64(n)
				return n, err
			}
			h.counts = func(ctx context.Context, q string) (map[core.State]int64, error) {
				c, err := counts(ctx, q)
				if err == nil {
					c[core.StateCompleted] += extra
				}
				return c, err
			}
		}),
		broken("a closed store prunes", func(h *hooked) {
			prune := h.prune
			h.prune = func(ctx context.Context, r core.PruneRequest) (int, error) {
				if n, err := prune(ctx, r); err == nil || ctx.Err() != nil || r.Validate() != nil {
					return n, err
				}
				return 0, nil
			}
		}),
	}
}

func of(k core.Keep, s core.State) core.KeepRule {
	switch s {
	case core.StateCompleted:
		return k.Completed
	case core.StateFailed:
		return k.Failed
	default:
		return k.Cancelled
	}
}
