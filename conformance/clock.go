package conformance

import (
	"sync"
	"time"
)

// Clock is a core.Clock that stands still until it is advanced. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock at a fixed instant. The instant has nanoseconds and a zone, which a store must cut
// and convert: it keeps time in whole microseconds, in UTC (Q13).
func NewClock() *Clock {
	zone := time.FixedZone("suite", 2*60*60)
	return &Clock{now: time.Date(2026, time.March, 29, 1, 59, 58, 123_456_789, zone)}
}

// Now returns the clock's instant.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
