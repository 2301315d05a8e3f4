package bunstore

import (
	"context"
	"slices"
	"sync"

	"github.com/stintmq/stint/core"
)

// turns lets one call of this store write at a time. Without it the calls would meet at SQLite's lock, where
// who waits sleeps and looks again, up to 100 ms later. Acks and heartbeats go first: behind a queue of
// enqueues, claims and sweeps a lease can run out that was held in good faith. They can't hold up the others
// for long, since there are no more of them than claims let through.
type turns struct {
	mu     sync.Mutex
	held   bool
	end    <-chan struct{} // closed with the store
	urgent []chan struct{}
	others []chan struct{}
}

// take waits for the turn, or until ctx ends or the store is closed; whoever got it gives it back.
func (t *turns) take(ctx context.Context, urgent bool) error {
	t.mu.Lock()
	if !t.held {
		t.held = true
		t.mu.Unlock()
		return nil
	}
	line := &t.others
	if urgent {
		line = &t.urgent
	}
	mine := make(chan struct{})
	*line = append(*line, mine)
	t.mu.Unlock()
	var err error
	select {
	case <-mine:
		return nil
	case <-t.end:
		err = core.ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.mu.Lock()
	i := slices.Index(*line, mine)
	if i >= 0 {
		*line = slices.Delete(*line, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.give() // it came at the last moment
	}
	return err
}

// give passes the turn on.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range []*[]chan struct{}{&t.urgent, &t.others} {
		if len(*line) > 0 {
			close((*line)[0])
			*line = (*line)[1:]
			return
		}
	}
	t.held = false
}
