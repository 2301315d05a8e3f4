package conformance

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/stintmq/stint/core"
)

func concurrentMutants() []mutant {
	return []mutant{
		broken("claims lock more than they take", func(h *hooked) {
			var under atomic.Int64
			claim := h.claim
			h.claim = func(ctx context.Context, r core.ClaimRequest) (core.Claimed, error) {
				defer under.Add(-1)
				if under.Add(1) > 1 { // the other one has the rest of each priority
					r.Wants = slices.Clone(r.Wants)
					for i := range r.Wants {
						r.Wants[i].Limit = (r.Wants[i].Limit + 1) / 2
					}
				}
				runtime.Gosched() // while it works, others come
				return claim(ctx, r)
			}
		}),
	}
}
