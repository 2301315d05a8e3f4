// Package faults breaks things on purpose, at a moment that a test chooses.
//
//   - [Proxy] stands in front of a server: connections are cut, held, refused, or cut at one request, before the
//     server had it or after the server answered it.
//   - [Executor] stands in front of a driver: one statement of many fails, before it was carried out, with half of its
//     rows, or after.
//
// It knows no driver and no test library.
package faults

// Moment is when a request or a statement fails.
type Moment int

// The moments.
const (
	// Before: it was not carried out.
	Before Moment = iota
	// Midway: it was carried out, and the answer broke off after its first row. For statements only.
	Midway
	// After: it was carried out, and nothing of the answer came back.
	After
)

func (m Moment) String() string {
	switch m {
	case Before:
		return "before"
	case Midway:
		return "midway"
	default:
		return "after"
	}
}
