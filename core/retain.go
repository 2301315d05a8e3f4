package core

import (
	"context"
	"time"
)

// Retainer deletes the records of finished jobs whose Keep ran out (Q28). Without it they stay until Admin.Remove.
type Retainer interface {
	// Prune deletes up to req.Limit finished jobs, with their ledgers, and returns how many. Fewer than Limit says that
	// nothing is left to delete now, or that another process is at it.
	//
	// Finished jobs of one name and terminal state are a group, whatever their queues. The Keep of the newest of them,
	// by FinishedAt, then by the order of insertion, rules the whole group: req.Rule says what it comes to. Beyond
	// Count go the oldest; with Age those that finished at now - Age or before. Either is enough. What is pruned
	// oldest first within its group.
	//
	// The job of a dedupe window that is still open may go; the window stays open, unless the job was cancelled.
	// Entries of keys that are free are deleted as well, and are not counted (Q12).
	//
	// It never waits for a row that is held elsewhere, and holds up no claim. A store may delete in several steps: with
	// an error, so many as are returned are gone all the same, and the call may be repeated in any case.
	Prune(ctx context.Context, req PruneRequest) (int, error)
}

// PruneRequest says what to keep. The zero value: the defaults, and no ceiling.
type PruneRequest struct {
	Default Keep // for states that a job's Keep says nothing of; zero rules: DefaultKeep
	Ceiling Keep // bounds that no job's own Keep exceeds, Forever included; zero rules: none
	Limit   int  // 0: 1,000
}

// DefaultPruneLimit is what PruneRequest.Limit 0 means.
const DefaultPruneLimit = 1000

// DefaultKeep is how long finished jobs stay where nobody says: completed ones a day, others a week.
func DefaultKeep() Keep {
	const day = 24 * time.Hour
	return Keep{Completed: KeepRule{Age: day}, Failed: KeepRule{Age: 7 * day}, Cancelled: KeepRule{Age: 7 * day}}
}

// Rule is what the Keep of a group's newest job comes to for a terminal state: None, Forever, or bounds.
func (r PruneRequest) Rule(s State, newest Keep) KeepRule {
	rule := newest.of(s)
	for _, k := range []Keep{r.Default, DefaultKeep()} {
		if rule == (KeepRule{}) {
			rule = k.of(s)
		}
	}
	top := r.Ceiling.of(s)
	switch {
	case top == (KeepRule{}), top.Forever, rule.None:
		return rule
	case top.None:
		return top
	}
	return KeepRule{Count: tighter(rule.Count, top.Count), Age: tighter(rule.Age, top.Age)}
}

// tighter is the smaller of two bounds, 0 being none.
func tighter[T int | time.Duration](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func (k Keep) of(s State) KeepRule {
	switch s {
	case StateCompleted:
		return k.Completed
	case StateFailed:
		return k.Failed
	case StateCancelled:
		return k.Cancelled
	}
	return KeepRule{Forever: true}
}

// Validate checks a prune (Q28).
func (r PruneRequest) Validate() error {
	if r.Limit < 0 {
		return &InvalidError{"Limit", "must not be negative"}
	}
	if err := r.Default.validate("Default"); err != nil {
		return err
	}
	return r.Ceiling.validate("Ceiling")
}
