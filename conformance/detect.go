package conformance

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stintmq/stint/core"
)

// detect finds out what the store has, by assertion and by call, and holds it against what was declared.
func (s *suite) detect(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), defaultLimit)
	defer cancel()
	store := s.h.New(t, NewClock())
	s.has = map[Capability]bool{
		CapInspector: hasInspector(ctx, store),
		CapAdmin:     hasAdmin(ctx, store),
		CapTx:        s.h.Begin != nil,
		CapOpen:      s.h.Open != nil,
		CapDedupe:    hasDedupe(ctx, store),
		CapRetain:    hasRetainer(ctx, store),
		CapSchedule:  hasScheduler(ctx, store),
		CapWake:      hasWake(ctx, store),
		CapGauge:     hasGauger(ctx, store),
	}
	_, s.has[CapMigrate] = core.As[core.Migrator](store)
	_, s.has[CapClose] = core.As[io.Closer](store)
	for _, c := range demanded() {
		declared := slices.Contains(s.h.Lacks, c)
		switch {
		case !s.has[c] && !declared:
			t.Errorf("capability %q is absent and not declared in Harness.Lacks", c)
		case s.has[c] && declared:
			t.Errorf("capability %q is declared in Harness.Lacks and present", c)
		}
	}
	for _, c := range s.h.Lacks {
		if !slices.Contains(demanded(), c) {
			t.Errorf("capability %q in Harness.Lacks is none that is demanded", c)
		}
	}
}

// A method that answers errors.ErrUnsupported is one that the store's configuration has switched off.

func hasInspector(ctx context.Context, s core.Store) bool {
	i, ok := core.As[core.Inspector](s)
	if !ok {
		return false
	}
	_, err := i.Get(ctx, "no such job")
	return !errors.Is(err, errors.ErrUnsupported)
}

func hasAdmin(ctx context.Context, s core.Store) bool {
	a, ok := core.As[core.Admin](s)
	if !ok {
		return false
	}
	_, err := a.Paused(ctx)
	return !errors.Is(err, errors.ErrUnsupported)
}

func hasRetainer(ctx context.Context, s core.Store) bool {
	r, ok := core.As[core.Retainer](s)
	if !ok {
		return false
	}
	_, err := r.Prune(ctx, core.PruneRequest{})
	return !errors.Is(err, errors.ErrUnsupported)
}

func hasScheduler(ctx context.Context, s core.Store) bool {
	c, ok := core.As[core.Scheduler](s)
	if !ok {
		return false
	}
	_, err := c.Schedules(ctx, core.ScheduleQuery{})
	return !errors.Is(err, errors.ErrUnsupported)
}

func hasDedupe(ctx context.Context, s core.Store) bool {
	req := request("detect-dedupe", onQueue("detect"))
	req.Dedupe = &core.Dedupe{Key: "detect"}
	res, err := s.Enqueue(ctx, []core.EnqueueRequest{req})
	if err == nil && len(res) == 1 {
		err = res[0].Err
	}
	return err == nil
}

// hasWake tells a wake channel from a timer: it is quiet for a short and for a long while, and returns soon
// after an Enqueue in both. No fixed interval does that. A slow machine gets three tries.
func hasWake(ctx context.Context, s core.Store) bool {
	for try := range 3 {
		both := true
		for _, quiet := range []time.Duration{20 * time.Millisecond, 480 * time.Millisecond} {
			woke, err := wakesAfter(ctx, s, try, quiet)
			if err != nil {
				return false
			}
			if both = woke; !both {
				break
			}
		}
		if both {
			return true
		}
	}
	return false
}

// wakesAfter reports whether AwaitWake stays quiet for a while and then returns within 250 ms of an Enqueue.
func wakesAfter(ctx context.Context, s core.Store, try int, quiet time.Duration) (bool, error) {
	const soon = 250 * time.Millisecond
	const queue = "detect-wake"
	first, stop := context.WithTimeout(ctx, time.Second) // without a channel it may wait for its context
	defer stop()
	current, err := s.AwaitWake(first, []string{queue}, "")
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	returned := make(chan error, 1)
	go func() {
		_, err := s.AwaitWake(ctx, []string{queue}, current.Token)
		returned <- err
	}()
	joined := false
	defer func() {
		cancel()
		if !joined {
			<-returned
		}
	}()
	select {
	case <-returned:
		joined = true
		return false, nil
	case <-time.After(quiet):
	}
	id := "detect-wake-" + quiet.String() + "-" + string(rune('a'+try))
	if _, err := s.Enqueue(ctx, []core.EnqueueRequest{request(id, onQueue(queue))}); err != nil {
		return false, err
	}
	select {
	case err := <-returned:
		joined = true
		return err == nil, nil
	case <-time.After(soon):
		return false, nil
	}
}
