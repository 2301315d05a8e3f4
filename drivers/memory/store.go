// Package memstore is a stint store in memory: the reference implementation of the store contract, and the store of unit
// tests and of programs that may lose their jobs when they end.
//
// # Delivery
//
// At least once within the life of the process; nothing outlives it. All the rules of core hold, with every method
// atomic under one mutex. There are no goroutines and no timers: time is read when a method is called, and AwaitWake
// waits on a channel, so the store works inside testing/synctest.
//
// # Capabilities
//
// core.Inspector, core.Admin, core.Gauger, core.Retainer, core.Scheduler, core.TxStore[*Transaction], and dedupe keys: all
// there is.
//
// # Cost
//
// Enqueue, Claim, Extend, Ack and the admin verbs cost O(log n) per job, where n counts the waiting, delayed or
// active jobs around it; finished jobs, other names and jobs that are not due cost nothing. A delayed job that is due
// is moved once: by a Claim of its name, of which each moves a bounded number, or by whatever reads its queue, which
// moves all. Counts and Stranded cost one step per (queue, name). Explain counts through the waiting jobs of its
// queue. List goes through all jobs, or through the pending ones if only those are asked for; Schedules and
// DueSchedules through all schedules.
package memstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
)

// Options of New. The zero value is valid.
type Options struct {
	Clock  core.Clock  // nil: time.Now; called with the store locked, so it must not use the store
	Limits core.Limits // zero: core's defaults
}

// Store keeps jobs in memory. All methods are safe for concurrent use.
type Store struct {
	clock  core.Clock
	limits core.Limits

	mu     sync.Mutex // guards everything below; never held while waiting
	closed bool
	jobs   map[string]*job
	queues map[string]*queue
	leases heap[*job]         // the active jobs by end of lease
	done   map[group]*history // the finished jobs
	keys   map[keyName]hold   // dedupe keys
	serial int64              // the last insertion number
	places int64              // the last place drawn
	turns  int64              // the last turn of a key
	picks  uint64             // wants served so far, see lane.pick

	schedules map[string]*core.ScheduleRecord // by key

	// Scratch, empty or meaningless between calls.
	lanes    []*lane
	dueLanes heap[*lane] // by the earliest delayed job
	bins     heap[*bin]  // by the first job

	event   uint64 // the number of the newest event, see wake.go
	control uint64 // the newest event that was a Control
	waiters map[*waiter]struct{}

	events *events // the journal's log, see journal.go
}

var (
	_ core.Store                 = (*Store)(nil)
	_ core.Inspector             = (*Store)(nil)
	_ core.Admin                 = (*Store)(nil)
	_ core.Retainer              = (*Store)(nil)
	_ core.Scheduler             = (*Store)(nil)
	_ core.TxStore[*Transaction] = (*Store)(nil)
)

// New returns an empty store. It panics with an *core.InvalidError if opts.Limits are invalid: they are constants
// of the program, as the pattern of regexp.MustCompile is.
func New(opts Options) *Store {
	if err := opts.Limits.Validate(); err != nil {
		panic(err)
	}
	clock := opts.Clock
	if clock == nil {
		clock = machineClock{}
	}
	return &Store{
		clock:     clock,
		limits:    opts.Limits,
		jobs:      map[string]*job{},
		queues:    map[string]*queue{},
		done:      map[group]*history{},
		keys:      map[keyName]hold{},
		schedules: map[string]*core.ScheduleRecord{},
		waiters:   map[*waiter]struct{}{},
		events:    newEvents(),
	}
}

// Close ends every AwaitWake, and every call that waits for the journal; from then on all methods return core.ErrClosed. It
// may be repeated and always returns nil.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.events.end != nil {
		close(s.events.end)
	}
	s.closed = true
	for w := range s.waiters {
		s.release(w)
	}
	return nil
}

// enter begins a method: it locks the store and says what time it is. On an error the store is not locked and
// nothing was done.
func (s *Store) enter(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return time.Time{}, core.ErrClosed
	}
	return core.Micros(s.clock.Now()), nil
}

type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }
