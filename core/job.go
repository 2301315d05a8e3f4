package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// None is the result of a job that has none.
type None = struct{}

// Job is a kind of work: a unique name, a payload type and a result type, shared by producers and workers.
// Declare it once as a package variable. Its methods are safe for concurrent use.
type Job[P, R any] struct {
	name string
	opts JobOptions[P]
	none bool // R is None: no result is stored
}

// NewJob declares a kind of work. A bad name or option panics, as regexp.MustCompile does: names have 1 to 128
// bytes without control characters or colon (Q10).
func NewJob[P, R any](name string, opts ...JobOptions[P]) *Job[P, R] {
	if len(opts) > 1 {
		panic("stint: NewJob takes one JobOptions at most")
	}
	j := &Job[P, R]{name: name}
	if len(opts) == 1 {
		j.opts = opts[0]
	}
	if j.opts.Queue == "" {
		j.opts.Queue = DefaultQueue
	}
	if j.opts.MaxAttempts == 0 {
		j.opts.MaxAttempts = DefaultMaxAttempts
	}
	if j.opts.Backoff == (Backoff{}) {
		j.opts.Backoff = DefaultBackoff()
	}
	if j.opts.Codec == nil {
		j.opts.Codec = jsonCodec{}
	}
	var r R
	_, j.none = any(r).(None)
	if err := j.request().Validate(Limits{}); err != nil {
		panic(during(err, "NewJob(%q)", name).Error())
	}
	return j
}

// Name returns the job's name.
func (j *Job[P, R]) Name() string { return j.name }

// Enqueued says what became of one enqueue.
type Enqueued struct {
	ID        string
	Duplicate bool  // the id, or the dedupe key, was taken: no job was made; with Dedupe.Replace the one that is there may have the newer content
	Err       error // this item alone was refused; only from EnqueueMany
}

// Enqueue encodes the payload and stores a job. Give it a Store, or a transaction's TxView to enqueue by commit.
// It is never repeated by the library: after ErrUnknown, repeat it yourself if the job has a Key or an ID.
func (j *Job[P, R]) Enqueue(ctx context.Context, to Enqueuer, payload P, opts ...EnqueueOption) (Enqueued, error) {
	if err := given("Store", to); err != nil {
		return Enqueued{}, err
	}
	req, err := j.Request(ctx, payload, opts...)
	if err != nil {
		return Enqueued{}, during(err, "enqueue %s", j.name)
	}
	res, err := enqueue(ctx, to, []EnqueueRequest{req})
	if err != nil {
		return Enqueued{}, during(err, "enqueue %s", j.name)
	}
	if res[0].Err != nil {
		return Enqueued{}, during(res[0].Err, "enqueue %s", j.name)
	}
	return Enqueued{ID: res[0].ID, Duplicate: res[0].Duplicate}, nil
}

// EnqueueMany stores a job per payload in few round trips. Results are positional and independent: one that was
// refused carries its Err, the others land (Q11). The error is the whole call's; core.ID is one.
func (j *Job[P, R]) EnqueueMany(ctx context.Context, to Enqueuer, payloads []P, opts ...EnqueueOption) ([]Enqueued, error) {
	if err := given("Store", to); err != nil {
		return nil, err
	}
	var shared enqueueSettings
	for _, o := range opts {
		o.applyEnqueue(&shared)
	}
	if shared.req.ID != "" {
		return nil, during(&InvalidError{"ID", "one id cannot serve a batch"}, "enqueue %d of %s", len(payloads), j.name)
	}
	out := make([]Enqueued, len(payloads))
	reqs := make([]EnqueueRequest, 0, len(payloads))
	at := make([]int, 0, len(payloads)) // positions of reqs in out
	for i, p := range payloads {
		req, err := j.Request(ctx, p, opts...)
		if err != nil {
			out[i].Err = during(err, "enqueue %s", j.name)
			continue
		}
		reqs, at = append(reqs, req), append(at, i)
	}
	res, err := enqueue(ctx, to, reqs)
	if err != nil {
		return nil, during(err, "enqueue %d of %s", len(reqs), j.name)
	}
	for i, r := range res {
		if r.Err != nil {
			r.Err = during(r.Err, "enqueue %s", j.name)
		}
		out[at[i]] = Enqueued(r)
	}
	return out, nil
}

// Request builds what Enqueue would store, for batches of mixed kinds: Store.Enqueue takes many.
func (j *Job[P, R]) Request(_ context.Context, payload P, opts ...EnqueueOption) (EnqueueRequest, error) {
	s := enqueueSettings{req: j.request()}
	if j.opts.Key != nil {
		s.req.Key = j.opts.Key(payload)
	}
	if j.opts.Metadata != nil {
		s.req.Metadata = j.opts.Metadata(payload)
	}
	if j.opts.Dedupe != nil {
		if d := j.opts.Dedupe(payload); d != (Dedupe{}) {
			s.req.Dedupe = &d
		}
	}
	for _, o := range opts {
		o.applyEnqueue(&s)
	}
	switch {
	case s.delay && s.at:
		s.refuse("RunAt", "Delay and At exclude each other")
	case s.at && s.req.RunAt.IsZero():
		s.refuse("RunAt", "At needs a time")
	case j.opts.Key != nil && s.req.ID == "" && s.req.Key == "":
		s.refuse("Key", "the job's Key function returned an empty key")
	}
	if s.err != nil {
		return EnqueueRequest{}, s.err
	}
	data, err := j.opts.Codec.Marshal(payload)
	if err != nil {
		return EnqueueRequest{}, &InvalidError{"Payload", fmt.Sprintf("cannot be encoded: %v", err)}
	}
	s.req.Payload = data
	return s.req, nil
}

// request is a request with the job's defaults and nothing of a payload.
func (j *Job[P, R]) request() EnqueueRequest {
	return EnqueueRequest{
		Name: j.name, Queue: j.opts.Queue, Priority: j.opts.Priority,
		MaxAttempts: j.opts.MaxAttempts, MaxStalls: j.opts.MaxStalls,
		Backoff: j.opts.Backoff, Timeout: j.opts.Timeout, Keep: j.opts.Keep,
	}
}

// enqueue holds a store to its word that results are positional.
func enqueue(ctx context.Context, to Enqueuer, reqs []EnqueueRequest) ([]EnqueueResult, error) {
	if len(reqs) == 0 {
		return nil, nil
	}
	res, err := to.Enqueue(ctx, reqs)
	if err == nil && len(res) != len(reqs) {
		err = fmt.Errorf("%w: store answered %d results for %d requests", ErrUnknown, len(res), len(reqs))
	}
	return res, err
}

// Execute enqueues a job and awaits its result. A duplicate's result is that of the job that was there first.
func (j *Job[P, R]) Execute(ctx context.Context, s Store, payload P, opts ...EnqueueOption) (R, error) {
	e, err := j.Enqueue(ctx, s, payload, opts...)
	if err != nil {
		var zero R
		return zero, err
	}
	return j.Await(ctx, s, e.ID)
}

// Await returns the result of a job once it completed. A job that failed, was cancelled or is gone is a
// *JobError. It asks every 10 ms at first, then ever more rarely, at last every 200 ms, until ctx ends or the store is
// closed (ErrClosed). The store must be an Inspector.
func (j *Job[P, R]) Await(ctx context.Context, s Store, id string) (R, error) {
	var result R
	if err := given("Store", s); err != nil {
		return result, err
	}
	inspector, ok := As[Inspector](s)
	if !ok {
		return result, &UnsupportedError{"Await", "the store is no Inspector"}
	}
	for wait := 10 * time.Millisecond; ; wait = min(wait*5/4, 200*time.Millisecond) {
		rec, err := inspector.Get(ctx, id)
		switch {
		case errors.Is(err, ErrNotFound):
			return result, &JobError{ID: id}
		case errors.Is(err, ErrClosed):
			return result, during(err, "await %s", id)
		case errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknown):
			// A store that is away for a moment is no reason to lose the result.
			if ctx.Err() != nil {
				return result, err
			}
		case err != nil:
			return result, during(err, "await %s", id)
		case rec.Name != j.name:
			return result, &ConflictError{Name: rec.Name, ID: id}
		case rec.State == StateCompleted:
			return j.decodeResult(rec)
		case rec.State.Terminal():
			return result, &JobError{ID: id, State: rec.State, Failure: rec.Failure}
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return result, during(context.Cause(ctx), "await %s", id)
		case <-timer.C:
		}
	}
}

func (j *Job[P, R]) decodeResult(rec Record) (R, error) {
	var result R
	if rec.Result == nil {
		return result, nil
	}
	if err := j.opts.Codec.Unmarshal(rec.Result, &result); err != nil {
		return result, fmt.Errorf("stint: decode result of %s: %w", rec.ID, err)
	}
	return result, nil
}

func (j *Job[P, R]) encodeResult(result R) ([]byte, error) {
	if j.none {
		return nil, nil
	}
	data, err := j.opts.Codec.Marshal(result)
	if err != nil {
		return nil, &encodeError{err}
	}
	if data == nil {
		data = []byte{} // a codec's empty result is a result
	}
	return data, nil
}

// Complete ends the current run inside the caller's transaction: the job is completed by its commit, together
// with whatever else the transaction wrote, or not at all. Call it in a handler, with the handler's context and
// TxStore.WithTx, then commit, then return nil; the worker asks the store whether the commit happened (Q14).
func (j *Job[P, R]) Complete(ctx context.Context, in TxView, result R) error {
	if err := given("TxView", in); err != nil {
		return err
	}
	data, err := j.encodeResult(result)
	if err != nil {
		return err
	}
	return completeIn(ctx, in, j.name, data)
}

// Handle registers the function that does this work on w, from the job's queue unless core.Queue says otherwise. Registering
// a name twice on one worker panics and names both places; a nil worker or function panics with an *InvalidError;
// registering on a running worker takes effect at once. unregister lets running jobs finish and leaves queued ones in the
// store (Q17).
//
// The handler's context ends with one of ErrCancelled, ErrTimeout, ErrLeaseLost, ErrLeaseDoubtful and ErrStopping
// as its cause. nil completes the job, whatever happened meanwhile; any other error is an attempt used (Q19),
// except those made by Snooze.
func (j *Job[P, R]) Handle(w *Worker, fn func(ctx context.Context, payload P) (R, error), opts ...HandleOption) (unregister func()) {
	if w == nil {
		panic(&InvalidError{"Worker", fmt.Sprintf("must not be nil, to handle %q", j.name)})
	}
	if fn == nil {
		panic(&InvalidError{"Handler", fmt.Sprintf("must not be nil, to handle %q", j.name)})
	}
	h := &handler{name: j.name, retryable: j.opts.Retryable}
	h.run = func(ctx context.Context, _ Run, data []byte) ([]byte, error) {
		var payload P
		if err := j.opts.Codec.Unmarshal(data, &payload); err != nil {
			return nil, fmt.Errorf("stint: decode payload: %w", err)
		}
		result, err := fn(ctx, payload)
		if err != nil {
			return nil, err
		}
		return j.encodeResult(result)
	}
	return w.register(h, j.opts.Queue, opts)
}

// Task is a Job without a result. It has Job's methods: Enqueue, EnqueueMany, Request, Execute, Await, Schedule,
// Unschedule, Declare, Payload, IDOf, Name and so on.
type Task[P any] struct{ *Job[P, None] }

// NewTask declares a kind of work that has no result. It panics where NewJob does.
func NewTask[P any](name string, opts ...JobOptions[P]) *Task[P] {
	return &Task[P]{NewJob[P, None](name, opts...)}
}

// Handle is Job.Handle for a function without a result.
func (t *Task[P]) Handle(w *Worker, fn func(ctx context.Context, payload P) error, opts ...HandleOption) (unregister func()) {
	if fn == nil {
		return t.Job.Handle(w, nil, opts...)
	}
	return t.Job.Handle(w, func(ctx context.Context, payload P) (None, error) {
		return None{}, fn(ctx, payload)
	}, opts...)
}

// Complete is Job.Complete without a result.
func (t *Task[P]) Complete(ctx context.Context, in TxView) error {
	return t.Job.Complete(ctx, in, None{})
}
