package journal

import (
	"context"
	"errors"
	"time"

	"github.com/stintmq/stint/core"
)

// Reset empties a projection and has it begin again: in one transaction it locks the cursor, so that no batch lands
// between, calls clear, and moves the cursor to the beginning (J8). Parked and skipped events are forgotten. clear may
// be nil. An inline projection can't be reset: an *core.UnsupportedError, or a *ModeError for one that was made inline.
func (j *Journal[Tx]) Reset(ctx context.Context, projection string, clear func(ctx context.Context, tx Tx) error) error {
	p, err := j.projection(projection)
	if err != nil {
		return err
	}
	if p.opts.Inline {
		return &core.UnsupportedError{Op: "Reset of an inline projection", Reason: "declare an async one with a new Version"}
	}
	err = j.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		c, _, err := j.store.LockCursor(ctx, tx, p.cursor(), true)
		if err != nil {
			return err
		}
		if c.Inline {
			return &ModeError{c.Name, true}
		}
		if clear != nil {
			if err := clear(ctx, tx); err != nil {
				return err
			}
		}
		for _, space := range []string{parkedSpace + c.Name, skippedSpace + c.Name} {
			if err := j.clearNotes(ctx, tx, space); err != nil {
				return err
			}
		}
		// A cursor that has passed nothing could be made an inline one.
		if err := j.store.PutNote(ctx, tx, Note{asyncSpace, c.Name, []byte("1")}); err != nil {
			return err
		}
		return j.store.SaveCursor(ctx, tx, Cursor{Name: c.Name})
	})
	if err == nil {
		j.Announce(ctx)
	}
	return err
}

func (j *Journal[Tx]) clearNotes(ctx context.Context, tx Tx, space string) error {
	for {
		notes, err := j.store.Notes(ctx, tx, space, "", "", pageSize)
		if err != nil || len(notes) == 0 {
			return err
		}
		for _, n := range notes {
			if _, err := j.store.DeleteNote(ctx, tx, space, n.Key); err != nil {
				return err
			}
		}
	}
}

// Status is where a declared projection stands (J8).
type Status struct {
	Name    string
	Version int
	Inline  bool
	Seq     int64         // the last event it has passed
	Lag     int64         // how far the log's end is ahead, in seqs; 0 for inline ones
	LagAge  time.Duration // how long the first event it has not passed waits; 0: none does

	Failures  int    // in a row, of the event at FailedSeq
	FailedSeq int64  // 0: nothing is wrong
	LastError string // of that event
	RetryAt   time.Time
	Parked    int64 // events put aside

	Ahead *AheadError // the cursor is of another copy of the log, and stays where it is until a Reset; nil: it is not
}

// Cursors says where the declared projections stand, in order of registration, and where the log ends. Those that this
// journal does not declare, such as older versions that other processes have, or that nobody retired, are not listed.
// Head's OldestAppender is what holds readers up.
func (j *Journal[Tx]) Cursors(ctx context.Context) ([]Status, Head, error) {
	stored, err := j.store.Cursors(ctx)
	if err != nil {
		return nil, Head{}, err
	}
	head, err := j.store.Head(ctx) // afterwards: no cursor is ahead of it
	if err != nil {
		return nil, Head{}, err
	}
	byName := make(map[string]Cursor, len(stored))
	for _, c := range stored {
		byName[c.Name] = c
	}
	j.mu.RLock()
	declared := j.projections
	j.mu.RUnlock()
	out := make([]Status, 0, len(declared))
	for _, p := range declared {
		c := byName[p.cursor()]
		s := Status{
			Name: p.name, Version: p.opts.Version, Inline: p.opts.Inline, Seq: c.Seq, Failures: c.Failures,
			FailedSeq: c.FailedSeq, LastError: c.LastError, RetryAt: c.RetryAt, Parked: c.Parked,
		}
		if !p.opts.Inline && head.Seq > c.Seq {
			s.Lag = head.Seq - c.Seq
			next, err := j.store.ReadLog(ctx, Filter{After: c.Seq, Limit: 1})
			if err != nil {
				return nil, Head{}, err
			}
			if len(next) > 0 {
				s.LagAge = max(head.Now.Sub(next[0].At), 0)
			}
		}
		if !p.opts.Inline && head.Seq < c.Seq {
			if err := j.checkAhead(ctx, c.Seq); err != nil && !errors.As(err, &s.Ahead) {
				return nil, Head{}, err
			}
		}
		out = append(out, s)
	}
	return out, head, nil
}

// checkAhead is for a cursor that no event is at, or beyond: if none ever was it is an *AheadError.
func (j *Journal[Tx]) checkAhead(ctx context.Context, seq int64) error {
	return j.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		_, err := j.store.ReadSettled(ctx, tx, seq, 1)
		return err
	})
}

// passed reports whether a cursor has passed a seq that is in the log; one that is ahead has passed nothing.
func (j *Journal[Tx]) passed(ctx context.Context, c Cursor, seq int64) (bool, error) {
	if c.Seq <= seq {
		return c.Seq == seq, nil
	}
	rest, err := j.store.ReadLog(ctx, Filter{After: c.Seq - 1, Limit: 1})
	if err == nil && len(rest) == 0 {
		err = j.checkAhead(ctx, c.Seq)
	}
	return err == nil, err
}

// WaitFor returns when a projection has passed a seq, Recorded.Last say, ctx ends, or the store is closed: so that a reader
// sees what was just written. An inline one has, once its transaction committed. An event that was put aside has been
// passed. A worker of this journal tells it at once; what workers elsewhere do it finds by polling, every 200 ms at least. A
// cursor that is ahead of the log is an *AheadError.
func (j *Journal[Tx]) WaitFor(ctx context.Context, projection string, seq int64) error {
	p, err := j.projection(projection)
	if err != nil {
		return err
	}
	if p.opts.Inline {
		return nil
	}
	for wait := 5 * time.Millisecond; ; wait = min(wait*3/2, 200*time.Millisecond) {
		j.mu.RLock()
		moved := j.moved
		j.mu.RUnlock()
		cursors, err := j.store.Cursors(ctx)
		if final(ctx, err) {
			return err
		}
		for _, c := range cursors {
			if c.Name != p.cursor() {
				continue
			}
			there, err := j.passed(ctx, c, seq)
			switch {
			case there:
				return nil
			case final(ctx, err):
				return err
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-moved:
		case <-ctx.Done():
		}
		timer.Stop()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// tell has those who wait for projections look.
func (j *Journal[Tx]) tell() {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.moved)
	j.moved = make(chan struct{})
}
