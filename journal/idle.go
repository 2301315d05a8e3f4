package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

// WaitIdle returns when all that is declared here has reacted to all that was recorded: async projections have passed the
// log's end, no job of an effect is pending, and nothing came to be meanwhile. Workers do that, here or elsewhere; taps are
// not waited for. An effect that failed for good has reacted. A projection that stalls has not, nor has an effect in its
// backoff: when ctx ends the error says what was waited for. For tests and programs that end; the store must be a
// core.Inspector.
func (j *Journal[Tx]) WaitIdle(ctx context.Context) error {
	inspector, ok := core.As[core.Inspector](j.jobs)
	if !ok {
		return &core.UnsupportedError{Op: "WaitIdle", Reason: "the store is no Inspector"}
	}
	busy := "" // what was waited for last
	for wait := 5 * time.Millisecond; ; wait = min(wait*3/2, 200*time.Millisecond) {
		now, err := j.busy(ctx, inspector)
		switch {
		case err == nil && now == "":
			return nil
		case err == nil:
			busy = now
		case final(ctx, err):
			return err
		case ctx.Err() == nil || busy == "":
			busy = err.Error()
		}
		if rest(ctx, wait); ctx.Err() != nil {
			return fmt.Errorf("journal: %s: %w", busy, ctx.Err())
		}
	}
}

// final reports whether who waits, and whose ctx goes on, has nothing to hope for after an error.
func final(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && (errors.Is(err, core.ErrClosed) || !passing(ctx, err))
}

// busy says what has not reacted yet; "": all has.
func (j *Journal[Tx]) busy(ctx context.Context, inspector core.Inspector) (string, error) {
	at, head, err := j.Cursors(ctx)
	if err != nil {
		return "", err
	}
	if text, err := behind(at); text != "" || err != nil {
		return text, err
	}
	// A job that runs is pending until after what it recorded was committed.
	pending, err := inspector.Stranded(ctx, nil) // by a name that is in no list: all of them
	if err != nil {
		return "", err
	}
	j.mu.RLock()
	names := names(j.effects)
	j.mu.RUnlock()
	for _, name := range names {
		for _, s := range pending {
			if s.Name == EffectPrefix+name {
				return fmt.Sprintf("effect %s has %d jobs to go", name, s.Count), nil
			}
		}
	}
	// What ran until then may have recorded, or reset a projection.
	at, now, err := j.Cursors(ctx)
	if err != nil {
		return "", err
	}
	if now.Seq != head.Seq {
		return fmt.Sprintf("event %d was recorded meanwhile", now.Seq), nil
	}
	return behind(at)
}

// behind says what has not followed; "": all have.
func behind(at []Status) (string, error) {
	for _, s := range at {
		switch {
		case s.Ahead != nil:
			return "", fmt.Errorf("projection %s: %w", s.Name, s.Ahead)
		case s.Lag > 0 && s.Failures > 0:
			return fmt.Sprintf("projection %s is %d events behind, and failed %d times at event %d: %s",
				s.Name, s.Lag, s.Failures, s.FailedSeq, s.LastError), nil
		case s.Lag > 0:
			return fmt.Sprintf("projection %s is %d events behind", s.Name, s.Lag), nil
		}
	}
	return "", nil
}
