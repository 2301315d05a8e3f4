package conformance

import (
	"slices"

	"github.com/stintmq/stint/core"
)

// checkClaim holds the answer of a claim against what every claim must keep (Q2, Q4): only what was asked for,
// within each limit, each job once, active, and in order.
func (k *kit) checkClaim(req core.ClaimRequest, got core.Claimed) {
	k.Helper()
	if got.NextIn < 0 {
		k.failf("Claim answered NextIn %v", got.NextIn)
	}
	wanted, bytes := map[string]int{}, 0
	for _, w := range req.Wants {
		if len(w.Names) > 0 {
			wanted[w.Queue] += w.Limit
		}
	}
	seen := map[string]bool{}
	for i, j := range got.Jobs {
		switch {
		case seen[j.ID]:
			k.failf("Claim handed out %q twice in one call", j.ID)
		case !slices.ContainsFunc(req.Wants, func(w core.Want) bool { return w.Queue == j.Queue && slices.Contains(w.Names, j.Name) }):
			k.failf("Claim handed out %q named %q on %q, which nobody wanted", j.ID, j.Name, j.Queue)
		case j.State != core.StateActive:
			k.failf("Claim handed out %q in state %q", j.ID, j.State)
		case j.Fence < 1:
			k.failf("Claim handed out %q with fence %d", j.ID, j.Fence)
		case j.CancelRequested || !j.FinishedAt.IsZero() || j.Result != nil || j.Failure != nil:
			k.failf("Claim handed out %q with traces of an end: %+v", j.ID, j)
		case i > 0 && got.Jobs[i-1].Queue == j.Queue && got.Jobs[i-1].Name == j.Name && got.Jobs[i-1].Priority < j.Priority:
			k.failf("Claim handed out %q (priority %d) after %q (priority %d)",
				j.ID, j.Priority, got.Jobs[i-1].ID, got.Jobs[i-1].Priority)
		}
		k.wantTime("ClaimedAt of "+j.ID, j.ClaimedAt, k.nowOrAny())
		if wanted[j.Queue]--; wanted[j.Queue] < 0 {
			k.failf("Claim handed out more jobs of %q than the wants' limits allow", j.Queue)
		}
		if k.clock != nil && j.RunAt.After(k.now()) {
			k.failf("Claim handed out %q before its time: now %v, RunAt %v", j.ID, k.now(), j.RunAt)
		}
		seen[j.ID] = true
		bytes += len(j.Payload)
	}
	if bytes > core.MaxClaimBytes && len(got.Jobs) > 1 {
		k.failf("Claim handed out %d bytes of payload, more than %d", bytes, core.MaxClaimBytes)
	}
}
