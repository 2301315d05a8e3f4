package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/stintmq/stint/journal"
)

func projectionTimeout[Tx any](k *jkit[Tx]) {
	j := k.journal()
	rec := k.record(j, "a", k.deposits(3)...)
	own := errors.New("the function's own")
	ends := []error{context.DeadlineExceeded, own, nil} // what it makes of its context's end
	p := journal.NewProjection[Tx]("p", journal.ProjectionOptions{Timeout: 30 * time.Millisecond, OnError: journal.Skip, Tries: 1})
	journal.Apply(p, k.inRef, func(ctx context.Context, tx Tx, e journal.Event[amount]) error {
		if err := k.mark(ctx, tx, marked("p", e.Seq)); err != nil {
			return err
		}
		if e.Seq != rec.Seqs[1] || len(ends) == 0 {
			return nil
		}
		end := ends[0]
		ends = ends[1:]
		<-ctx.Done()
		return end
	})
	k.ok("Project", j.Project(p))
	for len(ends) > 0 {
		left := len(ends)
		_, err := j.CatchUp(k.ctx)
		if !errors.Is(err, context.DeadlineExceeded) || len(ends) == left {
			k.failf("CatchUp, with a function that waits for its context's end: %v, want context.DeadlineExceeded", err)
		}
		k.wantMarked("a batch that took too long", "p")
		s := k.status(j, "p")
		eq(k.kit, "seq", s.Seq, 0)
		eq(k.kit, "failures", s.Failures, 0)
		eq(k.kit, "failed seq", s.FailedSeq, 0)
	}
	eq(k.kit, "events scanned later", k.catchUp(j), 3)
	k.wantMarked("later", "p", rec.Seqs...)
}
