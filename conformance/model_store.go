package conformance

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
)

// modelStore is the contract written down as plainly as possible: one list of jobs and a scan for every
// question. The state machine holds the store under test against it. It has no wake channel, and keeps
// whatever is due in state waiting, so that there is no moment in between.
type modelStore struct {
	clock core.Clock

	mu     sync.Mutex
	jobs   []*modelJob // in the order of insertion
	places int64
	serial int64
	paused map[string]bool
	keys   map[modelKey]*modelEntry
	// meets and retakes are meet and retake, unless they are broken.
	meets   func(core.EnqueueRequest, time.Time) (id string, taken bool)
	retakes func(*modelJob, time.Time) error
	// keyless: it refuses dedupe, as a store without it does.
	keyless bool
}

type modelJob struct {
	core.Record
	serial, place int64
	token, worker string
	until         time.Time // the lease's end
	suspect       time.Time // when a sweep first saw it ended; zero: not yet
	ledger        []modelPast
}

// modelPast is a ledger entry with what a repeated ack must find.
type modelPast struct {
	core.Attempt
	token    string
	asked    core.Outcome
	answered core.State
}

func newModel(clock core.Clock) *modelStore {
	m := &modelStore{clock: clock, paused: map[string]bool{}, keys: map[modelKey]*modelEntry{}}
	m.meets, m.retakes = m.meet, m.retake
	return m
}

// enter begins a call: it locks the model unless ctx has ended.
func (m *modelStore) enter(ctx context.Context) (now time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	return m.lock(), nil
}

// lock locks the model and makes waiting what has come due, earliest first.
func (m *modelStore) lock() (now time.Time) {
	m.mu.Lock()
	now = core.Micros(m.clock.Now())
	var due []*modelJob
	for _, j := range m.jobs {
		if j.State == core.StateDelayed && !j.RunAt.After(now) {
			due = append(due, j)
		}
	}
	slices.SortStableFunc(due, func(a, b *modelJob) int { return a.RunAt.Compare(b.RunAt) })
	for _, j := range due {
		m.wait(j)
	}
	return now
}

// wait makes a job waiting at a new place.
func (m *modelStore) wait(j *modelJob) {
	m.places++
	j.State, j.place = core.StateWaiting, m.places
}

// pend makes a job pending at a time, which may be now.
func (m *modelStore) pend(j *modelJob, at, now time.Time) {
	j.token, j.ClaimedAt, j.RunAt = "", time.Time{}, at
	if at.After(now) {
		j.State = core.StateDelayed
	} else {
		m.wait(j)
	}
}

// end makes a job finished.
func (m *modelStore) end(j *modelJob, state core.State, now time.Time) {
	j.token, j.State, j.FinishedAt, j.CancelRequested = "", state, now, false
}

// record writes a ledger entry.
func (j *modelJob) record(a core.Attempt, token string, asked core.Outcome, answered core.State) {
	j.Runs++
	a.Number = j.Runs
	j.ledger = append(j.ledger, modelPast{a, token, asked, answered})
	j.ledger = j.ledger[max(0, len(j.ledger)-core.LedgerLimit):]
}

func (m *modelStore) find(id string) *modelJob {
	for _, j := range m.jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}

func (m *modelStore) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	now, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	res := make([]core.EnqueueResult, len(reqs))
	for i, r := range reqs {
		res[i] = m.enqueue(r, now)
	}
	return res, nil
}

func (m *modelStore) enqueue(r core.EnqueueRequest, now time.Time) core.EnqueueResult {
	if err := r.Validate(core.Limits{}); err != nil {
		return core.EnqueueResult{Err: err}
	}
	if r.Dedupe != nil && m.keyless {
		return core.EnqueueResult{Err: &core.UnsupportedError{Op: "dedupe"}}
	}
	id := r.ResolvedID()
	if j := m.find(id); j != nil && j.Name != r.Name {
		return core.EnqueueResult{Err: &core.ConflictError{Name: j.Name, ID: id}}
	} else if j != nil {
		return core.EnqueueResult{ID: id, Duplicate: true}
	}
	if id, taken := m.meets(r, now); taken {
		return core.EnqueueResult{ID: id, Duplicate: true}
	}
	m.serial++
	if id == "" {
		id = fmt.Sprintf("#%d", m.serial)
	}
	j := &modelJob{serial: m.serial, Record: core.Record{ID: id, Name: r.Name, Queue: r.Queue, EnqueuedAt: now}}
	m.fill(j, r, now)
	m.jobs = append(m.jobs, j)
	if r.Dedupe != nil {
		j.DedupeKey = r.Dedupe.Key
		m.keys[modelKey{r.Name, r.Dedupe.Key}] = &modelEntry{job: j, end: window(r, now)}
	}
	return core.EnqueueResult{ID: id}
}

// copy is the record as the caller's own.
func (j *modelJob) copy() core.Record {
	r := j.Record
	r.Payload, r.Result, r.Metadata = bytes.Clone(r.Payload), bytes.Clone(r.Result), maps.Clone(r.Metadata)
	r.Failure, r.Trace = own(r.Failure), own(r.Trace)
	return r
}

// own copies what a pointer points to.
func own[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func (m *modelStore) Claim(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
	if err := req.Validate(); err != nil {
		return core.Claimed{}, err
	}
	now, err := m.enter(ctx)
	if err != nil {
		return core.Claimed{}, err
	}
	defer m.mu.Unlock()
	var got core.Claimed
	claims, size := false, 0
	for _, w := range req.Wants {
		claims = claims || w.Limit > 0
		taken, stalled := 0, false
		for _, j := range m.runnable(w) {
			full := len(got.Jobs) > 0 && size+len(j.Payload) > core.MaxClaimBytes
			if full || taken == w.Limit {
				break
			}
			if j.Stalls > 0 && stalled {
				continue
			}
			stalled = stalled || j.Stalls > 0
			taken++
			size += len(j.Payload)
			j.State, j.ClaimedAt, j.Fence = core.StateActive, now, j.Fence+1
			j.token, j.worker, j.until, j.suspect = req.Token, req.Worker, now.Add(req.Lease), time.Time{}
			got.Jobs = append(got.Jobs, j.copy())
		}
	}
	if !claims {
		for _, j := range m.jobs {
			if j.State == core.StateActive && j.token == req.Token {
				got.Jobs = append(got.Jobs, j.copy())
			}
		}
	}
	got.NextIn = m.nextIn(req.Wants, now)
	return got, nil
}

// runnable lists what a want could get, in order.
func (m *modelStore) runnable(w core.Want) []*modelJob {
	var js []*modelJob
	for _, j := range m.jobs {
		if j.State == core.StateWaiting && j.Queue == w.Queue && slices.Contains(w.Names, j.Name) && !m.paused[j.Queue] {
			js = append(js, j)
		}
	}
	slices.SortFunc(js, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.place, b.place))
	})
	return js
}

func (m *modelStore) nextIn(wants []core.Want, now time.Time) time.Duration {
	next := time.Duration(0)
	for _, w := range wants {
		if w.Limit == 0 || m.paused[w.Queue] {
			continue
		}
		if len(m.runnable(w)) > 0 {
			return 1
		}
		for _, j := range m.jobs {
			if in := j.RunAt.Sub(now); j.State == core.StateDelayed && j.Queue == w.Queue && slices.Contains(w.Names, j.Name) && (next == 0 || in < next) {
				next = in
			}
		}
	}
	return next
}

func (m *modelStore) Extend(ctx context.Context, leases []core.Lease, d time.Duration) (core.Extended, error) {
	if d < 0 {
		return core.Extended{}, &core.InvalidError{Field: "Extend", Reason: "must not be negative"}
	}
	now, err := m.enter(ctx)
	if err != nil {
		return core.Extended{}, err
	}
	defer m.mu.Unlock()
	var x core.Extended
	for _, l := range leases {
		j := m.find(l.ID)
		if j == nil || j.State != core.StateActive || j.token != l.Token {
			x.Lost = append(x.Lost, l)
			continue
		}
		j.suspect = time.Time{}
		if end := now.Add(d); end.After(j.until) {
			j.until = end
		}
		if j.CancelRequested {
			x.CancelRequested = append(x.CancelRequested, l)
		}
	}
	return x, nil
}

func (m *modelStore) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	now, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	res := make([]core.AckResult, len(acks))
	for i, a := range acks {
		state, err := m.ack(a, now)
		res[i] = core.AckResult{State: state, Err: err}
	}
	return res, nil
}

func (m *modelStore) ack(a core.Ack, now time.Time) (core.State, error) {
	if err := a.Validate(core.Limits{}); err != nil {
		return "", err
	}
	j := m.find(a.Lease.ID)
	if j == nil {
		return "", core.ErrNotFound
	}
	if j.State != core.StateActive || j.token != a.Lease.Token {
		for _, e := range j.ledger {
			if e.token != "" && e.token == a.Lease.Token && e.asked == a.Outcome {
				return e.answered, nil
			}
		}
		return "", core.ErrLeaseLost
	}
	entry := core.Attempt{Outcome: a.Outcome, StartedAt: j.ClaimedAt, FinishedAt: now, Worker: j.worker}
	token := j.token
	wins := a.Outcome == core.OutcomeComplete || a.Outcome == core.OutcomeFail
	if j.CancelRequested && !wins {
		entry.Outcome = core.OutcomeCancel
	}
	switch entry.Outcome {
	case core.OutcomeComplete:
		j.Attempts++
		j.Result, entry.Result = bytes.Clone(a.Result), bytes.Clone(a.Result)
		m.end(j, core.StateCompleted, now)
	case core.OutcomeFail:
		j.Attempts++
		j.Failure, entry.Failure = a.Failure, a.Failure
		m.end(j, core.StateFailed, now)
	case core.OutcomeCancel:
		m.end(j, core.StateCancelled, now)
	case core.OutcomeRetry:
		j.Attempts++
		entry.Failure = a.Failure
		m.pend(j, now.Add(a.Delay), now)
	case core.OutcomeSnooze:
		j.Snoozes++
		m.pend(j, now.Add(a.Delay), now)
		return j.State, nil
	case core.OutcomeRelease:
		j.token, j.ClaimedAt, j.State = "", time.Time{}, core.StateWaiting
		return j.State, nil
	}
	j.record(entry, token, a.Outcome, j.State)
	return j.State, nil
}

func (m *modelStore) RecoverStalled(ctx context.Context, req core.RecoverRequest) ([]core.Recovered, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	now, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	ended := slices.DeleteFunc(slices.Clone(m.jobs), func(j *modelJob) bool {
		return j.State != core.StateActive || j.until.After(now)
	})
	slices.SortStableFunc(ended, func(a, b *modelJob) int { return a.until.Compare(b.until) })
	var got []core.Recovered
	for _, j := range ended {
		if j.suspect.IsZero() {
			j.suspect = now
		}
		if j.suspect.Add(req.Confirm).After(now) || len(got) == cmp.Or(req.Limit, 1000) {
			continue
		}
		m.recover(j, req.MaxStalls, now)
		got = append(got, core.Recovered{ID: j.ID, Name: j.Name, Queue: j.Queue, State: j.State})
	}
	return got, nil
}

func (m *modelStore) recover(j *modelJob, limit int, now time.Time) {
	entry := core.Attempt{Outcome: core.OutcomeStalled, StartedAt: j.ClaimedAt, FinishedAt: now, Worker: j.worker}
	if j.MaxStalls != 0 {
		limit = j.MaxStalls
	}
	switch {
	case j.CancelRequested:
		entry.Outcome = core.OutcomeCancel
		m.end(j, core.StateCancelled, now)
	case j.Stalls+1 > max(limit, 0):
		j.Stalls++
		j.Failure = &core.Failure{Type: "stalled", Message: "too often"}
		entry.Failure = j.Failure
		m.end(j, core.StateFailed, now)
	default:
		j.Stalls++
		m.pend(j, core.Micros(now.Add(core.StallDelay(j.Stalls))), now)
	}
	j.record(entry, "", "", "")
}

// AwaitWake waits for its context: the model has no wake channel.
func (m *modelStore) AwaitWake(ctx context.Context, _ []string, _ core.WakeToken) (core.Wake, error) {
	<-ctx.Done()
	return core.Wake{}, ctx.Err()
}
