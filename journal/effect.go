package journal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
)

// EffectPrefix is in front of an effect's name in the name of its jobs.
const EffectPrefix = "journal/"

// EffectQueue is the queue of effects that name no other.
const EffectQueue = "journal"

// EffectOptions of On. Zero fields have defaults.
type EffectOptions struct {
	Queue       string        // "": EffectQueue
	Priority    int           // -9..9
	MaxAttempts int           // 0: 8 (J5)
	MaxStalls   int           // runs that may be lost with their workers; 0: the worker's limit; -1: none
	Backoff     core.Backoff  // zero: 1 s doubling to 5 min, +-25 %
	Timeout     time.Duration // per run; 0: none
	Keep        core.Keep
	// Ordered runs the effect for the events of one entity in their order: a run waits while an earlier one is pending,
	// its retries included. One that failed for good, or was cancelled, is not waited for. A run that waits looks again in
	// 20 ms to 5 s. Up to 100 events without a job may lie between. The store must be a core.Inspector.
	Ordered bool
}

// Call is what an effect may know about its run.
type Call[Tx any] struct {
	JobID   string       // the same over all attempts: an idempotency key for other systems
	Attempt int          // 1 for the first
	Journal *Journal[Tx] // what is recorded through it is caused by the event (J3)
}

// effect is a declared reaction to one type of event.
type effect[Tx any] struct {
	name string
	def  *typeDef
	opts EffectOptions
	job  *core.Task[effectArgs]
	run  func(ctx context.Context, j *Journal[Tx], row Row, call Call[Tx]) error
}

// effectArgs is the payload of an effect's job.
type effectArgs struct {
	Seq int64 `json:"seq"`
}

// On declares an effect: for each event of the type that is recorded from now on, a job runs it, at least once (J5).
// Its context ends as any handler's does; core.Unrecoverable, core.RetryAfter and core.Snooze mean what they mean there.
// The name is unique in the journal and must stay: jobs that wait have it.
func On[P, Tx any](j *Journal[Tx], name string, r Ref[P], run func(context.Context, Event[P], Call[Tx]) error, opts ...EffectOptions) error {
	if err := core.ValidateName("Effect", EffectPrefix+name); err != nil {
		return err
	}
	if r.def == nil || run == nil || name == "" {
		return &core.InvalidError{Field: "Effect", Reason: "needs a name, a declared type and a function"}
	}
	e := &effect[Tx]{name: name, def: r.def}
	for _, o := range opts {
		e.opts = o
	}
	if e.opts.Queue == "" {
		e.opts.Queue = EffectQueue
	}
	if e.opts.MaxAttempts == 0 {
		e.opts.MaxAttempts = 8
	}
	if e.opts.Backoff == (core.Backoff{}) {
		e.opts.Backoff = core.Exponential(time.Second, 2, 5*time.Minute)
	}
	if err := e.request(1).Validate(core.Limits{}); err != nil {
		return err
	}
	e.job = core.NewTask(EffectPrefix+name, core.JobOptions[effectArgs]{Queue: e.opts.Queue})
	e.run = func(ctx context.Context, j *Journal[Tx], row Row, call Call[Tx]) error {
		ev, err := r.decode(row)
		if err != nil {
			return err
		}
		return run(ctx, ev, call)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.effects[name] != nil {
		return &core.InvalidError{Field: "Effect", Reason: fmt.Sprintf("%q is declared twice", name)}
	}
	j.effects[name] = e
	return nil
}

func (e *effect[Tx]) request(seq int64) core.EnqueueRequest {
	return core.EnqueueRequest{
		Name: EffectPrefix + e.name, Queue: e.opts.Queue, Key: strconv.FormatInt(seq, 10),
		Payload:  fmt.Appendf(nil, `{"seq":%d}`, seq),
		Priority: e.opts.Priority, MaxAttempts: e.opts.MaxAttempts, MaxStalls: e.opts.MaxStalls, Backoff: e.opts.Backoff,
		Timeout: e.opts.Timeout, Keep: e.opts.Keep,
	}
}

// JobID is the id of the job that runs an effect for an event.
func JobID(effect string, seq int64) string {
	return EffectPrefix + effect + ":" + strconv.FormatInt(seq, 10)
}

// enqueue makes the effect jobs of events, in the transaction that records them.
func (j *Journal[Tx]) enqueue(ctx context.Context, tx Tx, rows []Row) error {
	var reqs []core.EnqueueRequest
	j.mu.RLock()
	for _, name := range names(j.effects) {
		e := j.effects[name]
		for i := range rows {
			if e.def.matches(&rows[i].Header) {
				reqs = append(reqs, e.request(rows[i].Seq))
			}
		}
	}
	j.mu.RUnlock()
	if len(reqs) == 0 {
		return nil
	}
	res, err := j.jobs.WithTx(tx).Enqueue(ctx, reqs)
	if _, err := enqueued(res, err); err != nil {
		return err
	}
	for i := range res {
		if res[i].Duplicate { // of a seq that was drawn just now: Backfill can't have been here
			return &JobExistsError{JobID: res[i].ID}
		}
	}
	return nil
}

// enqueued counts the new jobs, and makes an item's error the call's.
func enqueued(res []core.EnqueueResult, err error) (int, error) {
	n := 0
	for _, r := range res {
		switch {
		case err == nil && r.Err != nil:
			err = r.Err
		case !r.Duplicate:
			n++
		}
	}
	if err != nil {
		return 0, fmt.Errorf("journal: enqueue effects: %w", err)
	}
	return n, nil
}

// handle registers an effect's handler.
func (j *Journal[Tx]) handle(w *core.Worker, e *effect[Tx]) {
	e.job.Handle(w, func(ctx context.Context, args effectArgs) error { return j.perform(ctx, e, args.Seq) })
}

// perform is one run of an effect.
func (j *Journal[Tx]) perform(ctx context.Context, e *effect[Tx], seq int64) error {
	rows, err := j.store.ReadLog(ctx, Filter{After: seq - 1, Before: seq + 1, Limit: 1})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("journal: event %d is not there", seq)
	}
	run, _ := core.Current(ctx)
	if e.opts.Ordered {
		waits, err := j.waits(ctx, e, rows[0])
		switch {
		case err != nil:
			return err
		case waits:
			j.waited.Add(1)
			if j.draining.Load() > 0 {
				return core.Snooze(minTurn)
			}
			return core.Snooze(min(max(time.Since(run.EnqueuedAt)/8, minTurn), 5*time.Second))
		}
	}
	return e.run(ctx, j, rows[0], Call[Tx]{JobID: run.ID, Attempt: run.Attempt, Journal: j.Caused(rows[0].Header)})
}

// minTurn is how long an ordered effect waits at least before it looks whether it is its turn.
const minTurn = 20 * time.Millisecond

// maxUnknown bounds how many events without a job an ordered effect looks past: where finished jobs are pruned they may be
// an entity's whole history.
const maxUnknown = 100

// waits reports whether an earlier run for the same entity is pending. Runs that failed, were cancelled or removed, and
// events that have none, may lie between; a run that completed waited for those before it.
func (j *Journal[Tx]) waits(ctx context.Context, e *effect[Tx], row Row) (bool, error) {
	inspector, ok := core.As[core.Inspector](j.jobs)
	if !ok {
		return false, core.Unrecoverable(&core.UnsupportedError{Op: "an ordered effect", Reason: "the store is no Inspector"})
	}
	f := Filter{Kind: row.Key.Kind, EntityID: row.Key.ID, Type: row.Type, Before: row.Seq, Newest: true, Limit: 1}
	for unknown := 0; ; f.Limit = min(f.Limit*8, maxUnknown) {
		before, err := j.store.ReadLog(ctx, f)
		if err != nil || len(before) == 0 {
			return false, err
		}
		for _, r := range before {
			rec, err := inspector.Get(ctx, JobID(e.name, r.Seq))
			switch {
			case errors.Is(err, core.ErrNotFound):
				if unknown++; unknown == maxUnknown {
					return false, nil
				}
			case err != nil:
				return false, err
			case rec.State.Pending():
				return true, nil
			case rec.State == core.StateCompleted:
				return false, nil
			}
		}
		f.Before = before[len(before)-1].Seq
	}
}

// Backfill makes the jobs of an effect for events that were recorded before it was declared: those with from <= seq <
// to; 0: from the beginning, to the end. It returns how many it made. Events that have a job are left alone, so it may be
// repeated, and overlap with what Record does, as long as the records of finished jobs are kept: name a range that ends
// where the effect was deployed if it may be older than that. Where an open transaction may still fill a hole in the range
// it waits for that, until ctx ends: what was made by then is there.
func (j *Journal[Tx]) Backfill(ctx context.Context, name string, from, to int64) (int, error) {
	j.mu.RLock()
	e := j.effects[name]
	j.mu.RUnlock()
	if e == nil {
		return 0, fmt.Errorf("%w: %q", ErrUnknownEffect, name)
	}
	head, err := j.store.Head(ctx)
	if err != nil {
		return 0, err
	}
	last := head.Seq // the last event of the range
	if to != 0 {
		last = min(to-1, last)
	}
	made, after := 0, max(from-1, 0)
	for wait := time.Duration(0); after < last; {
		var rows []Row
		n := 0
		err := j.store.InTx(ctx, func(ctx context.Context, tx Tx) (err error) {
			if rows, err = j.store.ReadSettled(ctx, tx, after, pageSize); err != nil {
				return err
			}
			var reqs []core.EnqueueRequest
			for i := range rows {
				if e.def.matches(&rows[i].Header) && (to == 0 || rows[i].Seq < to) {
					reqs = append(reqs, e.request(rows[i].Seq))
				}
			}
			if len(reqs) > 0 {
				n, err = enqueued(j.jobs.WithTx(tx).Enqueue(ctx, reqs))
			}
			return err
		})
		if err != nil {
			return made, err
		}
		made += n
		if len(rows) > 0 {
			after, wait = rows[len(rows)-1].Seq, 0
			continue
		}
		if head, err = j.store.Head(ctx); err != nil {
			return made, err
		}
		if last = min(last, head.Seq); after >= last { // somebody deleted the end
			break
		}
		wait = min(wait*3/2+time.Millisecond, 200*time.Millisecond)
		if rest(ctx, wait); ctx.Err() != nil {
			return made, fmt.Errorf("journal: events beyond %d wait for an open transaction: %w", after, ctx.Err())
		}
	}
	return made, nil
}

// StrandedEffect counts the pending jobs of an effect that this journal does not have (J6).
type StrandedEffect struct {
	Effect string
	Count  int64
}

// Stranded counts jobs of effects that this journal does not declare, by name. No worker of this journal claims them:
// in a rolling deployment those of another release may.
func (j *Journal[Tx]) Stranded(ctx context.Context) ([]StrandedEffect, error) {
	inspector, ok := core.As[core.Inspector](j.jobs)
	if !ok {
		return nil, &core.UnsupportedError{Op: "Stranded", Reason: "the store is no Inspector"}
	}
	j.mu.RLock()
	known := names(j.effects)
	j.mu.RUnlock()
	for i := range known {
		known[i] = EffectPrefix + known[i]
	}
	all, err := inspector.Stranded(ctx, known)
	if err != nil {
		return nil, err
	}
	count := make(map[string]int64)
	for _, s := range all {
		if effect, ok := strings.CutPrefix(s.Name, EffectPrefix); ok {
			count[effect] += s.Count
		}
	}
	out := make([]StrandedEffect, 0, len(count))
	for _, effect := range names(count) {
		out = append(out, StrandedEffect{effect, count[effect]})
	}
	return out, nil
}
