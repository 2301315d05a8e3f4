package filestore

import (
	"maps"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// state is everything that the file holds.
type state struct {
	header
	jobs map[string]*job
}

// header is the file's first line. A line for each job follows.
type header struct {
	Format int
	Seq    int64 // the last number drawn, for insertions and for places
	Count  int   // of jobs, for decode to check
}

// job is a record and what a worker must not see of it.
type job struct {
	core.Record
	Place   int64     // order within a queue and priority (Q2)
	Token   string    // of the lease; "" unless active (Q5)
	Worker  string    // who holds it
	Until   time.Time // end of the lease
	Suspect time.Time // when a sweep first saw it ended (Q7); zero: none has
	Ledger  []entry

	line []byte // the job's line in the file; nil: it changed since
}

// entry is a line of the ledger (Q9) and, for a repeated ack, what was asked and answered (Q5). Entries that no ack
// made have no Token.
type entry struct {
	core.Attempt
	Token string
	Asked core.Outcome
	State core.State
}

func newState() *state { return &state{jobs: map[string]*job{}} }

func (st *state) next() int64 {
	st.Seq++
	return st.Seq
}

// list returns the jobs that match, in the order of compare.
func (st *state) list(match func(*job) bool, compare func(a, b *job) int) []*job {
	var out []*job
	for _, j := range st.jobs {
		if match(j) {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, compare)
	return out
}

func (j *job) heldUnder(token string) bool {
	return j.State == core.StateActive && j.Token == token
}

// touch says that the job changed.
func (j *job) touch() { j.line = nil }

// letGo ends the lease after the job's state was set. Whatever leaves active loses its token (Q6).
func (j *job) letGo(now time.Time) {
	j.touch()
	j.Token, j.Worker, j.Until, j.Suspect = "", "", time.Time{}, time.Time{}
	if j.State.Terminal() {
		j.FinishedAt = now
	} else {
		j.ClaimedAt = time.Time{}
	}
}

// log writes a ledger entry about the run that ends now; call it before letGo (Q9).
func (j *job) log(e entry, now time.Time) {
	j.Runs++
	e.Number, e.StartedAt, e.FinishedAt, e.Worker = j.Runs, j.ClaimedAt, now, j.Worker
	e.State = j.State
	j.Ledger = append(j.Ledger, e)
	if n := len(j.Ledger); n > core.LedgerLimit {
		j.Ledger = slices.Delete(j.Ledger, 0, n-core.LedgerLimit)
	}
}

// copyRecord is for handing out: the receiver may do with it what it likes (Q13). The clones keep nil and empty
// apart, which are two things for a payload and for a result.
func copyRecord(r core.Record) core.Record {
	r.Payload, r.Result = slices.Clone(r.Payload), slices.Clone(r.Result)
	r.Metadata = maps.Clone(r.Metadata)
	r.Trace, r.Failure = copyOf(r.Trace), copyOf(r.Failure)
	return r
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
