package core

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Defaults of JobOptions and WorkerOptions.
const (
	DefaultQueue           = "default"
	DefaultMaxAttempts     = 10
	DefaultConcurrency     = 1
	DefaultLease           = 30 * time.Second
	DefaultStalledInterval = 30 * time.Second
	DefaultMaxStalls       = 3
	DefaultPoll            = 5 * time.Second
	DefaultGrace           = 20 * time.Second
	DefaultPruneInterval   = time.Minute
)

// Codec turns payloads and results into bytes and back. Its methods may be called concurrently.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// JobOptions are a kind of work's defaults; each zero field has one of its own. The functions must be safe for
// concurrent use.
type JobOptions[P any] struct {
	Queue       string        // "": DefaultQueue
	Priority    int           // -9..9, higher first
	MaxAttempts int           // runs allowed, the first included; 0: 10
	MaxStalls   int           // 0: the sweeping worker's limit; -1: none tolerated
	Backoff     Backoff       // zero: DefaultBackoff
	Timeout     time.Duration // per run; 0: none
	Keep        Keep          // how long the finished job stays; zero: what WorkerOptions.Keep says, see Retainer

	// Key makes enqueueing idempotent: the id becomes name:key, and a second job with it is a duplicate in
	// whatever state the first one is (Q10). An empty key is refused.
	Key func(P) string

	// Dedupe keeps a second job with the same key away for a while (Q12). The zero Dedupe: none.
	Dedupe func(P) Dedupe

	// Metadata is stored in plain text beside the payload, for List to filter by.
	Metadata func(P) map[string]string

	// Retryable says whether an ordinary error is worth another attempt; nil: every one is. It is not asked
	// about panics, timeouts, nor about errors made by Unrecoverable, RetryAfter and Snooze.
	Retryable func(error) bool

	Codec Codec // nil: JSON
}

// EnqueueOption changes one enqueue.
type EnqueueOption interface{ applyEnqueue(*enqueueSettings) }

// HandleOption changes one registration of a handler.
type HandleOption interface{ applyHandle(*handleSettings) }

// QueueOption is both.
type QueueOption interface {
	EnqueueOption
	HandleOption
}

type enqueueSettings struct {
	req       EnqueueRequest
	delay, at bool
	err       error
}

func (s *enqueueSettings) refuse(field, reason string) {
	if s.err == nil {
		s.err = &InvalidError{field, reason}
	}
}

type handleSettings struct {
	queue       string
	concurrency int
}

type enqueueOption func(*enqueueSettings)

func (f enqueueOption) applyEnqueue(s *enqueueSettings) { f(s) }

// ID gives the job an explicit id, in place of the one that Key derives (Q10). Not for EnqueueMany.
func ID(id string) EnqueueOption {
	return enqueueOption(func(s *enqueueSettings) {
		if id == "" {
			s.refuse("ID", "must not be empty")
		}
		s.req.ID, s.req.Key = id, ""
	})
}

type queueOption string

func (q queueOption) applyEnqueue(s *enqueueSettings) { s.req.Queue = string(q) }
func (q queueOption) applyHandle(s *handleSettings)   { s.queue = string(q) }

// Queue enqueues to, or handles from, another queue than the job's own.
func Queue(name string) QueueOption { return queueOption(name) }

// Delay makes the job runnable d after the store's now. Together with At it is an error.
func Delay(d time.Duration) EnqueueOption {
	return enqueueOption(func(s *enqueueSettings) { s.req.Delay, s.delay = d, true })
}

// At makes the job runnable at t, at once if t has passed. Together with Delay it is an error.
func At(t time.Time) EnqueueOption {
	return enqueueOption(func(s *enqueueSettings) { s.req.RunAt, s.at = t, true })
}

// Priority is -9..9, higher first.
func Priority(p int) EnqueueOption {
	return enqueueOption(func(s *enqueueSettings) { s.req.Priority = p })
}

// MaxAttempts is the number of runs allowed, the first included.
func MaxAttempts(n int) EnqueueOption {
	return enqueueOption(func(s *enqueueSettings) { s.req.MaxAttempts = n })
}

// WithBackoff sets the wait between attempts.
func WithBackoff(b Backoff) EnqueueOption {
	return enqueueOption(func(s *enqueueSettings) { s.req.Backoff = b })
}

// WithTimeout bounds each run; 0: none.
func WithTimeout(d time.Duration) EnqueueOption {
	return enqueueOption(func(s *enqueueSettings) { s.req.Timeout = d })
}

// WithMetadata adds to the metadata that the job derives from its payload, and wins over it.
func WithMetadata(m map[string]string) EnqueueOption {
	return enqueueOption(func(s *enqueueSettings) {
		merged := make(map[string]string, len(s.req.Metadata)+len(m))
		maps.Copy(merged, s.req.Metadata)
		maps.Copy(merged, m)
		s.req.Metadata = merged
	})
}

// WithDedupe replaces the job's own Dedupe.
func WithDedupe(d Dedupe) EnqueueOption {
	return enqueueOption(func(s *enqueueSettings) { s.req.Dedupe = &d })
}

// WithKeep says how long the finished job stays. The newest finished job of a name and state rules for all of them (Q28).
func WithKeep(k Keep) EnqueueOption {
	return enqueueOption(func(s *enqueueSettings) { s.req.Keep = k })
}

type concurrencyOption int

func (n concurrencyOption) applyHandle(s *handleSettings) { s.concurrency = int(n) }

// Concurrency is how many of the queue's jobs this worker runs at once. It wins over WorkerOptions.Concurrency;
// WorkerOptions.Queues wins over it. All handlers of a queue share its takers, so two of them that ask for
// different numbers are an error (Q17).
func Concurrency(n int) HandleOption { return concurrencyOption(n) }

// QueueOptions are a worker's settings for one queue.
type QueueOptions struct {
	Concurrency int // takers; 0: what the handlers or WorkerOptions.Concurrency say
}

// WorkerOptions configure a Worker. The zero value is good to start with.
//
// A job whose worker died runs again after what is left of its Lease, up to 1.25 StalledInterval until a sweep sees
// it, one Renew until a second look confirms it, and StallDelay: about a minute with the defaults. Shorter leases
// are quicker, and cost more heartbeats and less patience with a slow store: each store call of the worker is given
// Lease / 6.
type WorkerOptions struct {
	Concurrency     int                     // takers per queue; 0: 1
	MaxConcurrent   int                     // running jobs over all queues of this worker; 0: no cap
	Queues          map[string]QueueOptions // per queue; wins over the Concurrency option, which wins over Concurrency
	Lease           time.Duration           // how long a claim holds without a heartbeat; 0: 30 s; at least 10 ms
	Renew           time.Duration           // between heartbeats; 0: Lease / 3; at most Lease / 2
	StalledInterval time.Duration           // between sweeps, +-25 %, the first one interval after the start; 0: 30 s
	MaxStalls       int                     // stalls tolerated by jobs that set no limit; 0: 3; negative: none
	Poll            time.Duration           // idle fallback where no wake came, +-25 %; 0: 5 s
	Grace           time.Duration           // how long handlers may finish once Run's ctx ended; 0: 20 s; negative: none
	ID              string                  // for operators only; "": random
	NoJitter        bool                    // retries wait exactly as long as their Backoff says: for tests
	Logger          *slog.Logger            // nil: discard. Handlers' errors are logged; payloads, results, metadata never
	Middleware      []Middleware            // the first is the outermost

	// Keep says how long finished jobs stay whose own Keep says nothing of their state; zero rules: DefaultKeep, a day for
	// completed jobs, a week for others. KeepAtMost bounds what jobs ask for themselves, Forever included; zero rules: no
	// bound. They hold for the whole store, whoever runs its jobs: give them to every worker alike (Q28).
	Keep, KeepAtMost Keep
	// PruneInterval is the time between two passes over the store that delete what is kept no longer, +-25 %, the first
	// within 10 s of the start; 0: a minute; negative: this worker never prunes. Stores without Retainer keep everything.
	PruneInterval time.Duration

	// OnFailure is told of every failed attempt after its ack landed, with what the store really did, and of
	// jobs that a sweep of this worker failed. Up to 8 calls run at once, on goroutines of their own. When Run
	// ends it waits for them at most as long as for handlers; then their context ends. A panic is logged, and so
	// are failures that 10,000 others wait before.
	OnFailure OnFailureFunc

	// Hooks are told what the worker does, each value on its own. None: nothing is measured, and it costs nothing.
	Hooks []Hooks
}

// withDefaults fills in defaults and refuses what is out of range with an InvalidError.
func (o WorkerOptions) withDefaults() (WorkerOptions, error) {
	for _, d := range []struct {
		field string
		value int
	}{{"Concurrency", o.Concurrency}, {"MaxConcurrent", o.MaxConcurrent}} {
		if d.value < 0 {
			return o, &InvalidError{d.field, "must not be negative"}
		}
	}
	for _, d := range []struct {
		field string
		value *time.Duration
		def   time.Duration
	}{
		{"Lease", &o.Lease, DefaultLease},
		{"StalledInterval", &o.StalledInterval, DefaultStalledInterval},
		{"Poll", &o.Poll, DefaultPoll},
		{"PruneInterval", &o.PruneInterval, DefaultPruneInterval},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
		if *d.value < 0 && d.value == &o.PruneInterval {
			continue // never
		}
		if *d.value < minInterval || *d.value > maxInterval {
			return o, &InvalidError{d.field, fmt.Sprintf("must be %v to %v", minInterval, maxInterval)}
		}
	}
	if o.Grace > maxInterval {
		return o, &InvalidError{"Grace", fmt.Sprintf("must be at most %v", maxInterval)}
	}
	if o.Renew == 0 {
		o.Renew = o.Lease / 3
	}
	if o.Renew < o.Lease/100 || o.Renew > o.Lease/2 {
		return o, &InvalidError{"Renew", "must be Lease / 100 to Lease / 2"}
	}
	if err := o.Keep.validate("Keep"); err != nil {
		return o, err
	}
	if err := o.KeepAtMost.validate("KeepAtMost"); err != nil {
		return o, err
	}
	for name, q := range o.Queues {
		if err := ValidateQueue("Queues", name); err != nil {
			return o, err
		}
		if q.Concurrency < 0 {
			return o, &InvalidError{"Queues", fmt.Sprintf("Concurrency of %q must not be negative", name)}
		}
	}
	for i, m := range o.Middleware {
		if m == nil {
			return o, &InvalidError{"Middleware", fmt.Sprintf("must not be nil, as number %d is", i)}
		}
	}
	o.Queues, o.Hooks = maps.Clone(o.Queues), slices.Clone(o.Hooks)
	if o.Concurrency == 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.MaxStalls == 0 {
		o.MaxStalls = DefaultMaxStalls
	}
	switch {
	case o.Grace == 0:
		o.Grace = DefaultGrace
	case o.Grace < 0:
		o.Grace = 0
	}
	if o.ID == "" {
		o.ID = "worker-" + NewToken()[:12]
	}
	if err := validateText("ID", o.ID, MaxKeyBytes); err != nil {
		return o, err
	}
	o.Logger = slog.New(isolate(o.Logger))
	return o, nil
}

const (
	minInterval = 10 * time.Millisecond
	maxInterval = 10 * 365 * 24 * time.Hour
)
