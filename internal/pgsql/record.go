package pgsql

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/sqlexec"
)

// What a record is made of: the body from j, and how the job stands, from w.
const (
	bodyColumns = `j.seq, j.id, j.name, j.queue, j.payload, j.metadata::text, j.priority, j.max_attempts, j.max_stalls,
		j.timeout, j.backoff, j.keep::text, j.trace::text, j.enqueued_at, j.dedupe_key`
	noBody       = `0::bigint, null, '', '', null::bytea, null, 0, 0, 0, null::bigint, null, null, null, now(), null`
	standColumns = `w.run_at, w.attempts, w.stalls, w.snoozes, w.runs, w.fence`
)

// body is what is read of a job before it is a Record. One serves many rows: jobs of a kind have the same options.
type body struct {
	id, metadata, backoff, keep, trace, key *string
	timeout                                 *int64
	enqueuedAt, runAt                       time.Time

	backoffText string
	backoffOf   core.Backoff
}

// columns are the destinations for bodyColumns and standColumns.
func (b *body) columns(rec *core.Record) []any {
	return []any{
		&rec.Ref, &b.id, &rec.Name, &rec.Queue, &rec.Payload, &b.metadata, &rec.Priority, &rec.MaxAttempts, &rec.MaxStalls,
		&b.timeout, &b.backoff, &b.keep, &b.trace, &b.enqueuedAt, &b.key,
		&b.runAt, &rec.Attempts, &rec.Stalls, &rec.Snoozes, &rec.Runs, &rec.Fence,
	}
}

// finish turns what columns read into rec. What it cannot read, since a later release wrote it in another way, it
// leaves out: one such job must not stand in the way of all that were read with it.
func (b *body) finish(rec *core.Record) {
	rec.ID = ownID(rec.Ref)
	if b.id != nil {
		rec.ID = *b.id
	}
	rec.DedupeKey = value(b.key)
	if b.timeout != nil {
		rec.Timeout = time.Duration(*b.timeout)
	}
	rec.EnqueuedAt, rec.RunAt = b.enqueuedAt.UTC(), b.runAt.UTC()
	if b.backoff != nil {
		if *b.backoff != b.backoffText {
			b.backoffOf, _ = parseBackoff(*b.backoff) // else the default one
			b.backoffText = *b.backoff
		}
		rec.Backoff = b.backoffOf
	}
	rec.Metadata = fromDoc[map[string]string](b.metadata)
	rec.Keep = fromDoc[core.Keep](b.keep)
	rec.Trace = fromDoc[*core.Trace](b.trace)
}

// scanRecord reads bodyColumns, standColumns and the rest of a job in any state.
func (b *body) scanRecord(r sqlexec.Rows) (core.Record, error) {
	var (
		rec                   core.Record
		state                 int64
		claimedAt, finishedAt *time.Time
		failure               *string
	)
	err := r.Scan(append(b.columns(&rec), &state, &rec.CancelRequested, &claimedAt, &finishedAt, &rec.Result, &failure)...)
	if err != nil {
		return rec, err
	}
	rec.State, rec.ClaimedAt, rec.FinishedAt = stateName(state), utc(claimedAt), utc(finishedAt)
	b.finish(&rec)
	rec.Failure = failureOf(failure)
	return rec, nil
}

// backoffText is a Backoff as stored: kind, base, limit, factor, and "exact" where there is no jitter; "" for the
// zero value.
func backoffText(b core.Backoff) string {
	if b == (core.Backoff{}) {
		return ""
	}
	text := make([]byte, 0, 64)
	text = append(text, b.Kind...)
	text = strconv.AppendInt(append(text, ' '), int64(b.Base), 10)
	text = strconv.AppendInt(append(text, ' '), int64(b.Max), 10)
	text = strconv.AppendFloat(append(text, ' '), b.Factor, 'g', -1, 64)
	if b.NoJitter {
		text = append(text, " exact"...)
	}
	return string(text)
}

func parseBackoff(text string) (core.Backoff, error) {
	f := strings.Split(text, " ")
	if len(f) != 4 && len(f) != 5 {
		return core.Backoff{}, fmt.Errorf("stint: %q is no backoff", text)
	}
	base, err1 := strconv.ParseInt(f[1], 10, 64)
	most, err2 := strconv.ParseInt(f[2], 10, 64)
	factor, err3 := strconv.ParseFloat(f[3], 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return core.Backoff{}, err
	}
	switch f[0] {
	case "", core.BackoffExponential, core.BackoffFixed:
		return core.Backoff{Kind: f[0], Base: time.Duration(base), Max: time.Duration(most), Factor: factor, NoJitter: len(f) == 5}, nil
	}
	return core.Backoff{}, fmt.Errorf("stint: %q is no kind of backoff", f[0])
}

// doc is v as JSON text, "" for the zero value, which is stored as null.
func doc(v any, zero bool) (string, error) {
	if zero {
		return "", nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// fromDoc reads what doc wrote; the zero value where that is something else.
func fromDoc[T any](text *string) (v T) {
	if text != nil && json.Unmarshal([]byte(*text), &v) != nil {
		var zero T
		return zero
	}
	return v
}

// failureOf reads a failure, or says in what it cannot be read.
func failureOf(text *string) *core.Failure {
	f := fromDoc[*core.Failure](text)
	if f == nil && text != nil {
		f = &core.Failure{Message: *text}
	}
	return f
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
