// Package filestore keeps a stint queue in one JSON file: a complete driver with the six methods of core.Store and
// nothing else, written to be read. docs/writing-a-driver.md walks through it.
//
// Every call that changes something writes the whole file anew, so it suits a command line tool or a small service
// with some thousands of jobs. Finished jobs stay in the file (Q28): nothing here removes them.
//
// One process at a time: Open takes an exclusive lock and refuses a second handle with a *LockedError.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stintmq/stint/core"
)

// Options configure a Store. The zero value is right for production.
type Options struct {
	Limits core.Limits
	Clock  core.Clock // the store's time; nil: the machine's
	NoSync bool       // skip fsync: a power cut may lose what was promised. For tests
}

// Store implements core.Store. Its methods are safe for concurrent use; they take turns.
type Store struct {
	opts Options
	file file
	lock *os.File

	turn   chan struct{} // whoever fills its one place may touch what is below; unlike a mutex it heeds a ctx
	state  *state        // what the file holds; nil: to be read again
	wakes  wakes
	closed bool
}

var _ core.Store = (*Store)(nil)

// Open opens the queue in the file at path, a new one if there is no such file. It returns a *LockedError if
// another handle has it open, here or in another process, and a *DamagedError if the file is not a whole queue;
// the file is left as it is.
func Open(path string, opts Options) (*Store, error) {
	if err := opts.Limits.Validate(); err != nil {
		return nil, err
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	s := &Store{
		opts: opts, lock: lock, file: file{path: path, sync: !opts.NoSync},
		turn: make(chan struct{}, 1), wakes: newWakes(),
	}
	if s.state, err = s.file.load(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// Close waits for the call under way, ends every AwaitWake and lets go of the file. Later calls answer
// core.ErrUnavailable. It may be repeated.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer s.leave()
	if s.closed {
		return nil
	}
	s.closed = true
	s.wakes.raise() // nobody's queue, but everybody looks up and finds the store closed
	return s.lock.Close()
}

// update gives f its turn on the state and makes what f did durable before anybody hears of it (Q4). f returns the
// queues to wake. What could not be saved is forgotten.
func (s *Store) update(ctx context.Context, f func(st *state, now time.Time) (woken []string)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if s.state == nil {
		st, err := s.file.load()
		if err != nil {
			return unavailable(err)
		}
		s.state = st
	}
	woken := f(s.state, s.now())
	err := s.save()
	if errors.Is(err, core.ErrUnavailable) {
		s.state = nil
		return err
	}
	if len(woken) > 0 {
		s.wakes.raise(woken...)
	}
	return err
}

// save writes the state to the file if it changed.
func (s *Store) save() error {
	lines, changed, err := s.state.encode()
	if err != nil {
		return unavailable(err)
	}
	if !changed {
		return nil
	}
	return s.file.replace(lines)
}

// enter waits for the caller's turn.
func (s *Store) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
	// With several ready, select chooses by the dice.
	if err := ctx.Err(); err != nil {
		s.leave()
		return unavailable(err)
	}
	if s.closed {
		s.leave()
		return unavailable(os.ErrClosed)
	}
	return nil
}

func (s *Store) leave() { <-s.turn }

// now is the store's time, in the resolution in which it is kept (Q13).
func (s *Store) now() time.Time {
	if s.opts.Clock != nil {
		return core.Micros(s.opts.Clock.Now())
	}
	return core.Micros(time.Now())
}

func unavailable(err error) error { return fmt.Errorf("filestore: %w: %w", core.ErrUnavailable, err) }
