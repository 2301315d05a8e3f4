package core

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// sweepLimit bounds one call of the stalled sweep; a full one is followed by another at once.
const sweepLimit = 1000

// sweep takes back ended leases of the whole store, every StalledInterval, until ctx ends (Q7). The first pass
// comes one interval after the start, so that a fleet that restarts does not sweep all at once. Each pass has a
// second look one heartbeat later: by then a live holder has renewed what the first made suspect.
func (w *Worker) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, jitter(w.opts.StalledInterval))
		w.sweepAll(ctx)
		sleep(ctx, w.opts.Renew)
		w.sweepAll(ctx)
	}
}

func (w *Worker) sweepAll(ctx context.Context) {
	for ctx.Err() == nil && w.sweepOnce(ctx) {
	}
}

// sweepOnce reports whether there may be more.
func (w *Worker) sweepOnce(ctx context.Context) bool {
	call, cancel := w.storeCall(ctx)
	defer cancel()
	swept, err := w.store.RecoverStalled(call, RecoverRequest{
		MaxStalls: max(w.opts.MaxStalls, 0), Limit: sweepLimit, Confirm: w.opts.Renew,
	})
	if err != nil {
		if ctx.Err() == nil {
			w.log.Warn("stalled sweep failed, will be repeated", "error", err)
		}
		return false
	}
	for _, r := range swept {
		w.log.Warn("lease ran out, job taken back",
			slog.Group("job", "id", r.ID, "name", r.Name, "queue", r.Queue), "state", string(r.State))
		tell(w.audience, ofStall, r)
		if r.State == StateFailed && w.hearsFailures() {
			w.tellFailure(w.stalled(ctx, r))
		}
	}
	return len(swept) == sweepLimit
}

// stalled describes a job that a sweep failed, with the store's own words where it can be asked.
func (w *Worker) stalled(ctx context.Context, r Recovered) Failed {
	f := Failed{
		Run: Run{ID: r.ID, Name: r.Name, Queue: r.Queue}, Err: errStalled, State: r.State,
		Failure: Failure{Type: "stalled", Message: errStalled.Error()},
	}
	inspector, ok := As[Inspector](w.store)
	if !ok {
		return f
	}
	ctx, cancel := w.storeCall(ctx)
	defer cancel()
	if rec, err := inspector.Get(ctx, r.ID); err == nil && rec.Failure != nil {
		f.Failure = *rec.Failure
	}
	return f
}

var errStalled = errors.New("stint: job stalled more often than allowed")

// reportFailure tells the hooks of a failed attempt, with what the store made of it.
func (w *Worker) reportFailure(e settling, state State) {
	if e.ack.Failure == nil {
		return
	}
	f := Failed{Run: e.run.info(), Err: e.err, Failure: *e.ack.Failure, State: state}
	if state == StateWaiting || state == StateDelayed {
		f.RetryIn = e.ack.Delay
		w.log.Warn("attempt failed", jobAttr(e.run), "retry_in", f.RetryIn, "error", brief(f.Failure.Message))
	} else {
		w.log.Error("job failed", jobAttr(e.run), "state", string(state), "error", brief(f.Failure.Message))
	}
	w.tellFailure(f)
}

// brief cuts a text to what a log line should hold.
func brief(s string) string {
	const limit = 500
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// orphans are tokens of claims whose reply was lost. For one lease, with each heartbeat, the store is asked what
// they hold, and what appears is released (Q4, architecture decision 3).
type orphans struct {
	w      *Worker
	mu     sync.Mutex
	tokens map[string]time.Time // until when to ask
	came   chan struct{}
}

func newOrphans(w *Worker) *orphans {
	return &orphans{w: w, tokens: make(map[string]time.Time), came: make(chan struct{}, 1)}
}

func (o *orphans) add(token string, sent time.Time) {
	o.mu.Lock()
	// One call's deadline later than the lease: the claim may have begun as late as that.
	o.tokens[token] = sent.Add(o.w.opts.Lease + o.w.opts.Lease/6)
	o.mu.Unlock()
	select {
	case o.came <- struct{}{}:
	default:
	}
}

func (o *orphans) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.came:
		}
		for tokens := o.current(); len(tokens) > 0 && ctx.Err() == nil; tokens = o.current() {
			for _, t := range tokens {
				o.release(ctx, t)
			}
			sleep(ctx, o.w.opts.Renew)
		}
	}
}

// left asks a last time, with as much patience as one store call has, and returns for how many tokens the store
// could not say what they hold.
func (o *orphans) left() int {
	ctx, cancel := o.w.storeCall(context.Background())
	defer cancel()
	n := 0
	for _, t := range o.current() {
		again := newPause(ackRetryMin, ackRetryMax)
		for !o.release(ctx, t) {
			if again.wait(ctx); ctx.Err() != nil {
				n++
				break
			}
		}
	}
	o.mu.Lock()
	clear(o.tokens)
	o.mu.Unlock()
	return n
}

func (o *orphans) current() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var tokens []string
	for t, until := range o.tokens {
		if time.Now().After(until) {
			delete(o.tokens, t)
			continue
		}
		tokens = append(tokens, t)
	}
	return tokens
}

// release gives back what a token holds, and reports whether the store answered.
func (o *orphans) release(ctx context.Context, token string) bool {
	ctx, cancel := o.w.storeCall(ctx)
	defer cancel()
	held, err := o.w.store.Claim(ctx, ClaimRequest{Token: token, Lease: o.w.opts.Lease, Worker: o.w.opts.ID})
	if err != nil || len(held.Jobs) == 0 {
		return err == nil // asked again with the next heartbeat, in case the claim is still under way
	}
	acks := make([]Ack, len(held.Jobs))
	for i, rec := range held.Jobs {
		acks[i] = Ack{Lease: Lease{ID: rec.ID, Token: token, Ref: rec.Ref}, Outcome: OutcomeRelease}
	}
	if _, err := o.w.store.Ack(ctx, acks); err != nil {
		return false
	}
	o.w.log.Info("released jobs of a claim whose reply was lost", "jobs", len(acks))
	return true
}
