package conformance

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stintmq/stint/core"
)

func modelCases() []testCase {
	return []testCase{
		{rule: "Q1-Q11", name: "state-machine", run: modelRun, limit: 5 * time.Minute,
			demands: "after any sequence of calls the store answers what the plain model of the contract answers"},
	}
}

func modelRun(k *kit) {
	rapid.Check(k.TB, func(t *rapid.T) {
		clock := NewClock()
		r := &modelRunner{k: k, t: t, clock: clock, model: newModel(clock)}
		scope := &scopedTB{TB: k.TB} // every check closes its store
		defer scope.close()
		r.real = k.suite.h.New(scope, clock)
		if k.suite.has[CapInspector] {
			r.insp, _ = core.As[core.Inspector](r.real)
		}
		actions := map[string]func(*rapid.T){
			"":          r.compare,
			"enqueue":   r.enqueue,
			"claim":     r.claim,
			"held":      r.held,
			"ack":       r.ack,
			"ack again": r.ack, // twice as likely
			"extend":    r.extend,
			"sweep":     r.sweep,
			"sweep too": r.sweep,
			"advance":   r.advance,
		}
		if k.suite.has[CapAdmin] {
			r.admin, _ = core.As[core.Admin](r.real)
			actions["cancel"], actions["retry"], actions["promote"] = r.cancel, r.retry, r.promote
			actions["remove"], actions["pause"] = r.remove, r.pause
			if k.suite.has[CapDedupe] {
				actions["cancel by key"] = r.cancelByKey
			}
		}
		if k.suite.has[CapRetain] {
			actions["prune"] = r.prune
		}
		t.Repeat(actions)
	})
}

// scopedTB runs its cleanups when it is closed, not when the test ends.
type scopedTB struct {
	testing.TB
	cleanups []func()
}

func (s *scopedTB) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scopedTB) close() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}

// modelRunner does everything twice: on the store under test and on the model.
type modelRunner struct {
	k     *kit
	t     *rapid.T
	clock *Clock
	model *modelStore
	real  core.Store
	insp  core.Inspector
	admin core.Admin

	tokens int
	leases []core.Lease // every lease ever handed out, stale ones included
	asked  []core.Ack   // every ack ever sent
}

var (
	modelNames  = []string{"one", "two"}
	modelQueues = []string{"left", "right"}
)

func (r *modelRunner) fatalf(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf(r.k.rule+": "+format+"\n\tdemands: "+r.k.demands, args...)
}

// same ends the run unless both answered alike.
func (r *modelRunner) same(what string, got, want any) {
	r.t.Helper()
	if !reflect.DeepEqual(got, want) {
		r.fatalf("%s: the store answered %+v, the model %+v", what, got, want)
	}
}

// sameErr compares errors by what callers can tell apart.
func (r *modelRunner) sameErr(what string, got, want error) {
	r.t.Helper()
	r.same(what+", error", errorKind(got), errorKind(want))
}

func errorKind(err error) string {
	for _, target := range []error{core.ErrNotFound, core.ErrLeaseLost, errors.ErrUnsupported} {
		if errors.Is(err, target) {
			return target.Error()
		}
	}
	if e, ok := errors.AsType[*core.InvalidError](err); ok {
		return "invalid " + e.Field
	}
	if e, ok := errors.AsType[*core.StateError](err); ok {
		return fmt.Sprintf("state %+v", *e)
	}
	if e, ok := errors.AsType[*core.ConflictError](err); ok {
		return fmt.Sprintf("conflict %+v", *e)
	}
	if err != nil {
		return "unexpected: " + err.Error()
	}
	return ""
}

func (r *modelRunner) id(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(t, "id")
}

func (r *modelRunner) enqueue(t *rapid.T) {
	reqs := make([]core.EnqueueRequest, rapid.IntRange(1, 4).Draw(t, "items"))
	for i := range reqs {
		reqs[i] = core.EnqueueRequest{
			ID: r.id(t), Name: rapid.SampledFrom(modelNames).Draw(t, "name"), Queue: rapid.SampledFrom(modelQueues).Draw(t, "queue"),
			Payload: rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "payload"), MaxAttempts: rapid.IntRange(0, 2).Draw(t, "attempts"),
			Priority: rapid.IntRange(-1, 1).Draw(t, "priority"), MaxStalls: rapid.IntRange(-1, 2).Draw(t, "stalls"),
			Delay: rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, time.Minute}).Draw(t, "delay"),
			Keep:  rapid.SampledFrom(modelKeeps).Draw(t, "keep"),
		}
		if r.k.suite.has[CapDedupe] && rapid.Bool().Draw(t, "dedupe") {
			reqs[i].Dedupe = r.dedupe(t)
		}
	}
	got, err := r.real.Enqueue(r.k.ctx, reqs)
	r.sameErr("Enqueue", err, nil)
	want, _ := r.model.Enqueue(r.k.ctx, reqs)
	r.same("results of Enqueue", len(got), len(want))
	for i := range want {
		r.sameErr("Enqueue item", got[i].Err, want[i].Err)
		if want[i].Err == nil {
			r.same("Enqueue item", got[i], want[i])
		}
	}
}

// token makes tokens that are the same when a run is repeated, so that a failure can be made smaller.
func (r *modelRunner) token() string {
	r.tokens++
	return fmt.Sprintf("%032x", r.tokens)
}

func (r *modelRunner) claim(t *rapid.T) {
	req := core.ClaimRequest{Token: r.token(), Worker: rapid.SampledFrom([]string{"w1", "w2"}).Draw(t, "worker"),
		Lease: rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second, time.Hour}).Draw(t, "lease")}
	for range rapid.IntRange(1, 3).Draw(t, "wants") {
		req.Wants = append(req.Wants, core.Want{Queue: rapid.SampledFrom(modelQueues).Draw(t, "queue"),
			Names: rapid.SliceOfDistinct(rapid.SampledFrom(modelNames), rapid.ID).Draw(t, "names"), Limit: rapid.IntRange(0, 3).Draw(t, "limit")})
	}
	r.claimBoth(req)
}

func (r *modelRunner) claimBoth(req core.ClaimRequest) {
	got, err := r.real.Claim(r.k.ctx, req)
	r.sameErr("Claim", err, nil)
	want, _ := r.model.Claim(r.k.ctx, req)
	claims := slices.ContainsFunc(req.Wants, func(w core.Want) bool { return w.Limit > 0 })
	if !claims { // in no particular order
		byID := func(a, b core.Record) int { return strings.Compare(a.ID, b.ID) }
		slices.SortFunc(got.Jobs, byID)
		slices.SortFunc(want.Jobs, byID)
	}
	r.same("ids of Claim", recordIDs(got.Jobs), recordIDs(want.Jobs))
	for i := range want.Jobs {
		r.sameRecord("Claim", got.Jobs[i], want.Jobs[i])
		if claims {
			r.leases = append(r.leases, core.Lease{ID: got.Jobs[i].ID, Token: req.Token, Ref: got.Jobs[i].Ref})
		}
	}
	if (got.NextIn == 0) != (want.NextIn == 0) || got.NextIn < 0 || got.NextIn > want.NextIn {
		r.fatalf("NextIn: the store answered %v, the model %v", got.NextIn, want.NextIn)
	}
}

func (r *modelRunner) lease(t *rapid.T) core.Lease {
	if len(r.leases) == 0 {
		return core.Lease{ID: r.id(t), Token: r.token()} // nobody's
	}
	// The newest are the ones that still mean something.
	return r.leases[len(r.leases)-1-rapid.IntRange(0, min(len(r.leases)-1, 12)).Draw(t, "lease")]
}

func (r *modelRunner) held(t *rapid.T) {
	r.claimBoth(core.ClaimRequest{Token: r.lease(t).Token, Lease: time.Hour})
}

func (r *modelRunner) ack(t *rapid.T) {
	var acks []core.Ack
	for range rapid.IntRange(1, 3).Draw(t, "acks") {
		if len(r.asked) > 0 && rapid.IntRange(0, 4).Draw(t, "repeat") == 0 {
			acks = append(acks, r.asked[len(r.asked)-1-rapid.IntRange(0, min(len(r.asked)-1, 8)).Draw(t, "which")])
			continue
		}
		a := core.Ack{Lease: r.lease(t), Outcome: rapid.SampledFrom([]core.Outcome{
			core.OutcomeComplete, core.OutcomeFail, core.OutcomeRetry, core.OutcomeRetry, core.OutcomeCancel, core.OutcomeRelease,
			core.OutcomeSnooze, core.OutcomeStalled,
		}).Draw(t, "outcome")}
		a.Delay = rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Minute}).Draw(t, "delay")
		a.Result = rapid.SampledFrom([][]byte{nil, {}, []byte("null"), {0, 255}}).Draw(t, "result")
		if rapid.Bool().Draw(t, "failure") {
			a.Failure = &core.Failure{Message: "failed", Panic: true}
		}
		acks = append(acks, a)
	}
	got, err := r.real.Ack(r.k.ctx, acks)
	r.sameErr("Ack", err, nil)
	want, _ := r.model.Ack(r.k.ctx, acks)
	r.same("results of Ack", len(got), len(want))
	for i := range want {
		what := fmt.Sprintf("Ack %s of %s", acks[i].Outcome, acks[i].Lease.ID)
		r.sameErr(what, got[i].Err, want[i].Err)
		if want[i].Err == nil {
			r.same(what, got[i].State, want[i].State)
		}
	}
	r.asked = append(r.asked, acks...)
}

func (r *modelRunner) extend(t *rapid.T) {
	var leases []core.Lease
	for range rapid.IntRange(0, 3).Draw(t, "leases") {
		leases = append(leases, r.lease(t))
	}
	d := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "for")
	got, err := r.real.Extend(r.k.ctx, leases, d)
	r.sameErr("Extend", err, nil)
	want, _ := r.model.Extend(r.k.ctx, leases, d)
	for _, l := range []struct {
		what      string
		got, want []core.Lease
	}{{"Lost", got.Lost, want.Lost}, {"CancelRequested", got.CancelRequested, want.CancelRequested}} {
		// As sets: whether a lease that was named twice is answered twice is the store's affair.
		r.same(l.what, leaseSet(l.got), leaseSet(l.want))
	}
}

func leaseSet(ls []core.Lease) map[string]bool {
	set := map[string]bool{}
	for _, l := range ls {
		set[l.ID+" "+l.Token] = true
	}
	return set
}

func (r *modelRunner) sweep(t *rapid.T) {
	req := core.RecoverRequest{MaxStalls: rapid.IntRange(-1, 2).Draw(t, "limit"),
		Confirm: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "confirm")}
	if r.insp == nil {
		return // the wait after a stall is random: without an inspector nobody can tell the model
	}
	got, err := r.real.RecoverStalled(r.k.ctx, req)
	r.sameErr("RecoverStalled", err, nil)
	want, _ := r.model.RecoverStalled(r.k.ctx, req)
	byID := func(a, b core.Recovered) int { return strings.Compare(a.ID, b.ID) } // ends of leases may tie
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	r.same("length of RecoverStalled", len(got), len(want))
	for i := range want {
		r.same("RecoverStalled", got[i], want[i])
		if want[i].State == core.StateDelayed {
			rec, err := r.insp.Get(r.k.ctx, want[i].ID)
			r.sameErr("Get", err, nil)
			r.model.find(want[i].ID).RunAt = rec.RunAt
		}
	}
}

// advance moves the clock and claims from every queue, so that what came due draws its place now, in both.
func (r *modelRunner) advance(t *rapid.T) {
	for _, q := range slices.Sorted(maps.Keys(r.model.paused)) {
		r.sameErr("Resume", r.admin.Resume(r.k.ctx, q), r.model.Resume(r.k.ctx, q))
	}
	r.clock.Advance(rapid.SampledFrom([]time.Duration{
		time.Microsecond, time.Second - time.Microsecond, time.Second, 10 * time.Second, time.Minute, time.Hour,
	}).Draw(t, "by"))
	req := core.ClaimRequest{Token: r.token(), Lease: time.Second}
	for _, q := range modelQueues {
		req.Wants = append(req.Wants, core.Want{Queue: q, Names: modelNames, Limit: 1})
	}
	r.claimBoth(req)
}

func (r *modelRunner) cancel(t *rapid.T) {
	id := r.id(t)
	got, err := r.admin.Cancel(r.k.ctx, id)
	want, wantErr := r.model.Cancel(r.k.ctx, id)
	r.sameErr("Cancel of "+id, err, wantErr)
	if wantErr == nil {
		r.same("Cancel of "+id, got, want)
	}
}

func (r *modelRunner) retry(t *rapid.T) {
	id := r.id(t)
	r.sameErr("Retry of "+id, r.admin.Retry(r.k.ctx, id), r.model.Retry(r.k.ctx, id))
}

func (r *modelRunner) promote(t *rapid.T) {
	id := r.id(t)
	r.sameErr("Promote of "+id, r.admin.Promote(r.k.ctx, id), r.model.Promote(r.k.ctx, id))
}

func (r *modelRunner) remove(t *rapid.T) {
	id := r.id(t)
	got, err := r.admin.Remove(r.k.ctx, id)
	r.sameErr("Remove of "+id, err, nil)
	want, _ := r.model.Remove(r.k.ctx, id)
	r.same("Remove of "+id, got, want)
}

func (r *modelRunner) pause(t *rapid.T) {
	q := rapid.SampledFrom(modelQueues).Draw(t, "queue")
	if rapid.Bool().Draw(t, "resume") {
		r.sameErr("Resume of "+q, r.admin.Resume(r.k.ctx, q), r.model.Resume(r.k.ctx, q))
	} else {
		r.sameErr("Pause of "+q, r.admin.Pause(r.k.ctx, q), r.model.Pause(r.k.ctx, q))
	}
	got, err := r.admin.Paused(r.k.ctx)
	r.sameErr("Paused", err, nil)
	want, _ := r.model.Paused(r.k.ctx)
	if len(got)+len(want) > 0 {
		r.same("Paused", got, want)
	}
}

// sameRecord compares records but for the words in which a store says that a job stalled too often.
func (r *modelRunner) sameRecord(what string, got, want core.Record) {
	r.t.Helper()
	got.Failure, want.Failure = withoutReason(got.Failure), withoutReason(want.Failure)
	want.Ref = got.Ref
	if diff := diffRecord(got, want); diff != "" {
		r.fatalf("%s of %q: %s", what, want.ID, diff)
	}
}

func failureText(f *core.Failure) string {
	if f == nil {
		return "none"
	}
	return fmt.Sprintf("%+v", *withoutReason(f))
}

func withoutReason(f *core.Failure) *core.Failure {
	if f != nil && f.Type == "stalled" {
		return &core.Failure{Type: f.Type}
	}
	return f
}

// compare holds everything that an inspector shows against the model.
func (r *modelRunner) compare(*rapid.T) {
	if r.insp == nil {
		return
	}
	page, err := r.insp.List(r.k.ctx, core.Query{Ascending: true, Limit: core.MaxListLimit})
	r.sameErr("List", err, nil)
	ids := make([]string, len(r.model.jobs))
	for i, j := range r.model.jobs {
		ids[i] = j.ID
	}
	r.same("jobs in the store", recordIDs(page.Jobs), ids)
	for _, got := range page.Jobs {
		want, _ := r.model.Get(r.k.ctx, got.ID)
		r.sameRecord("List", got, want)
		gotLedger, err := r.insp.Attempts(r.k.ctx, got.ID)
		r.sameErr("Attempts", err, nil)
		wantLedger, _ := r.model.Attempts(r.k.ctx, got.ID)
		r.same("length of the ledger of "+got.ID, len(gotLedger), len(wantLedger))
		for i := range wantLedger {
			g, w := gotLedger[i], wantLedger[i]
			r.same("failure in the ledger of "+got.ID, failureText(g.Failure), failureText(w.Failure))
			g.Failure, w.Failure = nil, nil
			r.same("ledger of "+got.ID, g, w)
		}
	}
}
