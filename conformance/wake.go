package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/stintmq/stint/core"
)

func wakeCases() []testCase {
	needs := []Capability{CapWake}
	admin := []Capability{CapWake, CapAdmin}
	open := []Capability{CapWake, CapOpen}
	return []testCase{
		{rule: "Q15", name: "context", run: wakeContext, timeless: true,
			demands: "AwaitWake honours its context, and returns its error"},
		{rule: "Q15", name: "no-token", run: wakeNoToken, needs: needs, timeless: true,
			demands: "the empty token and one that cannot be read return at once, with a current token"},
		{rule: "Q15", name: "between-claim-and-wait", run: wakeBetween, needs: needs, timeless: true,
			demands: "a wake between a Claim and the AwaitWake with its token is never lost"},
		{rule: "Q15", name: "enqueue", run: wakeEnqueue, needs: needs, timeless: true,
			demands: "an enqueue wakes its queue, delayed ones and those in a batch too"},
		{rule: "Q15", name: "own-queue-only", run: wakeOwnQueue, needs: needs, timeless: true,
			demands: "as a rule only waiters of that queue wake"},
		{rule: "Q15", name: "all-waiters", run: wakeAll, needs: needs, timeless: true,
			demands: "every waiter of a queue wakes, and one of many queues by each of them"},
		{rule: "Q15", name: "acks", run: wakeAcks, needs: needs, timeless: true,
			demands: "Retry and Snooze, with a delay or without, and Release wake the queue"},
		{rule: "Q15", name: "recover", run: wakeRecover, needs: needs,
			demands: "a stalled job that is taken back wakes its queue: its next time is new"},
		{rule: "Q15", name: "admin", run: wakeAdmin, needs: admin, timeless: true,
			demands: "Promote, Retry and Resume wake the queue"},
		{rule: "Q15", name: "control", run: wakeControl, needs: admin, timeless: true,
			demands: "a cancel of an active job sets Control, for waiters of any queue and of none"},
		{rule: "Q15", name: "control-only", run: wakeControlOnly, needs: admin, timeless: true,
			demands: "without queues only Control is waited for"},
		{rule: "Q3", name: "due-left-over", run: wakeLeftOver, needs: needs,
			demands: "a claim that moves more due jobs than it takes wakes the queue"},
		{rule: "Q15", name: "across-handles", run: wakeAcross, needs: open, timeless: true,
			demands: "an enqueue in one process wakes the others"},
		{rule: "Q15", name: "control-across-handles", run: wakeControlAcross, needs: append(admin, CapOpen), timeless: true,
			demands: "a cancel in one process sets Control in the one that holds the lease"},
		{rule: "Q15", name: "abandoned", run: wakeAbandoned, needs: needs, timeless: true,
			demands: "a waiter that gave up takes no wake with it, and its token may be awaited again"},
		{rule: "Q15", name: "stream", run: wakeStream, needs: needs, timeless: true,
			demands: "a worker that only claims after a wake gets every job of a stream"},
	}
}

func wakeContext(k *kit) {
	token := k.claim(want(1)).Wake
	for _, queues := range [][]string{{theQueue}, nil} {
		w := k.await(queues, token)
		w.stays()
		w.cancel()
		if got := k.must("AwaitWake whose context ended", w); got.err != nil {
			k.is("AwaitWake whose context ended", got.err, context.Canceled)
		}
	}
}

func wakeNoToken(k *kit) {
	for _, token := range []core.WakeToken{"", "nonsense", "\x00\xff", "-1", "v9:99999999999999999999"} {
		for _, queues := range [][]string{{theQueue}, {"a", "b"}, nil} {
			w := k.woken(fmt.Sprintf("AwaitWake since %q", token), k.await(queues, token))
			if w.Token == "" {
				k.failf("AwaitWake since %q answered no token", token)
			}
		}
	}
}

func wakeBetween(k *kit) {
	for i := range 5 {
		c := k.none("everything was claimed")
		id := k.add(fmt.Sprintf("a%d", i))
		k.woken("enqueued since the claim", k.await([]string{theQueue}, c.Wake))
		k.takeID(id)
	}
}

func wakeEnqueue(k *kit) {
	for what, mods := range map[string][]mod{
		"enqueue": nil, "delayed enqueue": {delay(time.Hour)}, "enqueue of another name": {named("other")},
	} {
		k.wakes(what, theQueue, func() func() { return func() { k.add("", mods...) } })
	}
	k.wakes("the last item of a batch", "other", func() func() {
		return func() { k.enqueue(request(""), request("bad", prio(99)), request("", onQueue("other"))) }
	})
}

// wakeOwnQueue tolerates a spurious return now and then, but not with most events of another queue.
func wakeOwnQueue(k *kit) {
	const rounds = 5
	woken := 0
	for range rounds {
		mine := k.await([]string{"mine"}, k.settled("mine"))
		theirs := k.await([]string{theQueue}, k.current(theQueue))
		k.add("")
		k.woken("enqueue", theirs)
		if !mine.stays() {
			woken++
		}
		mine.cancel()
		k.must("AwaitWake whose context ended", mine)
	}
	if woken > rounds/2 {
		k.failf("%d of %d enqueues woke a waiter of another queue", woken, rounds)
	}
}

func wakeAll(k *kit) {
	for _, queue := range []string{"one", "two"} {
		var ws []waiter
		for range 3 {
			ws = append(ws, k.await([]string{queue}, k.current(queue)))
		}
		ws = append(ws, k.await([]string{"zero", "one", "two"}, k.current("zero", "one", "two")))
		k.add("", onQueue(queue))
		for _, w := range ws {
			k.woken("enqueue on "+queue, w)
		}
	}
}

func wakeAcks(k *kit) {
	for _, outcome := range []core.Outcome{core.OutcomeRetry, core.OutcomeSnooze, core.OutcomeRelease} {
		for _, d := range []time.Duration{0, time.Hour} {
			queue := fmt.Sprintf("%s %v", outcome, d)
			k.wakes(queue, queue, func() func() {
				k.add("", onQueue(queue), prio(9))
				h := held1(k.claim(wantFrom(queue, 1)), 0)
				return func() { k.ack(core.Ack{Lease: h.lease, Outcome: outcome, Delay: d}) }
			})
		}
	}
}

func wakeRecover(k *kit) {
	k.wakes("recovery", theQueue, func() func() {
		k.add("", prio(9))
		k.takeFor(0)
		return func() { eq(k, "jobs taken", len(k.sweep(core.RecoverRequest{MaxStalls: 9})), 1) }
	})
}

func wakeAdmin(k *kit) {
	k.wakes("Promote", "promote", func() func() {
		id := k.add("", onQueue("promote"), delay(time.Hour))
		return func() { k.ok("Promote", k.admin.Promote(k.ctx, id)) }
	})
	k.wakes("Retry", "retry", func() func() {
		id := k.add("", onQueue("retry"))
		k.cancel(id, core.StateCancelled)
		return func() { k.ok("Retry", k.admin.Retry(k.ctx, id)) }
	})
	k.add("", onQueue("resume"))
	k.wakes("Resume", "resume", func() func() {
		k.pause("resume")
		return func() { k.resume("resume") }
	})
}

func wakeControl(k *kit) {
	for _, queues := range [][]string{{theQueue}, {"elsewhere"}, nil} {
		for _, parked := range []bool{false, true} {
			id := k.add("")
			k.takeID(id)
			since := k.current(queues...)
			what := fmt.Sprintf("cancel with a waiter of %v", queues)
			if !parked {
				k.cancel(id, core.StateActive)
				k.controlled(what, queues, since)
				continue
			}
			w := k.await(queues, since)
			w.stays()
			k.cancel(id, core.StateActive)
			if wake := k.woken(what, w); !wake.Control {
				k.controlled(what, queues, wake.Token)
			}
		}
	}
}

func wakeControlOnly(k *kit) {
	const rounds = 5
	woken := 0
	for range rounds {
		w := k.await(nil, k.current())
		k.wakes("enqueue", theQueue, func() func() { return func() { k.add("") } })
		if !w.stays() {
			woken++
		}
		w.cancel()
		k.must("AwaitWake whose context ended", w)
	}
	if woken > rounds/2 {
		k.failf("%d of %d enqueues woke a waiter without queues", woken, rounds)
	}
	id := k.add("", prio(9))
	k.takeID(id)
	since := k.current()
	k.cancel(id, core.StateActive)
	k.controlled("cancel", nil, since)
}

func wakeLeftOver(k *kit) {
	k.wakes("a claim that left due jobs over", theQueue, func() func() {
		for range 3 {
			k.add("", delay(time.Second))
		}
		k.advance(time.Second)
		return func() {
			eq(k, "jobs", len(k.claim(want(1)).Jobs), 1)
		}
	})
}

func wakeAcross(k *kit) {
	o := k.other()
	k.wakesOn(o, "enqueue through another handle", theQueue, func() func() { return func() { k.add("") } })
	o.wakesOn(k, "enqueue the other way", theQueue, func() func() { return func() { o.add("", delay(time.Hour)) } })
}

func wakeControlAcross(k *kit) {
	o := k.other()
	k.add("a")
	k.take()
	since := k.current(theQueue)
	w := k.await([]string{theQueue}, since)
	w.stays()
	o.cancel("a", core.StateActive)
	if wake := k.woken("cancel through another handle", w); !wake.Control {
		k.controlled("cancel through another handle", []string{theQueue}, wake.Token)
	}
}

func wakeAbandoned(k *kit) {
	since := k.settled(theQueue)
	for range 3 {
		w := k.await([]string{theQueue}, since)
		w.stays()
		w.cancel()
		k.must("AwaitWake whose context ended", w)
	}
	other := k.await([]string{theQueue}, since)
	k.add("a")
	k.woken("enqueue after others gave up", other)
	k.woken("the same token again", k.await([]string{theQueue}, since))
}

func wakeStream(k *kit) {
	const n = 200
	got := make(chan string, n)
	failed := make(chan error, 1)
	store, ctx := k.store, k.ctx
	k.waiters.Go(func() {
		for count := 0; count < n; {
			c, err := store.Claim(ctx, core.ClaimRequest{Wants: wants(1), Token: core.NewToken(), Lease: theLease})
			if err == nil && len(c.Jobs) == 0 {
				_, err = store.AwaitWake(ctx, []string{theQueue}, c.Wake)
			}
			if err != nil {
				failed <- err
				return
			}
			for _, j := range c.Jobs {
				got <- j.ID
				count++
			}
		}
	})
	patience := time.NewTimer(k.suite.patience)
	defer patience.Stop()
	for i := range n {
		id := k.add(fmt.Sprintf("s%d", i))
		patience.Reset(k.suite.patience)
		select {
		case g := <-got:
			eq(k, "job of the stream", g, id)
		case err := <-failed:
			k.failf("the worker's call failed: %v", err)
		case <-patience.C:
			k.failf("job %d of the stream did not come: a wake was lost", i)
		}
	}
}
