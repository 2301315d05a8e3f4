package conformance

import (
	"cmp"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/stintmq/stint/core"
)

// prune is the model's Prune without a limit. It has no method of that name: the model is no Retainer, so that a store
// made of it may lack that.
func (m *modelStore) prune(req core.PruneRequest) int {
	now := m.lock()
	defer m.mu.Unlock()
	type group struct {
		name  string
		state core.State
	}
	groups := map[group][]*modelJob{}
	for _, j := range m.jobs {
		if j.State.Terminal() {
			g := group{j.Name, j.State}
			groups[g] = append(groups[g], j)
		}
	}
	gone := map[*modelJob]bool{}
	for g, jobs := range groups {
		slices.SortFunc(jobs, func(a, b *modelJob) int { // newest first
			return cmp.Or(b.FinishedAt.Compare(a.FinishedAt), cmp.Compare(b.serial, a.serial))
		})
		rule := req.Rule(g.state, jobs[0].Keep)
		for i, j := range jobs {
			old := rule.Age > 0 && !j.FinishedAt.After(now.Add(-rule.Age))
			if rule.None || rule.Count > 0 && i >= rule.Count || old {
				gone[j] = true
			}
		}
	}
	m.jobs = slices.DeleteFunc(m.jobs, func(j *modelJob) bool { return gone[j] })
	return len(gone)
}

var modelKeeps = []core.Keep{
	{}, {},
	everyState(core.KeepRule{None: true}),
	everyState(core.KeepRule{Count: 1}),
	{Completed: core.KeepRule{Count: 2, Age: time.Minute}, Failed: core.KeepRule{Age: time.Second}},
	{Completed: core.KeepRule{Forever: true}, Cancelled: core.KeepRule{Count: 2}},
}

func (r *modelRunner) prune(t *rapid.T) {
	req := core.PruneRequest{
		Default: rapid.SampledFrom(modelKeeps).Draw(t, "default"), Ceiling: rapid.SampledFrom(modelKeeps).Draw(t, "ceiling"),
	}
	retainer, _ := core.As[core.Retainer](r.real)
	got, err := retainer.Prune(r.k.ctx, req)
	r.sameErr("Prune", err, nil)
	r.same("jobs deleted by Prune", got, r.model.prune(req))
}
