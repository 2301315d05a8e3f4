package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// spy is a store whose calls can be counted, failed, delayed or changed. A nil hook passes the call on.
type spy struct {
	core.Store
	mu      sync.Mutex
	calls   map[string]int
	claim   func(ctx context.Context, req core.ClaimRequest) (core.Claimed, error)
	extend  func(ctx context.Context, ls []core.Lease) (core.Extended, error)
	ack     func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error)
	recover func(ctx context.Context, req core.RecoverRequest) ([]core.Recovered, error)
	await   func(ctx context.Context, queues []string, since core.WakeToken) (core.Wake, error)
}

func spyOn(s core.Store) *spy { return &spy{Store: s, calls: make(map[string]int)} }

func (s *spy) Unwrap() core.Store { return s.Store }

func (s *spy) count(call string) {
	s.mu.Lock()
	s.calls[call]++
	s.mu.Unlock()
}

// called returns the calls so far of one method.
func (s *spy) called(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func (s *spy) Claim(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
	s.count("claim")
	if s.claim != nil {
		return s.claim(ctx, req)
	}
	return s.Store.Claim(ctx, req)
}

func (s *spy) Extend(ctx context.Context, ls []core.Lease, d time.Duration) (core.Extended, error) {
	s.count("extend")
	if s.extend != nil {
		return s.extend(ctx, ls)
	}
	return s.Store.Extend(ctx, ls, d)
}

func (s *spy) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	s.count("ack")
	if s.ack != nil {
		return s.ack(ctx, acks)
	}
	return s.Store.Ack(ctx, acks)
}

func (s *spy) RecoverStalled(ctx context.Context, req core.RecoverRequest) ([]core.Recovered, error) {
	s.count("recover")
	if s.recover != nil {
		return s.recover(ctx, req)
	}
	return s.Store.RecoverStalled(ctx, req)
}

func (s *spy) AwaitWake(ctx context.Context, queues []string, since core.WakeToken) (core.Wake, error) {
	s.count("await")
	if s.await != nil {
		return s.await(ctx, queues, since)
	}
	return s.Store.AwaitWake(ctx, queues, since)
}

// bubble runs one test in virtual time on a fresh memory store.
func bubble(t *testing.T, test func(t *testing.T, s *memstore.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, memstore.New(memstore.Options{})) })
}

func newWorker(t *testing.T, s core.Store, opts core.WorkerOptions) *core.Worker {
	t.Helper()
	w, err := core.NewWorker(s, opts)
	require.NoError(t, err)
	return w
}

// start runs w until stop, which returns Run's error.
func start(t *testing.T, w *core.Worker) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return stop
}

func get(t *testing.T, s core.Store, id string) core.Record {
	t.Helper()
	inspector, ok := core.As[core.Inspector](s)
	require.True(t, ok)
	rec, err := inspector.Get(context.Background(), id)
	require.NoError(t, err)
	return rec
}

func ledger(t *testing.T, s core.Store, id string) []core.Attempt {
	t.Helper()
	inspector, ok := core.As[core.Inspector](s)
	require.True(t, ok)
	attempts, err := inspector.Attempts(context.Background(), id)
	require.NoError(t, err)
	return attempts
}

func outcomes(t *testing.T, s core.Store, id string) []core.Outcome {
	t.Helper()
	var out []core.Outcome
	for _, a := range ledger(t, s, id) {
		out = append(out, a.Outcome)
	}
	return out
}

func counts(t *testing.T, s core.Store) map[core.State]int64 {
	t.Helper()
	inspector, ok := core.As[core.Inspector](s)
	require.True(t, ok)
	c, err := inspector.Counts(context.Background(), "")
	require.NoError(t, err)
	return c
}

func enqueue[P, R any](t *testing.T, j *core.Job[P, R], s core.Enqueuer, p P, opts ...core.EnqueueOption) string {
	t.Helper()
	e, err := j.Enqueue(context.Background(), s, p, opts...)
	require.NoError(t, err)
	require.False(t, e.Duplicate)
	return e.ID
}

var errBoom = errors.New("boom")
