package core

import (
	"context"
	"time"
)

// Gauger measures a store's queues in one call that is cheap enough to be made every few seconds, for monitoring.
// Without it there is Inspector.Counts, which knows no ages.
type Gauger interface {
	// Gauges returns one entry for each queue that has pending jobs, ordered by queue. A queue that has none is left out:
	// its numbers are zero. A delayed job that is due counts as waiting, moved or not (Q27).
	Gauges(ctx context.Context) ([]QueueGauge, error)
}

// QueueGauge says how one queue stands.
type QueueGauge struct {
	Queue                    string
	Waiting, Delayed, Active int64
	// OldestWaiting is for how long the job that waits longest has been due, paused or not; 0: none waits. Of jobs that
	// came due late, after others had got in line before them, a store need not know.
	OldestWaiting time.Duration
}
