// Package pgwake is the wake channel of a Postgres store (Q15, Q16): who waits in this process, what is told to
// others, and what is heard from them. It knows no driver.
package pgwake

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stintmq/stint/core"
	"github.com/stintmq/stint/internal/pgsql"
)

// Control stands for cancel requests where queues are named: no queue has an empty name.
const Control = ""

// Hub wakes the waiters of one process. Events are numbered; a token is the hub's name and the number of the newest
// event at its moment, so whoever waits with one can tell whether something happened since. Safe for concurrent use.
type Hub struct {
	name   string
	closed error // what waiters get after Close

	mu      sync.Mutex
	end     bool
	event   uint64
	all     uint64            // the newest event that concerns everybody
	last    map[string]uint64 // the newest event per queue, and Control
	waiters map[*waiter]struct{}
}

// waiter is one call of Await.
type waiter struct {
	queues []string
	woken  chan struct{} // closed once, by release
}

// NewHub returns a hub of a name that no other has. closed is the error of waiters after Close.
func NewHub(name string, closed error) *Hub {
	return &Hub{name: name, closed: closed, event: 1, last: make(map[string]uint64), waiters: make(map[*waiter]struct{})}
}

// Token is the present moment.
func (h *Hub) Token() core.WakeToken {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token()
}

func (h *Hub) token() core.WakeToken {
	return core.WakeToken(h.name + "." + strconv.FormatUint(h.event, 10))
}

// parse reads a token. One of another hub, of another process say, is no reason to wait.
func (h *Hub) parse(t core.WakeToken) (uint64, bool) {
	name, number, ok := strings.Cut(string(t), ".")
	n, err := strconv.ParseUint(number, 10, 64)
	return n, ok && err == nil && name == h.name && n <= h.event
}

// Await implements core.Store.AwaitWake.
func (h *Hub) Await(ctx context.Context, queues []string, since core.WakeToken) (core.Wake, error) {
	if err := ctx.Err(); err != nil {
		return core.Wake{}, err
	}
	h.mu.Lock()
	seen, ok := h.parse(since)
	if h.end || !ok || h.happened(queues, seen) {
		defer h.mu.Unlock()
		w, err := h.wake(seen)
		w.Control = w.Control || !ok && since != "" // nobody knows what happened since then
		return w, err
	}
	w := &waiter{slices.Clone(queues), make(chan struct{})}
	h.waiters[w] = struct{}{}
	h.mu.Unlock()

	select {
	case <-w.woken:
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.wake(seen)
	case <-ctx.Done():
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiters, w)
		return core.Wake{}, ctx.Err()
	}
}

// wake is the answer to a waiter.
func (h *Hub) wake(seen uint64) (core.Wake, error) {
	if h.end {
		return core.Wake{}, h.closed
	}
	return core.Wake{Token: h.token(), Control: max(h.last[Control], h.all) > seen}, nil
}

// happened reports whether something that concerns a waiter of these queues is newer than seen.
func (h *Hub) happened(queues []string, seen uint64) bool {
	return h.all > seen || h.last[Control] > seen ||
		slices.ContainsFunc(queues, func(q string) bool { return h.last[q] > seen })
}

// Ring wakes the waiters of the queues that have news; Control wakes everybody.
func (h *Hub) Ring(news ...pgsql.News) {
	if len(news) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.event++
	control := false
	for _, n := range news {
		h.last[n.Queue] = h.event
		control = control || n.Queue == Control
	}
	h.release(func(w *waiter) bool {
		return control || slices.ContainsFunc(news, func(n pgsql.News) bool { return slices.Contains(w.queues, n.Queue) })
	})
}

// RingAll wakes everybody: news may have been missed.
func (h *Hub) RingAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.event++
	h.all = h.event
	h.release(func(*waiter) bool { return true })
}

// Close wakes everybody for good.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end = true
	h.release(func(*waiter) bool { return true })
}

func (h *Hub) release(concerned func(*waiter) bool) {
	for w := range h.waiters {
		if concerned(w) {
			delete(h.waiters, w)
			close(w.woken)
		}
	}
}
