package main

import (
	"context"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stintmq/stint/core"
)

const failuresShown = 10

// report prints what all runs together found, and how fast this one was.
func report(ctx context.Context, db database, out *screen, did *tally) error {
	took := time.Since(did.start)
	totals, err := db.Totals(ctx)
	if err != nil {
		return err
	}
	counts, err := db.Counts(ctx, "")
	if err != nil {
		return err
	}
	failed, err := db.List(ctx, core.Query{
		States: []core.State{core.StateFailed}, OrderBy: core.OrderFinished, Limit: failuresShown,
	})
	if err != nil {
		return err
	}
	out.end()
	if totals.Files+counts[core.StateFailed] == 0 {
		return nil // there were no files, which was said
	}
	table := tabwriter.NewWriter(out.w, 0, 0, 1, ' ', tabwriter.AlignRight)
	row := func(name, value string) { _, _ = table.Write([]byte(name + "\t" + value + "\t\n")) }
	row("files", grouped(totals.Files))
	row("bytes", grouped(totals.Size))
	row("lines", grouped(totals.Lines))
	row("words", grouped(totals.Words))
	row("failed", grouped(counts[core.StateFailed]))
	if did.ended() > 0 {
		row("this run", grouped(did.done.Load()))
		row("time", took.Round(10*time.Millisecond).String())
		row("jobs/s", grouped(rate(did.done.Load(), took)))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, job := range failed.Jobs {
		file := strings.TrimPrefix(job.ID, measure.Name()+":")
		out.printf("failed: %s: %s", printable(file), printable(job.Failure.Message))
	}
	if more := counts[core.StateFailed] - int64(len(failed.Jobs)); more > 0 {
		out.printf("and %s more", grouped(more))
	}
	if did.ended() == 0 {
		out.printf("nothing left to do; -fresh starts over")
	}
	return nil
}
