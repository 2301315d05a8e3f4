package litesql

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// What a record is made of: the body from j and l, and how the job stands, from w or from w and f. Every column
// read costs as much as a row's lookup, so a claim reads what it needs and no more.
const (
	bodyColumns = `j.seq, j.id, l.name, l.queue, j.payload, j.metadata, j.priority, j.max_attempts, j.max_stalls,
		j.timeout, j.backoff_kind, j.backoff_base, j.backoff_max, j.backoff_factor, j.backoff_exact,
		j.keep, j.trace, j.enqueued_at, j.dedupe_key`
	claimColumns = `w.run_at, w.attempts, w.stalls, w.snoozes, w.runs, w.fence`
	anyColumns   = `coalesce(w.run_at, f.run_at), coalesce(w.attempts, f.attempts), coalesce(w.stalls, f.stalls),
		coalesce(w.snoozes, f.snoozes), coalesce(w.runs, f.runs), coalesce(w.fence, f.fence),
		coalesce(w.state, f.state), coalesce(w.cancel, 0), coalesce(w.claimed_at, f.started_at),
		f.finished_at, f.result, f.failure`
	anyFrom = `stint_jobs j cross join stint_lanes l on l.lane = j.lane
		left join stint_work w on w.seq = j.seq left join stint_finished f on f.seq = j.seq`
)

// claimRow is where scans of bodyColumns and claimColumns put a row: one for all rows of a query, since a claim
// reads hundreds.
type claimRow struct {
	rec                                    core.Record
	id, metadata, keep, trace, key         *string
	payload                                blob
	timeout, base, most, enqueuedAt, runAt int64
	exact                                  bool
	dest                                   []any
}

// newClaimRow also takes places for what a statement appends to the columns.
func newClaimRow(more ...any) *claimRow {
	c := new(claimRow)
	rec := &c.rec
	c.dest = append([]any{
		&rec.Ref, &c.id, &rec.Name, &rec.Queue, &c.payload, &c.metadata, &rec.Priority, &rec.MaxAttempts, &rec.MaxStalls,
		&c.timeout, &rec.Backoff.Kind, &c.base, &c.most, &rec.Backoff.Factor, &c.exact, &c.keep, &c.trace, &c.enqueuedAt, &c.key,
		&c.runAt, &rec.Attempts, &rec.Stalls, &rec.Snoozes, &rec.Runs, &rec.Fence}, more...)
	return c
}

// scan reads one row. The record shares nothing with those before it.
func (c *claimRow) scan(r sqlexec.Rows) (core.Record, error) {
	c.rec = core.Record{}
	if err := r.Scan(c.dest...); err != nil {
		return core.Record{}, err
	}
	rec := &c.rec
	rec.ID = ownID(rec.Ref)
	if c.id != nil {
		rec.ID = *c.id
	}
	rec.Payload, rec.DedupeKey = c.payload, value(c.key)
	rec.Timeout = time.Duration(c.timeout)
	rec.Backoff.Base, rec.Backoff.Max, rec.Backoff.NoJitter = time.Duration(c.base), time.Duration(c.most), c.exact
	rec.EnqueuedAt, rec.RunAt = moment(&c.enqueuedAt), moment(&c.runAt)
	err := errors.Join(fromDoc(c.metadata, &rec.Metadata), fromDoc(c.keep, &rec.Keep), fromDoc(c.trace, &rec.Trace))
	return c.rec, err
}

// scanRecord reads bodyColumns and anyColumns. Delayed jobs that are due read as waiting (Q27).
func scanRecord(r sqlexec.Rows, now int64) (core.Record, error) {
	var state int64
	var cancel bool
	var claimedAt, finishedAt *int64
	var result blob
	var failure *string
	rec, err := newClaimRow(&state, &cancel, &claimedAt, &finishedAt, &result, &failure).scan(r)
	if err != nil {
		return rec, err
	}
	if state == delayed && rec.RunAt.UnixMicro() <= now {
		state = waiting
	}
	rec.State, rec.CancelRequested, rec.Result = stateName(state), cancel, result
	rec.ClaimedAt, rec.FinishedAt = moment(claimedAt), moment(finishedAt)
	return rec, fromDoc(failure, &rec.Failure)
}

// blob keeps what a []byte loses: database/sql gives nil for no value and for an empty one alike (Q9).
type blob []byte

// Scan implements sql.Scanner.
func (b *blob) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*b = nil
	case []byte:
		*b = append(blob{}, v...)
	case string:
		*b = blob(v)
	default:
		return fmt.Errorf("stint: %T where bytes were stored", src)
	}
	return nil
}

// bytes is b as an argument: nil stays null, empty stays empty.
func bytes(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// doc is v as JSON text for a column that is null for the zero value.
func doc(v any, zero bool) (any, error) {
	if zero {
		return nil, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return string(b), nil
}

func failureDoc(f *core.Failure) (any, error) { return doc(f, f == nil) }

func fromDoc(text *string, into any) error {
	if text == nil {
		return nil
	}
	return json.Unmarshal([]byte(*text), into)
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
