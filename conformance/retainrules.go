package conformance

import (
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

func retainDefaults(k *kit) {
	const day = 24 * time.Hour
	k.ended("completed", core.OutcomeComplete)
	k.ended("failed", core.OutcomeFail)
	k.add("cancelled")
	k.cancel("cancelled", core.StateCancelled)
	k.advance(day - time.Microsecond)
	k.prunes(0, core.PruneRequest{})
	k.advance(time.Microsecond)
	k.prunes(1, core.PruneRequest{})
	k.left("failed", "cancelled")
	k.advance(6*day - time.Microsecond)
	k.prunes(0, core.PruneRequest{})
	k.advance(time.Microsecond)
	k.prunes(2, core.PruneRequest{})
	k.left()
}

func retainDefault(k *kit) {
	k.ended("a", core.OutcomeComplete)
	k.ended("b", core.OutcomeFail)
	k.ended("own", core.OutcomeComplete, named("other"), keeping(keepAge(time.Hour)))
	k.ended("forever", core.OutcomeComplete, named("third"), keeping(keepForever))
	forever := core.PruneRequest{Default: everyState(keepForever)}
	k.advance(59 * time.Minute)
	k.prunes(0, core.PruneRequest{Default: core.Keep{Completed: keepAge(time.Hour)}})
	k.advance(time.Minute)
	k.prunes(1, forever)
	k.left("a", "b", "forever")
	k.prunes(1, core.PruneRequest{Default: core.Keep{Completed: keepAge(time.Hour)}})
	k.left("b", "forever")
	k.advance(1000 * 24 * time.Hour)
	k.prunes(0, forever)
	k.prunes(0, core.PruneRequest{Default: core.Keep{Failed: keepForever}})
	k.prunes(1, core.PruneRequest{Default: core.Keep{Completed: keepForever}})
	k.left("forever")
}

func retainCeiling(k *kit) {
	at := func(r core.KeepRule) core.PruneRequest { return core.PruneRequest{Ceiling: core.Keep{Completed: r}} }
	k.completed(keepForever, "a", "b", "c")
	k.prunes(0, at(keepForever))
	k.prunes(1, at(keepCount(2)))
	k.left("b", "c")
	k.advance(time.Minute - time.Millisecond)
	k.prunes(0, at(keepAge(time.Minute+time.Millisecond+time.Microsecond)))
	k.prunes(1, at(keepAge(time.Minute+time.Millisecond)))
	k.left("c")
	k.prunes(0, core.PruneRequest{Ceiling: core.Keep{Failed: keepNone, Cancelled: keepNone}})
	k.prunes(1, at(keepNone))
	k.completed(keepCount(1), "d", "e") // tighter than the ceiling
	k.prunes(1, at(keepCount(2)))
	k.left("e")
	k.completed(keepNone, "f")
	k.prunes(2, at(keepForever))
	k.completed(core.KeepRule{}, "g") // kept for a day
	k.advance(time.Hour)
	k.prunes(0, at(keepAge(2*time.Hour)))
	k.prunes(1, at(keepAge(time.Hour)))
	k.completed(keepForever, "h")
	k.prunes(1, core.PruneRequest{Default: everyState(keepForever), Ceiling: everyState(keepNone)})
}

func retainNewest(k *kit) {
	k.completed(keepNone, "a")
	k.completed(keepCount(1), "b")
	k.completed(keepForever, "c")
	k.prunes(0, core.PruneRequest{})
	k.left("a", "b", "c")
	k.add("early", keeping(keepNone)) // inserted before, finished after
	early := k.takeID("early")
	k.completed(keepCount(4), "d")
	k.prunes(0, core.PruneRequest{})
	k.end(early, core.OutcomeComplete, core.StateCompleted)
	k.prunes(5, core.PruneRequest{})
	k.left()
	for _, id := range []string{"first", "second"} { // at one moment, so the second is the newest
		rule := map[string]core.KeepRule{"first": keepNone, "second": keepForever}[id]
		k.add(id, keeping(rule))
	}
	c := k.claim(want(2))
	for _, l := range slices.Backward(c.leases()) {
		k.ack(core.Ack{Lease: l, Outcome: core.OutcomeComplete})
	}
	k.prunes(0, core.PruneRequest{})
	k.left("first", "second")
}

func retainNewestChanges(k *kit) {
	k.completed(keepCount(2), "a", "b")
	k.completed(keepForever, "c")
	k.completed(keepNone, "d")
	if removed, err := k.admin.Remove(k.ctx, "d"); err != nil || !removed {
		k.failf("Remove: %v, %v", removed, err)
	}
	k.prunes(0, core.PruneRequest{})
	if removed, err := k.admin.Remove(k.ctx, "c"); err != nil || !removed {
		k.failf("Remove: %v, %v", removed, err)
	}
	k.completed(keepCount(2), "e")
	k.prunes(1, core.PruneRequest{})
	k.left("b", "e")
	k.ended("f", core.OutcomeFail, keepingAll(core.Keep{Failed: keepForever}))
	k.advance(time.Second)
	k.ended("g", core.OutcomeFail, keepingAll(core.Keep{Failed: keepNone}))
	k.ok("Retry", k.admin.Retry(k.ctx, "g"))
	k.prunes(0, core.PruneRequest{})
	k.left("b", "e", "f", "g")
}

func retainGroups(k *kit) {
	one := keepingAll(everyState(keepCount(1)))
	k.ended("a", core.OutcomeComplete, one)
	k.advance(time.Millisecond)
	k.ended("b", core.OutcomeComplete, one, onQueue("elsewhere"))
	k.advance(time.Millisecond)
	k.ended("c", core.OutcomeComplete, one, named("other"))
	k.ended("d", core.OutcomeFail, one)
	k.ended("e", core.OutcomeCancel, one)
	k.ended("f", core.OutcomeFail, one, named("other"), onQueue("elsewhere"))
	k.prunes(1, core.PruneRequest{})
	k.left("b", "c", "d", "e", "f")
	k.advance(time.Millisecond)
	k.ended("g", core.OutcomeComplete, one, onQueue("third"))
	k.ended("h", core.OutcomeComplete, keeping(keepNone), named("another"), onQueue("third"))
	k.prunes(2, core.PruneRequest{})
	k.left("c", "d", "e", "f", "g")
}
