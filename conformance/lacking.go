package conformance

import (
	"errors"

	"github.com/stintmq/stint/core"
)

// lackingCases say what the absence of a capability means.
func lackingCases() []testCase {
	return []testCase{
		{rule: "Q12", name: "dedupe", run: lackingDedupe, without: CapDedupe, timeless: true,
			demands: "without dedupe an item that asks for it gets an error wrapping errors.ErrUnsupported, and is not stored"},
		{rule: "Q12", name: "cancel-by-key", run: lackingCancelByKey, without: CapDedupe, needs: []Capability{CapAdmin}, timeless: true,
			demands: "without dedupe CancelByKey returns an error wrapping errors.ErrUnsupported"},
	}
}

func lackingDedupe(k *kit) {
	dedupe := request("a", func(r *core.EnqueueRequest) { r.Dedupe = &core.Dedupe{Key: "k"} })
	res := k.enqueue(dedupe, request("b"))
	k.is("Enqueue with dedupe", res[0].Err, errors.ErrUnsupported)
	k.ok("its neighbour", res[1].Err)
	k.gone("a")
	k.drain("jobs", "b")
}

func lackingCancelByKey(k *kit) {
	k.add("a")
	_, err := k.admin.CancelByKey(k.ctx, theName, "k")
	k.is("CancelByKey", err, errors.ErrUnsupported)
	k.takeID("a")
}
