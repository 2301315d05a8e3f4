package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
)

// hooked is a memory store whose calls go through functions, which a mutant replaces to break one thing.
type hooked struct {
	*memstore.Store
	clock core.Clock // nil: the machine's

	enqueue func(context.Context, []core.EnqueueRequest) ([]core.EnqueueResult, error)
	claim   func(context.Context, core.ClaimRequest) (core.Claimed, error)
	extend  func(context.Context, []core.Lease, time.Duration) (core.Extended, error)
	ack     func(context.Context, []core.Ack) ([]core.AckResult, error)
	sweep   func(context.Context, core.RecoverRequest) ([]core.Recovered, error)
	await   func(context.Context, []string, core.WakeToken) (core.Wake, error)

	get      func(context.Context, string) (core.Record, error)
	attempts func(context.Context, string) ([]core.Attempt, error)
	list     func(context.Context, core.Query) (core.Page, error)
	counts   func(context.Context, string) (map[core.State]int64, error)
	stranded func(context.Context, []string) ([]core.Stranded, error)
	explain  func(context.Context, string) (core.Explanation, error)
	gauges   func(context.Context) ([]core.QueueGauge, error)

	cancel  func(context.Context, string) (core.State, error)
	byKey   func(context.Context, string, string) (bool, error)
	retry   func(context.Context, string) error
	promote func(context.Context, string) error
	remove  func(context.Context, string) (bool, error)
	pause   func(context.Context, string) error
	resume  func(context.Context, string) error
	paused  func(context.Context) ([]string, error)
	prune   func(context.Context, core.PruneRequest) (int, error)
	close   func() error

	begin func() (view core.TxView, commit, rollback func() error)
}

func newHooked(m *memstore.Store) *hooked {
	return &hooked{
		Store: m, enqueue: m.Enqueue, claim: m.Claim, extend: m.Extend, ack: m.Ack, sweep: m.RecoverStalled, await: m.AwaitWake,
		get: m.Get, attempts: m.Attempts, list: m.List, counts: m.Counts, stranded: m.Stranded, explain: m.Explain,
		cancel: m.Cancel, byKey: m.CancelByKey, retry: m.Retry, promote: m.Promote, remove: m.Remove, pause: m.Pause, resume: m.Resume, paused: m.Paused,
		prune: m.Prune, close: m.Close,
		gauges: m.Gauges,
		begin: func() (core.TxView, func() error, func() error) {
			tx := m.Begin()
			return m.WithTx(tx), tx.Commit, tx.Rollback
		},
	}
}

// hookedHarness makes memory stores that break takes apart.
func hookedHarness(breaks func(*hooked)) Harness {
	return Harness{
		New: func(t testing.TB, clock core.Clock) core.Store {
			m := memstore.New(memstore.Options{Clock: clock})
			t.Cleanup(func() { _ = m.Close() })
			h := newHooked(m)
			h.clock = clock
			breaks(h)
			return h
		},
		Open: func(_ testing.TB, s core.Store, _ core.Clock) core.Store { return s },
		Begin: func(_ testing.TB, s core.Store) (core.TxView, func() error, func() error) {
			return s.(*hooked).begin()
		},
	}
}

// seen lets a mutant change every record that leaves the store.
func (h *hooked) seen(change func(*core.Record)) {
	claim, get, list := h.claim, h.get, h.list
	h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
		c, err := claim(ctx, r)
		for i := range c.Jobs {
			change(&c.Jobs[i])
		}
		return c, err
	}
	h.get = func(ctx context.Context, id string) (core.Record, error) {
		r, err := get(ctx, id)
		if err == nil {
			change(&r)
		}
		return r, err
	}
	h.list = func(ctx context.Context, q core.Query) (core.Page, error) {
		p, err := list(ctx, q)
		for i := range p.Jobs {
			change(&p.Jobs[i])
		}
		return p, err
	}
}

// stored lets a mutant change every request on its way in.
func (h *hooked) stored(change func(*core.EnqueueRequest)) {
	enqueue := h.enqueue
	h.enqueue = func(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
		mine := append([]core.EnqueueRequest(nil), reqs...)
		for i := range mine {
			change(&mine[i])
		}
		return enqueue(ctx, mine)
	}
}

// asked lets a mutant change every ack on its way in.
func (h *hooked) asked(change func(*core.Ack)) {
	ack := h.ack
	h.ack = func(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
		mine := append([]core.Ack(nil), acks...)
		for i := range mine {
			change(&mine[i])
		}
		return ack(ctx, mine)
	}
}

// claims lets a mutant change every claim on its way in.
func (h *hooked) claims(change func(*core.ClaimRequest)) {
	claim := h.claim
	h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
		r.Wants = append([]core.Want(nil), r.Wants...)
		change(&r)
		return claim(ctx, r)
	}
}

// claimed lets a mutant change every answer to a claim.
func (h *hooked) claimed(change func(core.ClaimRequest, *core.Claimed)) {
	claim := h.claim
	h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
		c, err := claim(ctx, r)
		if err == nil {
			change(r, &c)
		}
		return c, err
	}
}

func (h *hooked) Enqueue(ctx context.Context, r []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	return h.enqueue(ctx, r)
}

func (h *hooked) Claim(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
	return h.claim(ctx, r)
}

func (h *hooked) Extend(ctx context.Context, l []core.Lease, d time.Duration) (core.Extended, error) {
	return h.extend(ctx, l, d)
}

func (h *hooked) Ack(ctx context.Context, a []core.Ack) ([]core.AckResult, error) {
	return h.ack(ctx, a)
}

func (h *hooked) RecoverStalled(ctx context.Context, r core.RecoverRequest) ([]core.Recovered, error) {
	return h.sweep(ctx, r)
}

func (h *hooked) AwaitWake(ctx context.Context, q []string, since core.WakeToken) (core.Wake, error) {
	return h.await(ctx, q, since)
}

func (h *hooked) Get(ctx context.Context, id string) (core.Record, error) { return h.get(ctx, id) }

func (h *hooked) Attempts(ctx context.Context, id string) ([]core.Attempt, error) {
	return h.attempts(ctx, id)
}

func (h *hooked) List(ctx context.Context, q core.Query) (core.Page, error) { return h.list(ctx, q) }

func (h *hooked) Counts(ctx context.Context, queue string) (map[core.State]int64, error) {
	return h.counts(ctx, queue)
}

func (h *hooked) Stranded(ctx context.Context, known []string) ([]core.Stranded, error) {
	return h.stranded(ctx, known)
}

func (h *hooked) Explain(ctx context.Context, id string) (core.Explanation, error) {
	return h.explain(ctx, id)
}

func (h *hooked) Cancel(ctx context.Context, id string) (core.State, error) { return h.cancel(ctx, id) }
func (h *hooked) CancelByKey(ctx context.Context, name, key string) (bool, error) {
	return h.byKey(ctx, name, key)
}
func (h *hooked) Retry(ctx context.Context, id string) error                  { return h.retry(ctx, id) }
func (h *hooked) Promote(ctx context.Context, id string) error                { return h.promote(ctx, id) }
func (h *hooked) Remove(ctx context.Context, id string) (bool, error)         { return h.remove(ctx, id) }
func (h *hooked) Pause(ctx context.Context, queue string) error               { return h.pause(ctx, queue) }
func (h *hooked) Resume(ctx context.Context, queue string) error              { return h.resume(ctx, queue) }
func (h *hooked) Paused(ctx context.Context) ([]string, error)                { return h.paused(ctx) }
func (h *hooked) Prune(ctx context.Context, r core.PruneRequest) (int, error) { return h.prune(ctx, r) }
func (h *hooked) Close() error                                                { return h.close() }

func (h *hooked) Gauges(ctx context.Context) ([]core.QueueGauge, error) { return h.gauges(ctx) }
