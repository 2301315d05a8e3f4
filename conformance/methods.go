package conformance

import (
	"context"

	"github.com/stintmq/stint/core"
)

// method is a call of one of the store's methods of which only the error matters.
type method struct {
	name string
	call func(ctx context.Context) error
}

// writes are the five methods that return without waiting. The lease is of a job that is there.
func (k *kit) writes(l core.Lease) []method {
	return []method{
		{"Enqueue", func(ctx context.Context) error {
			_, err := k.store.Enqueue(ctx, []core.EnqueueRequest{request("new"), request("later", delay(1))})
			return err
		}},
		{"Claim", func(ctx context.Context) error {
			_, err := k.store.Claim(ctx, core.ClaimRequest{Wants: wants(5), Token: core.NewToken(), Lease: theLease})
			return err
		}},
		{"Claim without wants", func(ctx context.Context) error {
			_, err := k.store.Claim(ctx, core.ClaimRequest{Token: l.Token})
			return err
		}},
		{"Extend", func(ctx context.Context) error {
			_, err := k.store.Extend(ctx, []core.Lease{l}, theLease)
			return err
		}},
		{"Ack", func(ctx context.Context) error {
			_, err := k.store.Ack(ctx, []core.Ack{{Lease: l, Outcome: core.OutcomeComplete}})
			return err
		}},
		{"RecoverStalled", func(ctx context.Context) error {
			_, err := k.store.RecoverStalled(ctx, core.RecoverRequest{MaxStalls: 5})
			return err
		}},
	}
}

// reads are the inspector's methods; none without one.
func (k *kit) reads(id string) []method {
	if k.insp == nil {
		return nil
	}
	reads := []method{
		{"Get", func(ctx context.Context) error { _, err := k.insp.Get(ctx, id); return err }},
		{"Attempts", func(ctx context.Context) error { _, err := k.insp.Attempts(ctx, id); return err }},
		{"List", func(ctx context.Context) error { _, err := k.insp.List(ctx, core.Query{}); return err }},
		{"Counts", func(ctx context.Context) error { _, err := k.insp.Counts(ctx, ""); return err }},
		{"Stranded", func(ctx context.Context) error { _, err := k.insp.Stranded(ctx, nil); return err }},
		{"Explain", func(ctx context.Context) error { _, err := k.insp.Explain(ctx, id); return err }},
	}
	if g, ok := core.As[core.Gauger](k.store); ok && k.suite.has[CapGauge] {
		reads = append(reads, method{"Gauges", func(ctx context.Context) error { _, err := g.Gauges(ctx); return err }})
	}
	return reads
}

// The jobs and queues that verbs would change.
const (
	verbFailed  = "failed"
	verbWaiting = "waiting"
	verbDelayed = "delayed"
	verbPaused  = "paused"
)

// verbs are the operator's methods; none without an Admin. Without dedupe CancelByKey is left out: it says that, whatever
// else is wrong.
func (k *kit) verbs() []method {
	if k.admin == nil {
		return nil
	}
	verbs := []method{
		{"Retry", func(ctx context.Context) error { return k.admin.Retry(ctx, verbFailed) }},
		{"Cancel", func(ctx context.Context) error { _, err := k.admin.Cancel(ctx, verbWaiting); return err }},
		{"Promote", func(ctx context.Context) error { return k.admin.Promote(ctx, verbDelayed) }},
		{"Remove", func(ctx context.Context) error { _, err := k.admin.Remove(ctx, verbWaiting); return err }},
		{"Pause", func(ctx context.Context) error { return k.admin.Pause(ctx, theQueue) }},
		{"Resume", func(ctx context.Context) error { return k.admin.Resume(ctx, verbPaused) }},
		{"Paused", func(ctx context.Context) error { _, err := k.admin.Paused(ctx); return err }},
	}
	if k.suite.has[CapDedupe] {
		verbs = append(verbs, method{"CancelByKey", func(ctx context.Context) error {
			_, err := k.admin.CancelByKey(ctx, theName, "k")
			return err
		}})
	}
	return verbs
}
