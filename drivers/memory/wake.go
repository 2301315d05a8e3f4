package memstore

import (
	"context"
	"strconv"

	"github.com/stintmq/stint/core"
)

// Events are numbered over the whole store. A queue keeps the number of its newest event, the store that of the
// newest Control, and a token is the number of the newest event at its moment: so whoever waits with a token can
// tell whether something happened since, whether or not anybody was waiting then (Q15).

// waiter is one AwaitWake that waits.
type waiter struct {
	queues []*queue
	woken  chan struct{} // closed by release
}

// AwaitWake implements core.Store (Q15). Every waiter of a queue wakes, since each may handle other names.
func (s *Store) AwaitWake(ctx context.Context, queues []string, since core.WakeToken) (core.Wake, error) {
	if err := ctx.Err(); err != nil {
		return core.Wake{}, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return core.Wake{}, core.ErrClosed
	}
	seen, ok := s.parse(since)
	if !ok || s.happened(queues, seen) {
		defer s.mu.Unlock()
		return s.wake(seen), nil
	}
	w := s.enlist(queues)
	s.mu.Unlock()

	select {
	case <-w.woken:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return core.Wake{}, core.ErrClosed
		}
		return s.wake(seen), nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.strike(w)
		return core.Wake{}, ctx.Err()
	}
}

func (s *Store) token() core.WakeToken {
	return core.WakeToken(strconv.FormatUint(s.event, 10))
}

// parse reads a token. One that this store did not give out is no reason to wait.
func (s *Store) parse(t core.WakeToken) (seen uint64, ok bool) {
	n, err := strconv.ParseUint(string(t), 10, 64)
	if err != nil || n > s.event {
		return 0, false
	}
	return n, true
}

func (s *Store) wake(seen uint64) core.Wake {
	return core.Wake{Token: s.token(), Control: s.control > seen}
}

// happened reports whether one of the queues, or a Control, has an event newer than seen.
func (s *Store) happened(queues []string, seen uint64) bool {
	if s.control > seen {
		return true
	}
	for _, name := range queues {
		if q := s.queues[name]; q != nil && q.event > seen {
			return true
		}
	}
	return false
}

func (s *Store) enlist(queues []string) *waiter {
	w := &waiter{woken: make(chan struct{})}
	for _, name := range queues {
		q := s.queue(name)
		q.waiters[w] = struct{}{}
		w.queues = append(w.queues, q)
	}
	s.waiters[w] = struct{}{}
	return w
}

// strike takes a waiter off every list. It may have been released already.
func (s *Store) strike(w *waiter) {
	for _, q := range w.queues {
		delete(q.waiters, w)
	}
	delete(s.waiters, w)
}

// release lets a waiter return, once: it is off every list before it can be found again.
func (s *Store) release(w *waiter) {
	s.strike(w)
	close(w.woken)
}

// ring records an event of a queue and wakes those who wait for it.
func (s *Store) ring(q *queue) {
	s.event++
	q.event = s.event
	for w := range q.waiters {
		s.release(w)
	}
}

// ringControl wakes everybody: a lease may have been asked to cancel, and its holder may wait on any queue (Q8).
func (s *Store) ringControl() {
	s.event++
	s.control = s.event
	for w := range s.waiters {
		s.release(w)
	}
}
