// Package skeleton is where a driver begins: the six methods, none of them written. Copy it, then read
// docs/writing-a-driver.md.
package skeleton

import (
	"context"
	"time"

	"github.com/stintmq/stint/core"
)

// Store will be a core.Store.
type Store struct{}

var _ core.Store = (*Store)(nil)

func notWritten(method string) error {
	return &core.UnsupportedError{Op: method, Reason: "not written yet"}
}

// Enqueue inserts jobs (Q10, Q11, Q13).
func (s *Store) Enqueue(context.Context, []core.EnqueueRequest) ([]core.EnqueueResult, error) {
	return nil, notWritten("Enqueue")
}

// Claim leases jobs (Q2, Q3, Q4).
func (s *Store) Claim(context.Context, core.ClaimRequest) (core.Claimed, error) {
	return core.Claimed{}, notWritten("Claim")
}

// Extend renews leases (Q5, Q21).
func (s *Store) Extend(context.Context, []core.Lease, time.Duration) (core.Extended, error) {
	return core.Extended{}, notWritten("Extend")
}

// Ack ends leases (Q5, Q6, Q9).
func (s *Store) Ack(context.Context, []core.Ack) ([]core.AckResult, error) {
	return nil, notWritten("Ack")
}

// RecoverStalled takes back leases that ended (Q7).
func (s *Store) RecoverStalled(context.Context, core.RecoverRequest) ([]core.Recovered, error) {
	return nil, notWritten("RecoverStalled")
}

// AwaitWake waits for news (Q15).
func (s *Store) AwaitWake(context.Context, []string, core.WakeToken) (core.Wake, error) {
	return core.Wake{}, notWritten("AwaitWake")
}
