package core

import "sync"

// inflight holds every lease of a worker from its claim until its ack is settled. It is keyed by claim, not by
// job: a worker may hold an old and a new lease of one job at once (Q21).
type inflight struct {
	mu   sync.Mutex
	runs map[claimKey]*run
}

type claimKey struct{ id, token string }

func (l Lease) key() claimKey { return claimKey{l.ID, l.Token} }

func newInflight() *inflight { return &inflight{runs: make(map[claimKey]*run)} }

func (f *inflight) add(rs []run) {
	f.mu.Lock()
	for i := range rs {
		f.runs[rs[i].lease.key()] = &rs[i]
	}
	f.mu.Unlock()
}

// remove ends the worker's interest in a lease, and the run's context with it.
func (f *inflight) remove(r *run) {
	f.mu.Lock()
	delete(f.runs, r.lease.key())
	f.mu.Unlock()
	r.cancel(nil)
}

func (f *inflight) get(l Lease) *run {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[l.key()]
}

func (f *inflight) all() []*run {
	f.mu.Lock()
	defer f.mu.Unlock()
	rs := make([]*run, 0, len(f.runs))
	for _, r := range f.runs {
		rs = append(rs, r)
	}
	return rs
}

// empty removes all and returns their leases.
func (f *inflight) empty() []Lease {
	var ls []Lease
	for _, r := range f.all() {
		ls = append(ls, r.lease)
		f.remove(r)
	}
	return ls
}
