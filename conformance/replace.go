package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/stintmq/stint/core"
)

func replaceCases() []testCase {
	const limit = 60 * time.Second
	needs := []Capability{CapDedupe}
	return []testCase{
		{rule: "Q12", name: "every-field", run: replaceEveryField, needs: needs,
			demands: "a replace gives a delayed job the content of the request; its id, queue, key, counters and EnqueuedAt stay"},
		{rule: "Q12", name: "now", run: replaceNow, needs: needs,
			demands: "a replace without a delay makes the job waiting, behind those that wait"},
		{rule: "Q11", name: "order-in-a-batch", run: replaceOrder, needs: needs,
			demands: "what replaces make waiting stands in line with what the same batch inserts, in its order"},
		{rule: "Q2", name: "priority", run: replacePriority, needs: needs,
			demands: "a job that was replaced comes in the order of its new priority when it is due"},
		{rule: "Q12", name: "not-delayed", run: replaceNotDelayed, needs: needs,
			demands: "a replace of a job that waits, is due, runs or has ended is no replace, but what it is without"},
		{rule: "Q12", name: "window", run: replaceWindow, needs: needs,
			demands: "a replace with a TTL opens the window anew; one without leaves it; it comes before a window's end"},
		{rule: "Q15", name: "wakes", run: replaceWakes, needs: []Capability{CapDedupe, CapWake}, timeless: true,
			demands: "a replace wakes the queue of its job, to learn the time; what changes nothing wakes nobody"},
		{rule: "Q4", name: "next-in", run: replaceNextIn, needs: needs,
			demands: "the next claim knows when what was replaced is due"},
		{rule: "Q12", name: "races-claims", run: replaceRaces, needs: needs, limit: limit,
			demands: "a replace that answered success is what runs, whatever claims at the same moment"},
		{rule: "Q12", name: "races-sooner", run: replaceRacesSooner, needs: needs, limit: limit, timeless: true,
			demands: "of many replaces at once that make the job run the first one counts, and it runs once"},
	}
}

func replaceEveryField(k *kit) {
	k.add("a", deduped(core.Dedupe{Key: "k", Replace: true}), delay(time.Minute), payload([]byte("old")), tagged("old", "1"))
	enqueued := k.now()
	k.advance(time.Second)
	req := fullRequest("")
	req.Dedupe = &core.Dedupe{Key: "k", Replace: true}
	req.Name = theName
	req.Queue = "elsewhere"
	req.Delay = 5 * time.Second
	eq(k, "the answer", k.enqueue(req)[0], core.EnqueueResult{ID: "a", Duplicate: true})
	want := core.Record{
		ID: "a", Name: theName, Queue: theQueue, DedupeKey: "k", State: core.StateDelayed, Payload: req.Payload,
		Metadata: req.Metadata, Priority: req.Priority, MaxAttempts: req.MaxAttempts, MaxStalls: req.MaxStalls,
		Backoff: req.Backoff, Keep: req.Keep, Timeout: req.Timeout, Trace: req.Trace,
		EnqueuedAt: enqueued, RunAt: k.now().Add(req.Delay),
	}
	k.look("a", func(r core.Record) {
		want.Ref = r.Ref
		k.sameRecord("the delayed job", r, want)
	})
	k.advance(req.Delay - time.Microsecond)
	k.none("it is not due")
	k.advance(time.Microsecond)
	h := k.takeID("a")
	want.State, want.Fence, want.ClaimedAt, want.Ref = core.StateActive, 1, k.now(), h.Ref
	k.sameRecord("the claimed job", h.Record, want)
	k.end(h, core.OutcomeRetry, core.StateWaiting)

	// And back to nothing.
	h = k.takeID("a")
	k.endIn(h, core.OutcomeRetry, time.Minute, core.StateDelayed)
	bare := core.EnqueueRequest{Name: theName, Queue: theQueue, MaxAttempts: 9, Dedupe: req.Dedupe,
		RunAt: k.now().Add(2 * time.Second)}
	eq(k, "the answer", k.enqueue(bare)[0], core.EnqueueResult{ID: "a", Duplicate: true})
	k.advance(2 * time.Second)
	h = k.takeID("a")
	k.sameRecord("the bare job", h.Record, core.Record{
		ID: "a", Ref: h.Ref, Name: theName, Queue: theQueue, DedupeKey: "k", State: core.StateActive, MaxAttempts: 9,
		Attempts: 2, Runs: 2, Fence: 3, EnqueuedAt: enqueued, RunAt: k.now(), ClaimedAt: k.now(),
	})
	k.wantLedger("a", core.OutcomeRetry, core.OutcomeRetry)
}

func replaceNow(k *kit) {
	replace := deduped(core.Dedupe{Key: "k", Replace: true})
	k.add("a", onKey("k"), delay(time.Hour))
	k.addAll("b", "c")
	k.dropped("delayed", "a", replace, payload([]byte("now")))
	k.add("d")
	now := k.now()
	k.wantState("a", core.StateWaiting)
	for _, r := range k.drain("jobs", "b", "c", "a", "d").Jobs {
		if r.ID == "a" {
			k.sameBytes("payload", r.Payload, []byte("now"))
			k.wantTime("RunAt", r.RunAt, now)
		}
	}
	k.add("low", onKey("l"), delay(time.Hour))
	k.add("e")
	k.dropped("delayed", "low", deduped(core.Dedupe{Key: "l", Replace: true}), prio(9), runAt(now.Add(-time.Hour)))
	k.drain("jobs", "low", "e")
}

func replaceOrder(k *kit) {
	on := func(key string) mod { return deduped(core.Dedupe{Key: key, Replace: true}) }
	k.add("a", on("a"), delay(time.Minute))
	k.add("b", on("b"), delay(time.Minute))
	k.enqueue(
		request("1"), request("2", on("b")), request("3", deduped(core.Dedupe{Key: "3"})), request("c", on("c"), delay(time.Minute)),
		request("4"), request("5", on("a")), request("6", on("c")), request("7"),
	)
	var got []string
	for range 7 {
		got = append(got, k.take().ID)
	}
	eqs(k, "order", got, []string{"1", "b", "3", "4", "a", "c", "7"})
	k.none("all were there")
}

func replacePriority(k *kit) {
	k.add("high", onKey("h"), delay(time.Second), prio(-1))
	k.add("low", onKey("l"), delay(time.Second), prio(9))
	k.dropped("delayed", "high", deduped(core.Dedupe{Key: "h", Replace: true}), delay(time.Minute), prio(5))
	k.dropped("delayed", "low", deduped(core.Dedupe{Key: "l", Replace: true}), delay(time.Second), prio(-5))
	k.advance(time.Minute)
	k.add("middle")
	k.drain("jobs", "high", "middle", "low")
}

func replaceNotDelayed(k *kit) {
	replace := func(text string) []mod {
		return []mod{deduped(core.Dedupe{Key: "k", Replace: true}), payload([]byte(text)), delay(time.Hour)}
	}
	k.add("a", onKey("k"))
	k.dropped("waiting", "a", replace("waiting")...)
	h := k.takeID("a")
	k.sameBytes("payload", h.Payload, []byte(`{"n":1}`))
	k.dropped("active", "a", replace("active")...)
	k.end(h, core.OutcomeRelease, core.StateWaiting)
	h = k.takeID("a")
	k.sameBytes("payload", h.Payload, []byte(`{"n":1}`))
	k.endIn(h, core.OutcomeRetry, time.Second, core.StateDelayed)
	k.advance(time.Second)
	k.dropped("due", "a", replace("due")...)
	h = k.takeID("a")
	k.sameBytes("payload", h.Payload, []byte(`{"n":1}`))
	k.end(h, core.OutcomeFail, core.StateFailed)
	k.add("b", replace("ended")...)
	k.look("a", func(r core.Record) { k.sameBytes("payload", r.Payload, []byte(`{"n":1}`)) })
	if k.admin != nil {
		k.cancel("b", core.StateCancelled)
		k.ok("Retry", k.admin.Retry(k.ctx, "a"))
		k.sameBytes("payload", k.takeID("a").Payload, []byte(`{"n":1}`))
	}
}

func replaceWindow(k *kit) {
	replace := func(ttl time.Duration) mod { return deduped(core.Dedupe{Key: "k", Replace: true, TTL: ttl}) }
	k.add("a", replace(time.Minute), delay(time.Hour))
	k.advance(50 * time.Second)
	k.dropped("in the window", "a", replace(time.Minute), delay(time.Hour))
	k.advance(50 * time.Second)
	k.dropped("the window began again", "a", inWindow("k", time.Minute))
	k.dropped("a replace without a TTL", "a", replace(0), delay(time.Hour))
	k.advance(time.Minute) // past the window, which that did not move
	k.dropped("a replace comes first", "a", replace(0), delay(2*time.Hour))
	k.add("b", inWindow("k", time.Minute))
	k.dropped("b has the key", "b", replace(time.Hour))
	k.advance(time.Minute)
	k.add("c", onKey("k"), delay(time.Minute))
	k.dropped("a TTL opens a window where there was none", "c", replace(time.Hour))
	for _, id := range []string{"b", "c"} {
		k.finish(id, core.OutcomeComplete)
	}
	k.dropped("which outlives the job", "c", onKey("k"))
	k.advance(time.Hour)
	k.add("d", onKey("k"))
}

func replaceWakes(k *kit) {
	replace := deduped(core.Dedupe{Key: "k", Replace: true})
	k.add("a", onKey("k"), delay(time.Hour), onQueue("other"))
	for _, d := range []time.Duration{time.Minute, 0} {
		since := k.settled("other")
		w := k.await([]string{"other"}, since)
		k.dropped("delayed", "a", replace, delay(d)) // on the default queue, which is not the job's
		k.woken("replace", w)
	}
}

func replaceNextIn(k *kit) {
	replace := deduped(core.Dedupe{Key: "k", Replace: true})
	k.add("a", onKey("k"), delay(time.Hour))
	k.none("it is delayed")
	k.dropped("sooner", "a", replace, delay(time.Second))
	if next := k.none("it is delayed").NextIn; next <= 0 || next > time.Second {
		k.failf("NextIn is %v, with a job due in a second", next)
	}
	k.advance(time.Second / 2)
	k.dropped("later", "a", replace, delay(time.Minute))
	k.advance(time.Second)
	k.none("it is delayed")
	k.advance(time.Minute - time.Second)
	k.takeID("a")
}

// replaceRaces lets replaces race a claim of a job that becomes due. Whichever of them comes first: what runs is what the
// record says, now and later. A replace that reached the one and not the other shows by the next claim.
func replaceRaces(k *kit) {
	const rounds = 40
	o := k
	if k.suite.has[CapOpen] {
		o = k.other()
	}
	for round := range rounds {
		key := fmt.Sprintf("key-%d", round)
		id := k.add("", onKey(key), delay(time.Second), payload([]byte("0")))
		k.advance(time.Second - time.Microsecond)
		var early claims
		k.race(3, func(ctx context.Context, worker int) error {
			switch worker {
			case 0:
				k.clock.Advance(time.Microsecond)
				return nil
			case 1: // it is replaced as long as it is delayed
				for n := 1; n <= 3; n++ {
					res, err := o.store.Enqueue(ctx, []core.EnqueueRequest{request("", deduped(core.Dedupe{Key: key, Replace: true}),
						payload([]byte(strconv.Itoa(n))), prio(n), delay(time.Second))})
					if err := firstErr(res, err); err != nil {
						return err
					}
					if res[0] != (core.EnqueueResult{ID: id, Duplicate: true}) {
						return fmt.Errorf("a replace answered %+v", res[0])
					}
				}
				return nil
			}
			token := core.NewToken()
			c, err := k.store.Claim(ctx, core.ClaimRequest{Wants: wants(1), Token: token, Lease: time.Hour})
			early = claims{c, token}
			return err
		})
		h := held{}
		if len(early.Jobs) == 1 {
			h = held{early.Jobs[0], early.leases()[0]}
		} else {
			k.advance(time.Second)
			h = k.takeID(id)
		}
		eq(k, "priority that came with the content", strconv.Itoa(h.Priority), string(h.Payload))
		k.look(id, func(r core.Record) { k.sameBytes("payload of the record of what runs", r.Payload, h.Payload) })
		k.end(h, core.OutcomeRelease, core.StateWaiting)
		again := k.takeID(id)
		k.sameBytes("payload of the next run", again.Payload, h.Payload)
		eq(k, "priority of the next run", again.Priority, h.Priority)
	}
}

// replaceRacesSooner lets many replace one delayed job to run now.
func replaceRacesSooner(k *kit) {
	const racers, rounds = 4, 10
	for round := range rounds {
		key := fmt.Sprintf("key-%d", round)
		id := k.add("", onKey(key), delay(time.Hour), payload([]byte("old")))
		got := newTally()
		k.race(racers, func(ctx context.Context, worker int) error {
			if worker == 0 {
				c, err := k.store.Claim(ctx, core.ClaimRequest{Wants: wants(1), Token: core.NewToken(), Lease: time.Hour})
				for _, j := range c.Jobs {
					if got.add(j.ID) > 1 || bytes.Equal(j.Payload, []byte("old")) {
						return fmt.Errorf("%q ran with the old content, or twice", j.ID)
					}
				}
				return err
			}
			res, err := k.store.Enqueue(ctx, []core.EnqueueRequest{request("", deduped(core.Dedupe{Key: key, Replace: true}),
				payload([]byte(strconv.Itoa(worker))))})
			if err := firstErr(res, err); err != nil {
				return err
			}
			if res[0] != (core.EnqueueResult{ID: id, Duplicate: true}) {
				return fmt.Errorf("a replace answered %+v", res[0])
			}
			return nil
		})
		if got.n[id] == 0 {
			k.takeID(id)
		}
		k.none("it ran")
	}
}

// firstErr is the call's error, or that of its first item.
func firstErr(res []core.EnqueueResult, err error) error {
	if err == nil && len(res) == 0 {
		err = errors.New("no result")
	}
	if err == nil {
		err = res[0].Err
	}
	return err
}
