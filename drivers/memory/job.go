package memstore

import (
	"bytes"
	"maps"
	"time"

	"github.com/stintmq/stint/core"
)

// job is one record and what only the store knows about it. Its slices, maps and pointers are never changed once
// set, so that the record and the ledger may share them; everything that leaves the store is a copy (Q13).
type job struct {
	rec    core.Record // Ref is the insertion number
	lane   *lane
	place  int64 // order among waiting jobs of one priority (Q2)
	pos    int   // position in the one heap that holds the job, by State
	ledger []entry

	// While active:
	token     string
	worker    string
	until     int64 // end of the lease, µs
	suspect   bool  // a sweep saw the lease ended ...
	suspectAt int64 // ... first at this time, µs (Q7)
}

// entry is one entry of the ledger, and the memory of the ack that wrote it: the same ack again gets the same
// answer (Q5). Entries that no ack wrote have no asked outcome.
type entry struct {
	core.Attempt
	token string
	asked core.Outcome
	state core.State
}

// holds reports whether token is the job's current lease.
func (j *job) holds(token string) bool {
	return j.rec.State == core.StateActive && j.token == token
}

// write appends to the ledger, and fills in what every entry of this run has in common (Q9).
func (j *job) write(e entry, now time.Time) {
	j.rec.Runs++
	e.Number = j.rec.Runs
	e.StartedAt = j.rec.ClaimedAt
	e.FinishedAt = now
	e.Worker = j.worker
	e.token = j.token
	if len(j.ledger) == core.LedgerLimit {
		copy(j.ledger, j.ledger[1:])
		j.ledger[len(j.ledger)-1] = e
		return
	}
	j.ledger = append(j.ledger, e)
}

// answered finds what an earlier ack of this token was answered. An ack that asked something else was never given.
func (j *job) answered(token string, asked core.Outcome) (core.State, bool) {
	for i := len(j.ledger) - 1; i >= 0; i-- {
		if e := &j.ledger[i]; e.token == token {
			return e.state, e.asked == asked
		}
	}
	return "", false
}

// dropLease forgets the claim, as everything does that leaves active.
func (j *job) dropLease() {
	j.token, j.worker = "", ""
	j.suspect = false
}

// copyOut is the record as the caller may have it.
func (j *job) copyOut() core.Record {
	r := j.rec
	detach(&r)
	return r
}

// detach gives a record slices, maps and pointers of its own.
func detach(r *core.Record) {
	r.Payload = bytes.Clone(r.Payload)
	r.Metadata = maps.Clone(r.Metadata)
	r.Trace = clone(r.Trace)
	r.Result = bytes.Clone(r.Result)
	r.Failure = clone(r.Failure)
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
