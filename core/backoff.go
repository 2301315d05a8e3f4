package core

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Backoff says how long to wait before the next attempt. Make one with Exponential or Fixed; the zero value
// is DefaultBackoff. Jitter is +-25 % unless NoJitter() is given (Q20).
type Backoff struct {
	Kind      string // BackoffExponential, BackoffFixed
	Base, Max time.Duration
	Factor    float64
	NoJitter  bool
}

// The kinds of Backoff.
const (
	BackoffExponential = "exponential"
	BackoffFixed       = "fixed"
)

// BackoffOption changes a Backoff as it is made.
type BackoffOption func(*Backoff)

// NoJitter makes the waits exact.
func NoJitter() BackoffOption { return func(b *Backoff) { b.NoJitter = true } }

// Exponential waits base after the first attempt, factor times as long after each further one, at most limit: each +-25 %
// unless NoJitter() is given.
func Exponential(base time.Duration, factor float64, limit time.Duration, opts ...BackoffOption) Backoff {
	return Backoff{Kind: BackoffExponential, Base: base, Factor: factor, Max: limit}.with(opts)
}

// Fixed waits d after every attempt, +-25 % unless NoJitter() is given; Fixed(0) tries again at once.
func Fixed(d time.Duration, opts ...BackoffOption) Backoff {
	return Backoff{Kind: BackoffFixed, Base: d}.with(opts)
}

func (b Backoff) with(opts []BackoffOption) Backoff {
	for _, o := range opts {
		o(&b)
	}
	return b
}

// DefaultBackoff is exponential: 1 s, doubling, at most 5 minutes.
func DefaultBackoff() Backoff { return Exponential(time.Second, 2, 5*time.Minute) }

// Delay returns the wait after the n-th attempt, n >= 1, jitter included: at most 1.25 times the cap.
func (b Backoff) Delay(n int) time.Duration {
	d := b.base(n)
	if b.NoJitter || d == 0 {
		return d
	}
	return jitter(d)
}

// base is the wait before jitter: monotone in n, positive, capped. Only Fixed(0) is zero.
func (b Backoff) base(n int) time.Duration {
	switch b.Kind {
	case BackoffFixed:
		return b.Base
	case BackoffExponential:
	default:
		b = DefaultBackoff()
	}
	// Float arithmetic saturates at +Inf where integers would wrap.
	d := float64(b.Base) * math.Pow(b.Factor, float64(max(n, 1)-1))
	if d >= float64(b.Max) {
		return b.Max
	}
	return max(time.Duration(d), 1)
}

// validate refuses what base could not keep its promises for.
func (b Backoff) validate() error {
	const field = "Backoff"
	switch b.Kind {
	case "":
		if b != (Backoff{}) && b != (Backoff{NoJitter: true}) {
			return &InvalidError{field, "has fields but no Kind; use Exponential or Fixed"}
		}
	case BackoffFixed:
		if b.Base < 0 || b.Base > maxBackoff {
			return &InvalidError{field, fmt.Sprintf("fixed delay must be 0 to %v", maxBackoff)}
		}
		if b.Factor != 0 || b.Max != 0 {
			return &InvalidError{field, "fixed has no factor and no limit"}
		}
	case BackoffExponential:
		if b.Base <= 0 || b.Max < b.Base || b.Max > maxBackoff {
			return &InvalidError{field, fmt.Sprintf("exponential needs 0 < base <= limit <= %v", maxBackoff)}
		}
		if !(b.Factor >= 1) || math.IsInf(b.Factor, 1) {
			return &InvalidError{field, "exponential needs a finite factor of 1 or more"}
		}
	default:
		return &InvalidError{field, fmt.Sprintf("unknown kind %q", b.Kind)}
	}
	return nil
}

const maxBackoff = 10 * 365 * 24 * time.Hour

// StallDelay is how long a job waits after its n-th stall, n >= 1: 1 s, doubling, at most 5 minutes, with
// jitter. Every store uses it (Q7).
func StallDelay(n int) time.Duration { return DefaultBackoff().Delay(n) }

// jitter spreads d over +-25 %.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2))
}
