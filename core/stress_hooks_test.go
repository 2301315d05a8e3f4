package core_test

import (
	"context"
	"testing"

	"github.com/stintmq/stint/core"
)

// told is what hooks said of one run.
type told struct {
	starts, ends int
	outcome      core.Outcome // "": the lease was lost
}

// listen is the hooks of one worker of TestStress.
func (c *chaos) listen() core.Hooks {
	note := func(run core.Run, change func(*told)) {
		c.mu.Lock()
		defer c.mu.Unlock()
		key := run.Lease.Token + run.ID
		of := c.told[key]
		change(&of)
		c.told[key] = of
	}
	return core.Hooks{
		Start: func(_ context.Context, r core.Run) { note(r, func(of *told) { of.starts++ }) },
		Finish: func(_ context.Context, f core.Finished) {
			note(f.Run, func(of *told) { of.ends++; of.outcome = f.Outcome })
		},
		LeaseLost: func(_ context.Context, l core.LostLease) { note(l.Run, func(of *told) { of.ends++ }) },
	}
}

// auditHooks: every run was told once as started and once as ended, and as what really happened (Q6).
func (c *chaos) auditHooks(t *testing.T, id, token string, got core.Outcome, landed bool) {
	of := c.told[token+id]
	if of.starts != 1 || of.ends != 1 {
		t.Errorf("%s: hooks were told of %d starts and %d ends of one run", id, of.starts, of.ends)
	}
	switch {
	case landed && of.outcome == got, !landed && of.outcome == "":
	case landed && of.outcome == "" && (got == core.OutcomeRelease || got == core.OutcomeSnooze):
		// The reply was lost, and the repeat was told that the lease is over (Q5).
	default:
		t.Errorf("%s: hooks were told %q, the store took %q (%v)", id, of.outcome, got, landed)
	}
}
