package filestore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stintmq/stint/core"
)

// Claim leases jobs to the caller (Q2, Q3, Q4).
func (s *Store) Claim(ctx context.Context, req core.ClaimRequest) (core.Claimed, error) {
	if err := req.Validate(); err != nil {
		return core.Claimed{}, err
	}
	wants := slices.DeleteFunc(slices.Clone(req.Wants), func(w core.Want) bool { return w.Limit == 0 })
	var out core.Claimed
	err := s.update(ctx, func(st *state, now time.Time) (woken []string) {
		out.Wake = s.wakes.token() // before the pick: what comes after it wakes (Q15)
		if len(wants) == 0 {
			out.Jobs = st.heldUnder(req.Token)
			return nil
		}
		joined := st.join(wants, now)
		out.Jobs = st.pick(wants, req, now)
		out.NextIn = st.nextIn(wants, now)
		for _, j := range joined {
			if runnable(j) { // became runnable, and we leave it to others (Q3)
				woken = append(woken, j.Queue)
			}
		}
		return woken
	})
	if err != nil {
		return core.Claimed{}, err
	}
	return out, nil
}

// heldUnder finds what a claim whose reply was lost had taken.
func (st *state) heldUnder(token string) (out []core.Record) {
	for _, j := range st.list(func(j *job) bool { return j.heldUnder(token) }, byPlace) {
		out = append(out, copyRecord(j.Record))
	}
	return out
}

// join makes the wanted jobs that are due waiting. They draw their places now, earliest first, and so queue up
// behind a backlog that is older than their coming due (Q2, Q3).
func (st *state) join(wants []core.Want, now time.Time) []*job {
	due := st.list(func(j *job) bool {
		return j.State == core.StateDelayed && !j.RunAt.After(now) && wantedByAny(wants, j)
	}, byRunAt)
	for _, j := range due {
		j.State, j.Place = core.StateWaiting, st.next()
		j.touch()
	}
	return due
}

// pick leases what each Want may have.
func (st *state) pick(wants []core.Want, req core.ClaimRequest, now time.Time) (out []core.Record) {
	size := 0
	for _, w := range wants {
		taken, poison := 0, false
		for _, j := range st.list(func(j *job) bool { return runnable(j) && wanted(w, j) }, byPlace) {
			if taken == w.Limit {
				break
			}
			if j.Stalls > 0 && poison {
				continue // one per Want: it may take its neighbours along (Q4)
			}
			if size += len(j.Payload); size > core.MaxClaimBytes && len(out) > 0 {
				return out // but one job at least (Q4)
			}
			j.lease(req, now)
			out = append(out, copyRecord(j.Record))
			taken, poison = taken+1, poison || j.Stalls > 0
		}
	}
	return out
}

// lease makes the job active under the request's token.
func (j *job) lease(req core.ClaimRequest, now time.Time) {
	j.State, j.ClaimedAt = core.StateActive, now
	j.Fence++
	j.Token, j.Worker, j.Until = req.Token, req.Worker, now.Add(req.Lease)
	j.touch()
}

// nextIn says when asking again is worthwhile: never later than the truth (Q4).
func (st *state) nextIn(wants []core.Want, now time.Time) time.Duration {
	var next time.Duration
	for _, j := range st.jobs {
		if !wantedByAny(wants, j) {
			continue
		}
		if runnable(j) {
			return 1 // left over
		}
		if in := j.RunAt.Sub(now); j.State == core.StateDelayed && (next == 0 || in < next) {
			next = in
		}
	}
	return next
}

func runnable(j *job) bool { return j.State == core.StateWaiting }

func wanted(w core.Want, j *job) bool {
	return w.Queue == j.Queue && slices.Contains(w.Names, j.Name)
}

func wantedByAny(wants []core.Want, j *job) bool {
	return slices.ContainsFunc(wants, func(w core.Want) bool { return wanted(w, j) })
}

func byPlace(a, b *job) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Place, b.Place))
}

func byRunAt(a, b *job) int {
	return cmp.Or(a.RunAt.Compare(b.RunAt), cmp.Compare(a.Ref, b.Ref))
}
