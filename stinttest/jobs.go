package stinttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stintmq/stint/core"
)

// Kind is a kind of work as these functions see it: a *core.Job or a *core.Task.
type Kind[P any] interface {
	Name() string
	Payload(rec core.Record) (P, error)
}

// Enqueued is one job with its payload.
type Enqueued[P any] struct {
	core.Record
	Payload P             // decoded; Record.Payload has the bytes
	In      time.Duration // until it is due; 0: it is due, or does not wait any more
}

// All returns the jobs of a kind in whatever state they are, in the order in which they were enqueued.
func All[P any](k *Kit, kind Kind[P]) []Enqueued[P] {
	k.tb.Helper()
	return list(k, kind, core.States())
}

// Pending returns those that have not ended: waiting, delayed and active ones.
func Pending[P any](k *Kit, kind Kind[P]) []Enqueued[P] {
	k.tb.Helper()
	return list(k, kind, slices.DeleteFunc(core.States(), core.State.Terminal))
}

// Only returns the one pending job of a kind. If there is none, or another one, the test ends.
func Only[P any](k *Kit, kind Kind[P]) Enqueued[P] {
	k.tb.Helper()
	jobs := Pending(k, kind)
	if len(jobs) != 1 {
		k.tb.Fatalf("stinttest: want one pending job %q, there are %d%s", kind.Name(), len(jobs), k.standing())
	}
	return jobs[0]
}

// None ends the test if there is a pending job of a kind.
func None[P any](k *Kit, kind Kind[P]) {
	k.tb.Helper()
	if jobs := Pending(k, kind); len(jobs) > 0 {
		k.tb.Fatalf("stinttest: want no pending job %q, there are %d%s", kind.Name(), len(jobs), k.standing())
	}
}

func list[P any](k *Kit, kind Kind[P], states []core.State) []Enqueued[P] {
	k.tb.Helper()
	var jobs []Enqueued[P]
	for _, rec := range k.records(core.Query{Name: kind.Name(), States: states}) {
		payload, err := kind.Payload(rec)
		if err != nil {
			k.tb.Fatalf("stinttest: %v", err)
		}
		job := Enqueued[P]{Record: rec, Payload: payload}
		if rec.State == core.StateDelayed {
			job.In = rec.RunAt.Sub(k.Now())
		}
		jobs = append(jobs, job)
	}
	return jobs
}

// records reads all pages of a query, the oldest first.
func (k *Kit) records(q core.Query) []core.Record {
	k.tb.Helper()
	q.Ascending, q.Limit = true, 1000
	var all []core.Record
	for {
		page, err := k.Store.List(context.Background(), q)
		if err != nil {
			k.tb.Fatalf("stinttest: %v", err)
		}
		all = append(all, page.Jobs...)
		if q.Cursor = page.Cursor; q.Cursor == "" {
			return all
		}
	}
}

// standing lists what is in the store, for messages.
func (k *Kit) standing() string {
	k.tb.Helper()
	const most = 20
	var b strings.Builder
	all := k.records(core.Query{})
	for i, rec := range all {
		if i == most {
			fmt.Fprintf(&b, "\n\t... and %d more", len(all)-most)
			break
		}
		fmt.Fprintf(&b, "\n\t%s %s, queue %s: %s %.200s", rec.Name, rec.ID, rec.Queue, rec.State, rec.Payload)
		if rec.State == core.StateDelayed {
			fmt.Fprintf(&b, " in %v", rec.RunAt.Sub(k.Now()))
		}
		if rec.Failure != nil {
			fmt.Fprintf(&b, " (%.200s)", rec.Failure.Message)
		}
	}
	if len(all) == 0 {
		return "; the store is empty"
	}
	return "; the store has:" + b.String()
}
