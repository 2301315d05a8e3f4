package conformance

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
)

// heard gathers what handlers are told. Safe for concurrent use.
type heard[T cmp.Ordered] struct {
	mu  sync.Mutex
	all []T
}

func (h *heard[T]) add(v T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, v)
}

func (h *heard[T]) list() []T {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

func (h *heard[T]) len() int { return len(h.list()) }

// tickOnce is a moment's pause between two looks.
func tickOnce() <-chan time.Time { return time.After(tick) }

// passingErrors say nothing of what was tried.
func passingErrors() []error { return []error{core.ErrUnavailable, core.ErrRetryTx, core.ErrUnknown} }
