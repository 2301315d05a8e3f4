package bunstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/litesql"
)

// SQLite tells nobody of a commit. What has news is written down in a table, in the transaction that makes it;
// of those who wait, one at a time reads the table for all: at once after a commit of this store, else every 2 ms,
// and less and less often, down to every 20, while there is no news. A read costs about 30 microseconds. No
// goroutine runs for it: where nobody waits, nothing happens.
const (
	paceFast = 2 * time.Millisecond
	paceIdle = 20 * time.Millisecond
)

// hub is the wake channel of one store (Q15).
type hub struct {
	read func(ctx context.Context, after int64) (map[string]int64, int64, error)
	end  <-chan struct{} // closed with the store

	reader chan struct{} // held by the waiter who reads for all
	poke   chan struct{} // asks that one to read now

	mu      sync.Mutex
	seen    int64            // everything up to this tick was read
	last    map[string]int64 // the tick of the last news, per queue; "": cancel requests
	pace    time.Duration
	waiters map[*waiter]struct{}
}

// waiter is one call of AwaitWake.
type waiter struct {
	queues []string
	since  int64
	news   chan struct{} // look again
}

func newHub(read func(context.Context, int64) (map[string]int64, int64, error), end <-chan struct{}) *hub {
	return &hub{
		read: read, end: end,
		reader: make(chan struct{}, 1), poke: make(chan struct{}, 1),
		last: make(map[string]int64), pace: paceFast,
		waiters: make(map[*waiter]struct{}),
	}
}

func (h *hub) await(ctx context.Context, queues []string, since core.WakeToken) (core.Wake, error) {
	if err := ctx.Err(); err != nil {
		return core.Wake{}, err
	}
	tick, ok := litesql.ParseWakeToken(since)
	if !ok {
		_, err := h.refresh(ctx)
		return h.wakeNow(), err
	}
	w := &waiter{queues: queues, since: tick, news: make(chan struct{}, 1)}
	h.mu.Lock()
	h.waiters[w] = struct{}{}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.waiters, w)
		h.mu.Unlock()
	}()
	signal(h.poke) // there may be news already that nobody waited for
	for {
		select {
		case <-ctx.Done():
			return core.Wake{}, ctx.Err()
		case <-h.end:
			return core.Wake{}, core.ErrClosed
		case <-w.news:
		case h.reader <- struct{}{}:
			err := h.readFor(ctx, w)
			<-h.reader
			if err != nil {
				return core.Wake{}, err
			}
		}
		if wake, ok := h.ready(w); ok {
			return wake, nil
		}
	}
}

// readFor reads the table for everybody until w has news or its context ends.
func (h *hub) readFor(ctx context.Context, w *waiter) error {
	for {
		pace, err := h.refresh(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
		if _, ok := h.ready(w); ok {
			return nil
		}
		timer := time.NewTimer(pace)
		select {
		case <-timer.C:
		case <-h.poke:
		case <-ctx.Done():
		case <-h.end:
		}
		timer.Stop()
		select {
		case <-h.end:
			return core.ErrClosed
		default:
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// refresh reads what is new, tells those whom it concerns, and returns how long to wait before the next time.
func (h *hub) refresh(ctx context.Context) (time.Duration, error) {
	h.mu.Lock()
	after := h.seen
	h.mu.Unlock()
	news, tick, err := h.read(ctx, after)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pace = min(h.pace*5/4, paceIdle)
	for queue, at := range news {
		h.last[queue] = max(h.last[queue], at)
		h.pace = paceFast
	}
	h.seen = max(h.seen, tick)
	for w := range h.waiters {
		if h.concerns(w) {
			signal(w.news)
		}
	}
	return h.pace, nil
}

// concerns reports whether w has news. A token of the future is of another database, or of this one before it
// was restored: whoever has it must look again.
func (h *hub) concerns(w *waiter) bool {
	return h.last[control] > w.since || w.since > h.seen ||
		slices.ContainsFunc(w.queues, func(q string) bool { return h.last[q] > w.since })
}

// control stands for cancel requests where queues are named.
const control = ""

func (h *hub) ready(w *waiter) (core.Wake, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return core.Wake{Token: litesql.WakeToken(h.seen), Control: h.last[control] > w.since}, h.concerns(w)
}

// wakeNow is the answer to a waiter with no moment to begin from.
func (h *hub) wakeNow() core.Wake {
	h.mu.Lock()
	defer h.mu.Unlock()
	return core.Wake{Token: litesql.WakeToken(h.seen), Control: h.last[control] > 0}
}

// announce says that a transaction of this store with news of queues was committed.
func (h *hub) announce(queues []string) {
	if len(queues) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.waiters {
		for _, q := range queues {
			if q == control || slices.Contains(w.queues, q) {
				signal(h.poke)
				return
			}
		}
	}
}

// expect says that somebody is about to commit news.
func (h *hub) expect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pace = paceFast
	signal(h.poke)
}

// signal leaves word for one receiver; word that is there already serves.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
