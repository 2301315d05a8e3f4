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
	out.Series, err = rates(ctx, s.cfg.PinnedFor, &ran)
	cancel()
	if doneErr := <-done; produceCtx.Err() == nil {
		err = errors.Join(err, doneErr)
	}
	return out, err
}

// rates are those of the fifths of a time.
func rates(ctx context.Context, d time.Duration, ran *atomic.Int64) (list []float64, err error) {
	tick := time.NewTicker(d / fifths)
	defer tick.Stop()
	at, before := time.Now(), ran.Load()
	for range fifths {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		now, n := time.Now(), ran.Load()
		list = append(list, float64(n-before)/now.Sub(at).Seconds())
		at, before = now, n
	}
	return list, nil
}

func pinnedTable(rows []row, cfg Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "A transaction at REPEATABLE READ stays open for %v while jobs are enqueued and worked at full rate.\n\n", cfg.PinnedFor)
	b.WriteString("| contender | jobs/s in each fifth of the time | last : second | at least 0.80 |\n|---|---|--:|---|\n")
	for _, r := range rows {
		if len(r.Series) != fifths {
			continue
		}
		ratio := r.Series[4] / r.Series[1]
		fmt.Fprintf(&b, "| %s | %s | %.2f | %s |\n", r.name, join(r.Series), ratio, mark(ratio >= 0.8))
	}
	return b.String()
}

func join(list []float64) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = fmt.Sprintf("%.0f", v)
	}
	return strings.Join(words, ", ")
}
