package conformance

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// waking is the model with a wake channel: a list of events, of which a token counts how many were seen. It
// keeps back the events of one kind.
type waking struct {
	*modelStore
	muffled string

	wmu     sync.Mutex
	events  []string // queues; "" is Control
	changed chan struct{}
}

// muffled makes a mutant that never tells of one kind of event; "" is none.
func muffled(fault, kind string) mutant {
	return mutant{fault, modelHarness(func(m *modelStore) core.Store {
		return &waking{modelStore: m, muffled: kind, changed: make(chan struct{})}
	}, CapAdmin, CapDedupe, CapWake)}
}

// TestWaking: the model with a wake channel passes, so it is what is kept back that is caught.
func TestWaking(t *testing.T) {
	if caught, why := firstFailure(t, muffled("", "").harness, "", 5*time.Second); caught != "" {
		t.Errorf("fails %s:\n%s", caught, why)
	}
}

func (w *waking) tell(kind, queue string) {
	if kind == w.muffled {
		return
	}
	w.wmu.Lock()
	defer w.wmu.Unlock()
	w.events = append(w.events, queue)
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *waking) queueOf(id string) string {
	r, _ := w.Get(context.Background(), id)
	return r.Queue
}

func (w *waking) AwaitWake(ctx context.Context, queues []string, since core.WakeToken) (core.Wake, error) {
	for {
		w.wmu.Lock()
		seen, err := strconv.Atoi(string(since))
		token, changed := core.WakeToken(strconv.Itoa(len(w.events))), w.changed
		readable := err == nil && seen >= 0 && seen <= len(w.events)
		var news []string
		if readable {
			news = w.events[seen:]
		}
		w.wmu.Unlock()
		control := slices.Contains(news, "")
		if !readable || control || slices.ContainsFunc(news, func(q string) bool { return slices.Contains(queues, q) }) {
			return core.Wake{Token: token, Control: control}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return core.Wake{}, ctx.Err()
		}
	}
}

func (w *waking) Claim(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
	w.wmu.Lock()
	token := core.WakeToken(strconv.Itoa(len(w.events)))
	w.wmu.Unlock()
	w.mu.Lock()
	now, due := core.Micros(w.clock.Now()), map[string]int{}
	for _, j := range w.jobs {
		if j.State == core.StateDelayed && !j.RunAt.After(now) {
			due[j.Queue]++
		}
	}
	w.mu.Unlock()
	c, err := w.modelStore.Claim(ctx, r)
	c.Wake = token
	for q, n := range due {
		if n > len(c.Jobs) {
			w.tell("left over", q)
		}
	}
	return c, err
}

func (w *waking) Enqueue(ctx context.Context, reqs []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	res, err := w.modelStore.Enqueue(ctx, reqs)
	for i, r := range res {
		if r.Duplicate && reqs[i].Dedupe != nil && reqs[i].Dedupe.Replace {
			w.tell("replace", w.queueOf(r.ID))
		}
		if r.Err != nil || r.Duplicate {
			continue
		}
		kind := "enqueue"
		if reqs[i].Delay > 0 {
			kind = "delayed"
		}
		w.tell(kind, reqs[i].Queue)
	}
	return res, err
}

func (w *waking) Ack(ctx context.Context, acks []core.Ack) ([]core.AckResult, error) {
	res, err := w.modelStore.Ack(ctx, acks)
	for i, r := range res {
		if r.Err == nil && !r.State.Terminal() {
			w.tell(string(acks[i].Outcome), w.queueOf(acks[i].Lease.ID))
		}
	}
	return res, err
}

func (w *waking) RecoverStalled(ctx context.Context, r core.RecoverRequest) ([]core.Recovered, error) {
	got, err := w.modelStore.RecoverStalled(ctx, r)
	for _, g := range got {
		w.tell("recover", g.Queue)
	}
	return got, err
}

func (w *waking) Cancel(ctx context.Context, id string) (core.State, error) {
	state, err := w.modelStore.Cancel(ctx, id)
	if state == core.StateActive {
		w.tell("control", "")
	}
	return state, err
}

func (w *waking) CancelByKey(ctx context.Context, name, key string) (bool, error) {
	done, err := w.modelStore.CancelByKey(ctx, name, key)
	if done {
		w.tell("control by key", "")
	}
	return done, err
}

func (w *waking) Promote(ctx context.Context, id string) error {
	err := w.modelStore.Promote(ctx, id)
	w.tell("promote", w.queueOf(id))
	return err
}

func (w *waking) Retry(ctx context.Context, id string) error {
	err := w.modelStore.Retry(ctx, id)
	w.tell("admin retry", w.queueOf(id))
	return err
}

func (w *waking) Resume(ctx context.Context, queue string) error {
	err := w.modelStore.Resume(ctx, queue)
	w.tell("resume", queue)
	return err
}
