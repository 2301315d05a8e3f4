package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// The pruner's pace.
const (
	pruneSoon   = 10 * time.Second // of a pruner's first pass, at most
	pruneRest   = 4                // how many times as long as a batch took is rested before the next
	pruneOutage = 8                // how many intervals are waited at most while the store fails
)

// prune deletes finished jobs whose Keep ran out, in the whole store, every PruneInterval until ctx ends (Q28). Every
// worker of a fleet does so; a store lets one at a time.
func (w *Worker) prune(ctx context.Context) {
	r, ok := As[Retainer](w.store)
	if !ok || w.opts.PruneInterval < 0 {
		return
	}
	p := pruner{w: w, store: r, size: newBatchLimit(DefaultPruneLimit)}
	again := newPause(w.opts.PruneInterval, pruneOutage*w.opts.PruneInterval)
	// Soon, so that programs that run for minutes prune as well, and not all of a fleet at once.
	sleep(ctx, rand.N(min(w.opts.PruneInterval, pruneSoon)))
	for failing := false; ctx.Err() == nil; {
		err := p.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errors.ErrUnsupported):
			return // a store whose configuration has switched it off
		case err == nil:
			if failing {
				w.log.Info("finished jobs are pruned again")
			}
			failing = false
			again.reset()
			sleep(ctx, jitter(w.opts.PruneInterval))
			continue
		case !failing:
			w.log.Warn("finished jobs were not pruned, will be repeated", "error", err)
			failing = true
		}
		again.wait(ctx)
	}
}

// pruner makes the passes of one worker.
type pruner struct {
	w     *Worker
	store Retainer
	size  batchLimit
}

// pass prunes until there is nothing left to prune. It rests after each batch: what it deletes is never urgent, and
// what else the database does is.
func (p *pruner) pass(ctx context.Context) error {
	total := 0
	for {
		limit, began := p.size.now(), time.Now()
		n, slow, err := p.batch(ctx, limit)
		p.size.note(slow, err)
		total += n
		if err != nil || n < limit || ctx.Err() != nil {
			if total > 0 {
				p.w.log.Debug("finished jobs were pruned", "jobs", total)
			}
			return err
		}
		sleep(ctx, pruneRest*time.Since(began))
	}
}

func (p *pruner) batch(ctx context.Context, limit int) (n int, slow bool, err error) {
	call, cancel := p.w.storeCall(ctx)
	defer cancel()
	n, err = p.store.Prune(call, PruneRequest{Default: p.w.opts.Keep, Ceiling: p.w.opts.KeepAtMost, Limit: limit})
	return n, err != nil && ranOut(call), err
}
