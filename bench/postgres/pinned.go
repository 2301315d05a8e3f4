package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// pinnable are the contenders that are measured under an old snapshot unless others are named.
var pinnable = []string{stintTuned, bareLoop, leanLoop, riverFew}

// fifths is how many parts the time is cut into, whose rates are compared.
const fifths = 5

// pinned enqueues and works at full rate while a transaction that began before keeps its snapshot: until it ends, no
// dead row can be removed.
func (s *subject) pinned(ctx context.Context) (out sample, err error) {
	old, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, old.Close(context.WithoutCancel(ctx))) }()
	tx, err := old.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return out, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // its connection ends anyway
	if _, err := tx.Exec(ctx, "select count(*) from pg_class"); err != nil {
		return out, err
	}

	var ran, sent atomic.Int64
	stop, err := s.start(func() { ran.Add(1) })
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	produceCtx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- parallel(producers, func() error {
			for produceCtx.Err() == nil {
				if err := s.produce(produceCtx, sent.Add(production), production, &ran); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	out.Parts, err = s.parts(ctx, s.cfg.PinnedFor, &ran)
	cancel()
	if doneErr := <-done; produceCtx.Err() == nil {
		err = errors.Join(err, doneErr)
	}
	return out, err
}

// parts are the fifths of a time.
func (s *subject) parts(ctx context.Context, d time.Duration, ran *atomic.Int64) (list []phase, err error) {
	tick := time.NewTicker(d / fifths)
	defer tick.Stop()
	from, err := s.meter.read(ctx)
	if err != nil {
		return nil, err
	}
	before := ran.Load()
	for range fifths {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		n := ran.Load()
		p, err := s.meter.since(ctx, from, int(max(n-before, 1)))
		if err != nil {
			return nil, err
		}
		list = append(list, p)
		if from, err = s.meter.read(ctx); err != nil {
			return nil, err
		}
		before = n
	}
	return list, nil
}

func pinnedTable(rows []row, cfg Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "A transaction at REPEATABLE READ stays open for %v while jobs are enqueued and worked at full rate.\n\n", cfg.PinnedFor)
	b.WriteString("Each fifth of the time: jobs/s (CPU of client/server in µs per job, bytes of WAL per job).\n\n")
	b.WriteString("| contender | 1 | 2 | 3 | 4 | 5 | last : second | CPU | at least 0.80 |\n|---|--:|--:|--:|--:|--:|--:|--:|---|\n")
	for _, r := range rows {
		if len(r.Parts) != fifths {
			continue
		}
		fmt.Fprintf(&b, "| %s |", r.name)
		for _, p := range r.Parts {
			fmt.Fprintf(&b, " %s |", p.cell())
		}
		ratio := r.Parts[4].Rate / r.Parts[1].Rate
		fmt.Fprintf(&b, " %.2f | %.2f | %s |\n", ratio, r.Parts[4].cpu()/r.Parts[1].cpu(), mark(ratio >= 0.8))
	}
	return b.String()
}
