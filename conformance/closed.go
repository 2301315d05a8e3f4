package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/stintmq/stint/core"
)

// closedCases say what a store that can be closed does then.
func closedCases() []testCase {
	const rule = "Guarantees"
	needs := []Capability{CapClose}
	return []testCase{
		{rule: rule, name: "not-before", run: closedNotBefore, timeless: true,
			demands: "a store that is open never answers core.ErrClosed, on which workers end"},
		{rule: rule, name: "refuses", run: closedRefuses, needs: needs, closes: true, timeless: true,
			demands: "every method of a closed store returns an error that wraps core.ErrUnavailable"},
		{rule: rule, name: "twice", run: closedTwice, needs: needs, closes: true, timeless: true,
			demands: "Close may be repeated, and returns nil then"},
		{rule: rule, name: "waiters", run: closedWaiters, needs: needs, closes: true, timeless: true,
			demands: "Close ends every AwaitWake that waits"},
		{rule: rule, name: "at-work", run: closedAtWork, needs: needs, closes: true, timeless: true,
			demands: "a Close while calls are under way lets each end, and says of each whether it was done"},
	}
}

// close closes the store, which must come to an end.
func (k *kit) close() {
	k.Helper()
	c, _ := core.As[io.Closer](k.store)
	closed := make(chan error, 1)
	k.waiters.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				closed <- fmt.Errorf("panic: %v", v)
			}
		}()
		closed <- c.Close()
	})
	patience := time.NewTimer(k.suite.patience)
	defer patience.Stop()
	select {
	case err := <-closed:
		k.ok("Close", err)
	case <-patience.C:
		k.failf("Close did not return within %v", k.suite.patience)
	}
}

func closedRefuses(k *kit) {
	k.add("held")
	h := k.takeID("held")
	k.addAll(verbWaiting)
	all := append(k.writes(h.lease), k.reads("held")...)
	all = append(all, k.verbs()...)
	if r, ok := core.As[core.Retainer](k.store); ok && k.suite.has[CapRetain] {
		all = append(all, method{"Prune", func(ctx context.Context) error {
			_, err := r.Prune(ctx, core.PruneRequest{})
			return err
		}})
	}
	if m, ok := core.As[core.Migrator](k.store); ok {
		all = append(all, method{"Migrate", m.Migrate})
	}
	k.close()
	for _, m := range all {
		k.is(m.name+" of a closed store", m.call(k.ctx), core.ErrUnavailable)
	}
	for _, queues := range [][]string{{theQueue}, nil} {
		got := k.must("a closed store", k.await(queues, ""))
		k.is("AwaitWake of a closed store", got.err, core.ErrUnavailable)
	}
}

// closedNotBefore looks at calls that are surely refused.
func closedNotBefore(k *kit) {
	for _, m := range k.writes(core.Lease{ID: "a", Token: core.NewToken()}) {
		for _, ctx := range k.endedContexts() {
			if err := m.call(ctx); errors.Is(err, core.ErrClosed) {
				k.failf("%s of an open store: got error %v, which says that it is closed", m.name, err)
			}
		}
	}
}

func closedTwice(k *kit) {
	k.add("a")
	for range 3 {
		k.close()
	}
}

// closedWaiters allows them a spurious return: what they call next tells them.
func closedWaiters(k *kit) {
	since := k.none("nothing was enqueued").Wake
	ws := []waiter{k.await([]string{theQueue}, since), k.await([]string{"one", "two"}, since), k.await(nil, since)}
	for _, w := range ws {
		w.stays()
	}
	k.close()
	for _, w := range ws {
		if got := k.must("Close", w); got.err != nil {
			k.is("AwaitWake that waited when the store was closed", got.err, core.ErrUnavailable)
		}
	}
}

// closedAtWork closes the store under callers that go on until it tells them that it is closed.
func closedAtWork(k *kit) {
	const callers = 4
	store, ctx := k.store, k.ctx
	var working sync.WaitGroup
	working.Add(callers)
	ended := make(chan error, callers)
	for n := range callers {
		k.waiters.Go(func() {
			for i := 0; ; i++ {
				err := work(ctx, store, fmt.Sprintf("job %d of %d", i, n))
				if i == 0 {
					working.Done()
				}
				if err != nil && !errors.Is(err, core.ErrUnknown) {
					ended <- err
					return
				}
			}
		})
	}
	working.Wait()
	k.close()
	patience := time.NewTimer(k.suite.patience)
	defer patience.Stop()
	for range callers {
		select {
		case err := <-ended:
			k.is("a call while the store was closed", err, core.ErrUnavailable)
		case <-patience.C:
			k.failf("calls went on for %v after Close", k.suite.patience)
		}
	}
}

// work is the life of a job in calls.
func work(ctx context.Context, s core.Store, id string) error {
	if _, err := s.Enqueue(ctx, []core.EnqueueRequest{request(id)}); err != nil {
		return fmt.Errorf("Enqueue: %w", err)
	}
	token := core.NewToken()
	c, err := s.Claim(ctx, core.ClaimRequest{Wants: wants(1), Token: token, Lease: theLease})
	if err != nil {
		return fmt.Errorf("Claim: %w", err)
	}
	acks := make([]core.Ack, len(c.Jobs))
	for i, j := range c.Jobs {
		acks[i] = core.Ack{Lease: core.Lease{ID: j.ID, Token: token, Ref: j.Ref}, Outcome: core.OutcomeComplete}
	}
	if _, err := s.Ack(ctx, acks); err != nil {
		return fmt.Errorf("Ack: %w", err)
	}
	return nil
}
